// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func kubeconfigName(cd string) string { return cd + "-admin-kubeconfig" }

func passwordName(cd string) string { return cd + "-admin-password" }

// errLater says that the simulated cluster has no kubeconfig yet. The real service has made it before the installation begins.
var errLater = errors.New("the simulated cluster has no kubeconfig yet")

// publishCredentials writes the administrator's kubeconfig twice and never again: when the installation has begun, unless the
// AgentClusterInstall says that it was, and when it is complete, with its final content and the password (ASSISTED fact 7). What somebody
// deletes or changes between and afterwards stays deleted or changed.
func (s *Simulator) publishCredentials(
	ctx context.Context, aci *hiveext.AgentClusterInstall, cd *hivev1.ClusterDeployment, view clusterView,
) error {
	told := slices.ContainsFunc(aci.Status.Conditions, func(c hivev1.ClusterInstallCondition) bool {
		return c.Type == condCompleted && c.Status == yes
	})
	if !view.hasMetadata || told || !view.complete && aci.Spec.ClusterMetadata != nil {
		return nil
	}
	if !view.hasKubeconfig {
		return serverError("failed to download kubeconfig-noingress of cluster %s: it was not found", view.id)
	}
	data, ready := s.backend.opts.Workload.Kubeconfig(client.ObjectKeyFromObject(cd), view.complete)
	if !ready {
		return errLater
	}
	kubeconfig := adminSecret(cd, kubeconfigName(cd.Name), "kubeconfig", map[string][]byte{"kubeconfig": data})
	metadata := hivev1.ClusterMetadata{
		ClusterID: view.openshiftID, InfraID: view.id, AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: kubeconfig.Name},
	}
	if !view.complete {
		if err := s.createSecret(ctx, kubeconfig); err != nil {
			return err
		}
		return s.writeMetadata(ctx, aci, metadata)
	}
	password := adminSecret(cd, passwordName(cd.Name), "kubeadmincreds", map[string][]byte{
		"username": []byte("kubeadmin"), "password": []byte("simulated-" + view.id[:8]),
	})
	metadata.AdminPasswordSecretRef = &corev1.LocalObjectReference{Name: password.Name}
	if err := s.createSecret(ctx, password); err != nil {
		return err
	}
	if err := s.replaceSecret(ctx, kubeconfig); err != nil {
		return err
	}
	return s.writeMetadata(ctx, aci, metadata)
}

// writeMetadata fills spec.clusterMetadata, the one field of a spec that the service writes.
func (s *Simulator) writeMetadata(ctx context.Context, aci *hiveext.AgentClusterInstall, want hivev1.ClusterMetadata) error {
	if aci.Spec.ClusterMetadata != nil && equality.Semantic.DeepEqual(*aci.Spec.ClusterMetadata, want) {
		return nil
	}
	aci.Spec.ClusterMetadata = &want
	return ignoreGone("cannot write the metadata of AgentClusterInstall", aci, s.client.Update(ctx, aci))
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

// createSecret creates a Secret. One of that name that is there already is taken for it, whatever it holds.
func (s *Simulator) createSecret(ctx context.Context, want *corev1.Secret) error {
	if err := s.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create Secret %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return nil
}

// replaceSecret brings the data of a Secret to what is wanted, and creates one that is not there.
func (s *Simulator) replaceSecret(ctx context.Context, want *corev1.Secret) error {
	have := &corev1.Secret{}
	err := s.reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return s.createSecret(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("cannot read Secret %s: %w", client.ObjectKeyFromObject(want), err)
	}
	before := have.DeepCopy()
	have.Data = want.Data
	if have.Labels == nil {
		have.Labels = map[string]string{}
	}
	maps.Copy(have.Labels, referencedLabels)
	if equality.Semantic.DeepEqual(before, have) {
		return nil
	}
	return ignoreGone("cannot write Secret", have, s.client.Update(ctx, have))
}

// lookForKubeconfig tells the backend whether there is a kubeconfig by which the service can see the Nodes of an installed cluster.
func (s *Simulator) lookForKubeconfig(ctx context.Context, cd *hivev1.ClusterDeployment, view clusterView) error {
	if view.state != clusterAddingHosts {
		return nil
	}
	name, secret := usedKubeconfig(cd), &corev1.Secret{}
	err := s.client.Get(ctx, types.NamespacedName{Namespace: cd.Namespace, Name: name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read Secret %s of an installed cluster: %w", name, err)
	}
	usable := err == nil && isKubeconfig(secret.Data["kubeconfig"])
	s.backend.setReachable(client.ObjectKeyFromObject(cd), usable)
	if !usable {
		return nil
	}
	return s.labelReferenced(ctx, secret)
}

func isKubeconfig(data []byte) bool {
	_, err := clientcmd.RESTConfigFromKubeConfig(data)
	return err == nil
}

// installsOfKubeconfig are the AgentClusterInstalls of the clusters whose kubeconfig is in a Secret.
func (s *Simulator) installsOfKubeconfig(ctx context.Context, obj client.Object) []reconcile.Request {
	var deployments hivev1.ClusterDeploymentList
	if err := s.client.List(ctx, &deployments, client.InNamespace(obj.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the ClusterDeployment of a Secret")
		return nil
	}
	var out []reconcile.Request
	for i := range deployments.Items {
		if cd := &deployments.Items[i]; usedKubeconfig(cd) == obj.GetName() {
			out = append(out, s.installsOf(ctx, cd)...)
		}
	}
	return out
}

// usedKubeconfig is the name of the Secret by which the service reaches an installed cluster: that which the ClusterDeployment names, else
// the one that the service has made (ASSISTED 1.4).
func usedKubeconfig(cd *hivev1.ClusterDeployment) string {
	if metadata := cd.Spec.ClusterMetadata; metadata != nil && metadata.AdminKubeconfigSecretRef.Name != "" {
		return metadata.AdminKubeconfigSecretRef.Name
	}
	return kubeconfigName(cd.Name)
}
