// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

const (
	infraEnvFinalizer = "infraenv.agent-install.openshift.io/ai-deprovision"
	infraEnvLabel     = "infraenvs.agent-install.openshift.io"
	condImageCreated  = "ImageCreated"
)

// referencedLabels are put on every Secret that a resource of the service names.
var referencedLabels = map[string]string{
	"agent-install.openshift.io/watch":          "true",
	"cluster.open-cluster-management.io/backup": "true",
}

func (s *Simulator) setupInfraEnv(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("assisted-infraenv").
		For(&aiv1.InfraEnv{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(s.infraEnvsInNamespace)).
		Watches(&aiv1.NMStateConfig{}, handler.EnqueueRequestsFromMapFunc(s.infraEnvsInNamespace)).
		Watches(&hivev1.ClusterDeployment{}, handler.EnqueueRequestsFromMapFunc(s.infraEnvsInNamespace)).
		WatchesRawSource(s.infraEnvs.source()).
		WithOptions(s.controllerOptions()).
		Complete(reconcile.Func(s.reconcileInfraEnv))
}

// infraEnvsInNamespace are those that may depend on an object: which of them do is found out when they are reconciled.
func (s *Simulator) infraEnvsInNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	var list aiv1.InfraEnvList
	if err := s.client.List(ctx, &list, client.InNamespace(obj.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list the InfraEnvs of a namespace", "namespace", obj.GetNamespace())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

func (s *Simulator) reconcileInfraEnv(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	if result, down := s.paused(); down {
		return result, nil
	}
	env := &aiv1.InfraEnv{}
	if err := s.client.Get(ctx, req.NamespacedName, env); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !env.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, s.deleteInfraEnv(ctx, env)
	}
	if err := s.ensureFinalizer(ctx, env, infraEnvFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	before := env.DeepCopy()
	result, err := s.syncImage(ctx, env)
	if err != nil {
		return ctrl.Result{}, err
	}
	if equality.Semantic.DeepEqual(before.Status, env.Status) {
		return result, nil
	}
	if err := s.client.Status().Patch(ctx, env, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("cannot write the status of InfraEnv %s: %w", req, err)
	}
	return result, nil
}

// syncImage brings the image up to date and fills the status. Mistakes of the user end in the condition; the error is
// for what the API server refused.
func (s *Simulator) syncImage(ctx context.Context, env *aiv1.InfraEnv) (ctrl.Result, error) {
	inputs, err := s.imageInputs(ctx, env)
	if err != nil {
		return s.imageFailed(env, err)
	}
	var ref *types.NamespacedName
	if env.Spec.ClusterRef != nil {
		ref = &types.NamespacedName{Namespace: env.Spec.ClusterRef.Namespace, Name: env.Spec.ClusterRef.Name}
	}
	view, err := s.backend.syncInfraEnv(client.ObjectKeyFromObject(env), ref, inputs)
	if err != nil {
		return s.imageFailed(env, err)
	}
	env.Status.ISODownloadURL = view.isoURL
	env.Status.CreatedTime = ptr.To(metav1.Unix(view.created, 0))
	env.Status.AgentLabelSelector = metav1.LabelSelector{MatchLabels: map[string]string{infraEnvLabel: env.Name}}
	env.Status.DebugInfo.EventsURL = view.base + "/api/assisted-install/v2/events?infra_env_id=" + view.id
	files := s.artifacts.url + artifactPath(view.id) + "?api_key=" + view.token + "&file_name="
	boot := view.base + "/boot-artifacts/"
	env.Status.BootArtifacts = aiv1.BootArtifacts{
		Initrd: boot + "initrd?arch=" + view.architecture, Kernel: boot + "kernel?arch=" + view.architecture,
		Rootfs:     boot + "rootfs?arch=" + view.architecture,
		IPXEScript: files + "ipxe-script", DiscoveryIgnitionURL: files + discoveryIgnition,
	}
	s.setAgentCondition(
		&env.Status.Conditions, condition{condImageCreated, yes, "InfraEnvAvailable", "InfraEnv is available: Image has been created"},
	)
	return ctrl.Result{}, nil
}

// imageFailed writes why there is no image. A missing cluster leaves an earlier URL alone, anything else empties it
// (ASSISTED 1.1).
func (s *Simulator) imageFailed(env *aiv1.InfraEnv, cause error) (ctrl.Result, error) {
	var request *requestError
	switch {
	case errors.Is(cause, errMissingCluster):
		ref := env.Spec.ClusterRef
		s.setAgentCondition(&env.Status.Conditions, condition{condImageCreated, unknown, "MissingClusterDeployment", fmt.Sprintf(
			"ClusterDeployment is missing: failed to get clusterDeployment with name %s in namespace %s: "+
				"ClusterDeployment.hive.openshift.io %q not found", ref.Name, ref.Namespace, ref.Name)})
		return ctrl.Result{RequeueAfter: s.backend.opts.Durations.BackendRetry}, nil
	case errors.As(cause, &request):
		env.Status.ISODownloadURL, env.Status.CreatedTime = "", nil
		s.setAgentCondition(
			&env.Status.Conditions, condition{condImageCreated, no, "ImageCreationError", "Failed to create image: " + cause.Error()},
		)
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, cause
}

// imageInputs collects what the image is made of, from the InfraEnv and all that it refers to.
func (s *Simulator) imageInputs(ctx context.Context, env *aiv1.InfraEnv) (imageInputs, error) {
	secret, err := s.pullSecret(ctx, env)
	if err != nil {
		return imageInputs{}, err
	}
	network, networks, err := s.networkInputs(ctx, env)
	if err != nil {
		return imageInputs{}, err
	}
	mirrors, err := s.mirrorInputs(ctx, env)
	if err != nil {
		return imageInputs{}, err
	}
	in := imageInputs{
		Mirrors:    mirrors,
		PullSecret: string(secret.Data[corev1.DockerConfigJsonKey]), SSHKey: env.Spec.SSHAuthorizedKey,
		NTP: env.Spec.AdditionalNTPSources, NTPSources: env.Spec.NTPSources, Ignition: env.Spec.IgnitionConfigOverride,
		KernelArguments: env.Spec.KernelArguments, TrustBundle: env.Spec.AdditionalTrustBundle,
		OSImageVersion: env.Spec.OSImageVersion, ImageType: env.Spec.ImageType,
		DiscoveryDelay: ptr.Deref(env.Spec.NetworkDiscoveryDelaySecond, 0), Network: network, Networks: networks,
		Architecture: cmp.Or(env.Spec.CPUArchitecture, defaultArchitecture),
	}
	if env.Spec.Proxy != nil {
		in.Proxy = string(env.Spec.Proxy.Raw)
	}
	return in, nil
}

// pullSecret reads the Secret and labels it, as the service does with all that it depends on.
func (s *Simulator) pullSecret(ctx context.Context, env *aiv1.InfraEnv) (*corev1.Secret, error) {
	if env.Spec.PullSecretRef == nil {
		return nil, userError("pull secret must be provided")
	}
	key := types.NamespacedName{Namespace: env.Namespace, Name: env.Spec.PullSecretRef.Name}
	secret := &corev1.Secret{}
	if err := s.client.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, userError("failed to get pull secret: Secret %q not found", key.Name)
		}
		return nil, fmt.Errorf("cannot read the pull secret %s of an InfraEnv: %w", key, err)
	}
	return secret, s.labelReferenced(ctx, secret)
}

// labelReferenced puts the service's labels on a Secret that one of its resources names.
func (s *Simulator) labelReferenced(ctx context.Context, secret *corev1.Secret) error {
	before := secret.DeepCopy()
	labels := maps.Clone(secret.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, referencedLabels)
	if maps.Equal(labels, secret.Labels) {
		return nil
	}
	secret.Labels = labels
	if err := s.client.Patch(ctx, secret, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot label Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// mirrorInputs are the mirrors of the ConfigMap that the InfraEnv names.
func (s *Simulator) mirrorInputs(ctx context.Context, env *aiv1.InfraEnv) (string, error) {
	ref := env.Spec.MirrorRegistryRef
	if ref == nil {
		return "", nil
	}
	mirrors := &corev1.ConfigMap{}
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, mirrors); err != nil {
		if apierrors.IsNotFound(err) {
			return "", userError("failed to get mirror registry: ConfigMap %q not found", ref.Name)
		}
		return "", fmt.Errorf("cannot read the mirrors %s of an InfraEnv: %w", ref.Name, err)
	}
	if mirrors.Data["registries.conf"] == "" {
		return "", userError("ConfigMap %s has no key registries.conf", ref.Name)
	}
	return mirrors.Data["registries.conf"] + mirrors.Data["ca-bundle.crt"], nil
}

// networkInputs are the NMStateConfigs that the InfraEnv selects, in all namespaces, as the service looks for them: as text that differs
// when they do, and as they are read.
func (s *Simulator) networkInputs(ctx context.Context, env *aiv1.InfraEnv) (texts []string, networks []network, err error) {
	selector := env.Spec.NMStateConfigLabelSelector
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, nil, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, nil, userError("nmStateConfigLabelSelector is invalid: %v", err)
	}
	var list aiv1.NMStateConfigList
	if err := s.client.List(ctx, &list, client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, nil, fmt.Errorf("cannot list the NMStateConfigs of InfraEnv %s: %w", client.ObjectKeyFromObject(env), err)
	}
	for _, item := range list.Items {
		host, err := parseNetwork(&item)
		if err != nil {
			return nil, nil, err
		}
		raw, err := json.Marshal(item.Spec)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot compare NMStateConfig %s: %w", client.ObjectKeyFromObject(&item), err)
		}
		texts, networks = append(texts, client.ObjectKeyFromObject(&item).String()+"="+string(raw)), append(networks, host)
	}
	slices.SortFunc(texts, strings.Compare)
	return texts, networks, nil
}

// deleteInfraEnv forgets the InfraEnv and deletes its Agents, which in a full cluster the garbage collector would do too.
func (s *Simulator) deleteInfraEnv(ctx context.Context, env *aiv1.InfraEnv) error {
	key := client.ObjectKeyFromObject(env)
	s.backend.removeInfraEnv(key)
	var agents aiv1.AgentList
	if err := s.client.List(ctx, &agents, client.InNamespace(env.Namespace), client.MatchingLabels{infraEnvLabel: env.Name}); err != nil {
		return fmt.Errorf("cannot list the Agents of InfraEnv %s: %w", key, err)
	}
	for i := range agents.Items {
		if err := s.client.Delete(ctx, &agents.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete Agent %s of InfraEnv %s: %w", agents.Items[i].Name, key, err)
		}
	}
	return s.dropFinalizer(ctx, env, infraEnvFinalizer)
}

func (s *Simulator) ensureFinalizer(ctx context.Context, obj client.Object, finalizer string) error {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.AddFinalizer(obj, finalizer) {
		return nil
	}
	if err := s.client.Patch(ctx, obj, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot put finalizer %s on %s: %w", finalizer, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

func (s *Simulator) dropFinalizer(ctx context.Context, obj client.Object, finalizer string) error {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.RemoveFinalizer(obj, finalizer) {
		return nil
	}
	if err := s.client.Patch(ctx, obj, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot take finalizer %s off %s: %w", finalizer, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
