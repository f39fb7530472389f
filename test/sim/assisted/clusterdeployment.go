// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"fmt"
	"maps"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const cdFinalizer = "clusterdeployments.agent-install.openshift.io/ai-deprovision"

func kubeconfigName(cd string) string { return cd + "-admin-kubeconfig" }

func passwordName(cd string) string { return cd + "-admin-password" }

func (s *Simulator) setupClusterDeployment(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("assisted-clusterdeployment").
		For(&hivev1.ClusterDeployment{}).
		Watches(&hiveext.AgentClusterInstall{}, handler.EnqueueRequestsFromMapFunc(deploymentOf)).
		WithOptions(controllerOptions()).
		Complete(reconcile.Func(s.reconcileClusterDeployment))
}

// deploymentOf is the ClusterDeployment that an AgentClusterInstall names.
func deploymentOf(_ context.Context, obj client.Object) []reconcile.Request {
	aci, ok := obj.(*hiveext.AgentClusterInstall)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: aci.Namespace, Name: aci.Spec.ClusterDeploymentRef.Name,
	}}}
}

// reconcileClusterDeployment keeps the finalizer and, on deletion, takes the AgentClusterInstall down first.
func (s *Simulator) reconcileClusterDeployment(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	if result, down := s.paused(); down {
		return result, nil
	}
	cd := &hivev1.ClusterDeployment{}
	if err := s.client.Get(ctx, req.NamespacedName, cd); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	installs, err := s.clusterInstalls(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if cd.DeletionTimestamp.IsZero() {
		// Without an AgentClusterInstall the service does not know yet that the ClusterDeployment is its own.
		if len(installs) == 0 {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, s.ensureFinalizer(ctx, cd, cdFinalizer)
	}
	for i := range installs {
		if err := s.client.Delete(ctx, &installs[i]); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("cannot delete AgentClusterInstall %s: %w", installs[i].Name, err)
		}
	}
	if len(installs) > 0 {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, s.dropFinalizer(ctx, cd, cdFinalizer)
}

// publishSecrets writes the administrator's kubeconfig, and at the end of the installation its final content and the
// password (ASSISTED fact 7), each once: what somebody makes of them afterwards stays. pending says that something is due but cannot be
// written yet.
func (s *Simulator) publishSecrets(ctx context.Context, cd *hivev1.ClusterDeployment, view clusterView) (pending bool, err error) {
	due := !view.published.early || view.complete && !view.published.final
	if !view.hasMetadata || !due {
		return false, nil
	}
	data, ready := s.backend.opts.Workload.Kubeconfig(client.ObjectKeyFromObject(cd), view.complete)
	if !view.hasKubeconfig || !ready {
		return true, nil
	}
	kubeconfig := adminSecret(cd, kubeconfigName(cd.Name), "kubeconfig", map[string][]byte{"kubeconfig": data})
	secrets := []*corev1.Secret{kubeconfig}
	if view.complete {
		maps.Copy(kubeconfig.Labels, referencedLabels)
		secrets = append(secrets, adminSecret(cd, passwordName(cd.Name), "kubeadmincreds", map[string][]byte{
			"username": []byte("kubeadmin"), "password": []byte("simulated-" + view.id[:8]),
		}))
	}
	for _, secret := range secrets {
		if err := s.applySecret(ctx, secret); err != nil {
			return false, err
		}
	}
	s.backend.setPublished(view.id, published{early: true, final: view.complete})
	return false, nil
}

func adminSecret(cd *hivev1.ClusterDeployment, name, kind string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cd.Namespace, Name: name,
			Labels: map[string]string{
				"hive.openshift.io/cluster-deployment-name": cd.Name,
				"hive.openshift.io/secret-type":             kind,
			},
			OwnerReferences: []metav1.OwnerReference{ownerOf(cd)},
		},
		Data: data,
	}
}

// applySecret creates a Secret or brings its data and labels to what is wanted.
func (s *Simulator) applySecret(ctx context.Context, want *corev1.Secret) error {
	key := client.ObjectKeyFromObject(want)
	have := &corev1.Secret{}
	err := s.client.Get(ctx, key, have)
	if apierrors.IsNotFound(err) {
		if err := s.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create Secret %s: %w", key, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read Secret %s: %w", key, err)
	}
	before := have.DeepCopy()
	have.Data = want.Data
	if have.Labels == nil {
		have.Labels = map[string]string{}
	}
	maps.Copy(have.Labels, want.Labels)
	if equality.Semantic.DeepEqual(before, have) {
		return nil
	}
	return ignoreGone("cannot write Secret", have, s.client.Patch(ctx, have, client.MergeFrom(before)))
}
