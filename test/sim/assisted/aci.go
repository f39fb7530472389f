// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"errors"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

const (
	aciFinalizer = "agentclusterinstall.agent-install.openshift.io/ai-deprovision"
	pauseHive    = "hive.openshift.io/reconcile-pause"
)

func (s *Simulator) setupClusterInstall(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("assisted-agentclusterinstall").
		For(&hiveext.AgentClusterInstall{}).
		Watches(&hivev1.ClusterDeployment{}, handler.EnqueueRequestsFromMapFunc(s.installsOf)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(s.installsOfKubeconfig)).
		WatchesRawSource(s.acis.source()).
		WithOptions(s.controllerOptions()).
		Complete(s.acis.tracked(s.reconcileClusterInstall))
}

// installsOf are the AgentClusterInstalls of a ClusterDeployment.
func (s *Simulator) installsOf(ctx context.Context, obj client.Object) []reconcile.Request {
	installs, err := s.clusterInstalls(ctx, client.ObjectKeyFromObject(obj))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the AgentClusterInstall of a ClusterDeployment")
		return nil
	}
	var out []reconcile.Request
	for i := range installs {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&installs[i])})
	}
	return out
}

func (s *Simulator) clusterInstalls(ctx context.Context, cd types.NamespacedName) ([]hiveext.AgentClusterInstall, error) {
	var list hiveext.AgentClusterInstallList
	if err := s.client.List(ctx, &list, client.InNamespace(cd.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the AgentClusterInstalls of ClusterDeployment %s: %w", cd, err)
	}
	return slices.DeleteFunc(list.Items, func(aci hiveext.AgentClusterInstall) bool {
		return aci.Spec.ClusterDeploymentRef.Name != cd.Name
	}), nil
}

func (s *Simulator) reconcileClusterInstall(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	if result, down := s.paused(); down {
		return result, nil
	}
	aci := &hiveext.AgentClusterInstall{}
	if err := s.client.Get(ctx, req.NamespacedName, aci); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cdKey := types.NamespacedName{Namespace: aci.Namespace, Name: aci.Spec.ClusterDeploymentRef.Name}
	if !aci.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, s.deleteClusterInstall(ctx, aci, cdKey)
	}
	before := aci.DeepCopy()
	cd := &hivev1.ClusterDeployment{}
	err := s.client.Get(ctx, cdKey, cd)
	if apierrors.IsNotFound(err) {
		// The cache of one kind may be behind that of the other: in the recordings nobody is told of an object that exists.
		err = s.reader.Get(ctx, cdKey, cd)
	}
	if apierrors.IsNotFound(err) {
		err = userError("ClusterDeployment with name '%s' in namespace '%s' not found", cdKey.Name, cdKey.Namespace)
		return ctrl.Result{}, s.writeClusterStatus(ctx, aci, before, nil, err)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot read ClusterDeployment %s: %w", cdKey, err)
	}
	if !cd.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if err := s.claimClusterInstall(ctx, aci, cd); err != nil {
		return ctrl.Result{}, err
	}
	return s.syncClusterInstall(ctx, aci, cd)
}

// claimClusterInstall puts on the finalizer and the reference to the ClusterDeployment (ASSISTED 1.3).
func (s *Simulator) claimClusterInstall(ctx context.Context, aci *hiveext.AgentClusterInstall, cd *hivev1.ClusterDeployment) error {
	before := aci.DeepCopy()
	if !slices.Contains(aci.Finalizers, aciFinalizer) {
		aci.Finalizers = append(aci.Finalizers, aciFinalizer)
	}
	if !slices.ContainsFunc(aci.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == cd.UID }) {
		aci.OwnerReferences = append(aci.OwnerReferences, ownerOf(cd))
	}
	if equality.Semantic.DeepEqual(before.ObjectMeta, aci.ObjectMeta) {
		return nil
	}
	return ignoreGone("cannot claim AgentClusterInstall", aci, s.client.Patch(ctx, aci, client.MergeFrom(before)))
}

func ownerOf(cd *hivev1.ClusterDeployment) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: hivev1.SchemeGroupVersion.String(), Kind: "ClusterDeployment", Name: cd.Name, UID: cd.UID,
	}
}

func (s *Simulator) syncClusterInstall(
	ctx context.Context, aci *hiveext.AgentClusterInstall, cd *hivev1.ClusterDeployment,
) (ctrl.Result, error) {
	before := aci.DeepCopy()
	result := ctrl.Result{RequeueAfter: s.backend.opts.Durations.Churn}
	input, specErr := s.clusterInput(ctx, aci, cd)
	if specErr != nil {
		result.RequeueAfter = s.backend.opts.Durations.BackendRetry
	} else {
		s.backend.syncCluster(client.ObjectKeyFromObject(cd), client.ObjectKeyFromObject(aci), input)
	}
	view, ok := s.backend.clusterView(client.ObjectKeyFromObject(cd))
	if !ok {
		return result, s.writeClusterStatus(ctx, aci, before, nil, specErr)
	}
	publishErr := s.publishCredentials(ctx, aci, cd, view)
	switch {
	case errors.Is(publishErr, errLater):
		result.RequeueAfter = s.backend.opts.Durations.Monitor
	case isRequestError(publishErr):
		result.RequeueAfter, specErr = s.backend.opts.Durations.BackendRetry, publishErr
	case publishErr != nil:
		return ctrl.Result{}, publishErr
	}
	if err := s.lookForKubeconfig(ctx, cd, view); err != nil {
		return ctrl.Result{}, err
	}
	return result, s.writeClusterStatus(ctx, aci, before, &view, specErr)
}

// clusterInput reads what the cluster is made of. Its errors are those of SpecSynced.
func (s *Simulator) clusterInput(
	ctx context.Context, aci *hiveext.AgentClusterInstall, cd *hivev1.ClusterDeployment,
) (clusterInput, error) {
	input := clusterInput{
		ControlPlaneAgents: aci.Spec.ProvisionRequirements.ControlPlaneAgents,
		WorkerAgents:       aci.Spec.ProvisionRequirements.WorkerAgents,
		Held:               aci.Spec.HoldInstallation || cd.Annotations[pauseHive] == "true",
		Imported:           cd.Spec.Installed,
		Name:               cd.Spec.ClusterName,
		BaseDomain:         cd.Spec.BaseDomain,
		APIVIPs:            virtualIPs(aci.Spec.APIVIPs, aci.Spec.APIVIP),
		IngressVIPs:        virtualIPs(aci.Spec.IngressVIPs, aci.Spec.IngressVIP),
		MachineAPI:         hasMachineAPI(aci),
	}
	input.Network = len(input.APIVIPs) > 0
	var err error
	if input.ArbiterAgents, err = s.arbiters(ctx, aci); err != nil {
		return input, err
	}
	if err := checkClusterSpec(aci, input.ArbiterAgents); err != nil && !cd.Spec.Installed {
		return input, err
	}
	if err := s.checkPullSecret(ctx, cd); err != nil && !cd.Spec.Installed {
		return input, err
	}
	if aci.Spec.ImageSetRef == nil {
		return input, nil
	}
	imageSet := &hivev1.ClusterImageSet{}
	err = s.client.Get(ctx, types.NamespacedName{Name: aci.Spec.ImageSetRef.Name}, imageSet)
	if apierrors.IsNotFound(err) {
		return input, serverError("failed to get cluster image set %s: ClusterImageSet.hive.openshift.io %q not found",
			aci.Spec.ImageSetRef.Name, aci.Spec.ImageSetRef.Name)
	}
	input.ReleaseImage = imageSet.Spec.ReleaseImage
	return input, err
}

func virtualIPs(many []string, one string) []string {
	if len(many) == 0 && one != "" {
		return []string{one}
	}
	return slices.Clone(many)
}

func (s *Simulator) checkPullSecret(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	if cd.Spec.PullSecretRef == nil {
		return serverError("failed to validate pull secret: missing reference to pull secret")
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: cd.Namespace, Name: cd.Spec.PullSecretRef.Name}
	if err := s.client.Get(ctx, key, secret); err != nil {
		return serverError("failed to validate pull secret: failed to get pull secret %s: %v", key, err)
	}
	return s.labelReferenced(ctx, secret)
}

// writeClusterStatus mirrors the backend's cluster. A nil view stands for a cluster that the service does not know.
func (s *Simulator) writeClusterStatus(
	ctx context.Context, aci, before *hiveext.AgentClusterInstall, view *clusterView, specErr error,
) error {
	status := &aci.Status
	conditions := unavailableConditions()
	if view != nil {
		conditions = clusterConditions(*view)
		s.fillClusterStatus(aci, *view)
	}
	for _, c := range append(conditions, synced(specErr, "SyncOK")) {
		s.setClusterCondition(&status.Conditions, c)
	}
	if equality.Semantic.DeepEqual(before.Status, aci.Status) {
		return nil
	}
	base := aci.DeepCopy()
	base.Status = before.Status
	// Both are always in the patch: made against an old version of the cache, it would change one of them alone, and show a state that the
	// service was never in.
	base.Status.DebugInfo, base.Status.Conditions = hiveext.DebugInfo{}, nil
	return ignoreGone("cannot write the status of AgentClusterInstall", aci, s.client.Status().Patch(ctx, aci, client.MergeFrom(base)))
}

func (s *Simulator) fillClusterStatus(aci *hiveext.AgentClusterInstall, view clusterView) {
	status := &aci.Status
	base := s.backend.opts.ImageBaseURL + "/api/assisted-install/v2/"
	status.DebugInfo = hiveext.DebugInfo{
		EventsURL: base + "events?cluster_id=" + view.id, LogsURL: status.DebugInfo.LogsURL, State: view.state, StateInfo: view.info,
	}
	status.Progress.TotalPercentage = view.progress
	if info := clusterValidations(view); info != nil {
		status.ValidationsInfo = info
	}
	status.MachineNetwork = aci.Spec.Networking.MachineNetwork
	status.APIVIPs, status.IngressVIPs = view.spec.APIVIPs, view.spec.IngressVIPs
	if len(view.nodeIPs) > 0 && len(view.spec.APIVIPs) == 0 {
		status.APIVIPs, status.IngressVIPs = view.nodeIPs[:1], view.nodeIPs[:1]
	}
	if len(status.APIVIPs) > 0 {
		status.APIVIP = status.APIVIPs[0]
	}
	if len(status.IngressVIPs) > 0 {
		status.IngressVIP = status.IngressVIPs[0]
	}
	single := view.spec.ControlPlaneAgents == 1
	status.UserManagedNetworking = ptr.To(ptr.Deref(aci.Spec.Networking.UserManagedNetworking, single))
	status.PlatformType = platformOf(aci, *status.UserManagedNetworking)
	status.ControlPlaneAgentsDiscovered, status.ControlPlaneAgentsReady = view.tally.masters, view.tally.mastersReady
	status.WorkerAgentsDiscovered, status.WorkerAgentsReady = view.tally.workers, view.tally.workersReady
}

func platformOf(aci *hiveext.AgentClusterInstall, userManaged bool) hiveext.PlatformType {
	switch {
	case aci.Spec.PlatformType != "":
		return aci.Spec.PlatformType
	case userManaged:
		return hiveext.NonePlatformType
	}
	return hiveext.BareMetalPlatformType
}

// setClusterCondition sets one condition of an AgentClusterInstall.
func (s *Simulator) setClusterCondition(conditions *[]hivev1.ClusterInstallCondition, c condition) {
	setCondition(s, conditions, c, func(o *hivev1.ClusterInstallCondition) conditionFields[hivev1.ClusterInstallConditionType] {
		return conditionFields[hivev1.ClusterInstallConditionType]{
			&o.Type, &o.Status, &o.Reason, &o.Message, &o.LastProbeTime, &o.LastTransitionTime,
		}
	})
}

// deleteClusterInstall deregisters the cluster and frees its hosts: Agents that came through an InfraEnv of this cluster
// are deleted, the others are unbound (ASSISTED 1.3, 8.5).
func (s *Simulator) deleteClusterInstall(ctx context.Context, aci *hiveext.AgentClusterInstall, cd types.NamespacedName) error {
	s.backend.removeCluster(cd)
	preserve, err := s.preserved(ctx, cd)
	if err != nil {
		return err
	}
	var agents aiv1.AgentList
	if err := s.client.List(ctx, &agents, client.InNamespace(cd.Namespace)); err != nil {
		return fmt.Errorf("cannot list the Agents of ClusterDeployment %s: %w", cd, err)
	}
	for i := range agents.Items {
		if ref := agents.Items[i].Spec.ClusterDeploymentName; ref == nil || ref.Name != cd.Name {
			continue
		}
		// The webhook lets an Agent go only when its status says that it does not install any more: until then, this fails and is repeated.
		if err := s.freeAgent(ctx, &agents.Items[i], preserve); err != nil {
			return err
		}
	}
	return s.dropFinalizer(ctx, aci, aciFinalizer)
}

func (s *Simulator) preserved(ctx context.Context, key types.NamespacedName) (bool, error) {
	cd := &hivev1.ClusterDeployment{}
	if err := s.client.Get(ctx, key, cd); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return cd.Spec.PreserveOnDelete, nil
}

func (s *Simulator) freeAgent(ctx context.Context, agent *aiv1.Agent, preserve bool) error {
	env := &aiv1.InfraEnv{}
	err := s.client.Get(ctx, types.NamespacedName{Namespace: agent.Namespace, Name: agent.Labels[infraEnvLabel]}, env)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read the InfraEnv of Agent %s: %w", client.ObjectKeyFromObject(agent), err)
	}
	if preserve || env.Spec.ClusterRef != nil {
		return ignoreGone("cannot delete Agent", agent, s.client.Delete(ctx, agent))
	}
	before := agent.DeepCopy()
	agent.Spec.ClusterDeploymentName = nil
	return ignoreGone("cannot free Agent", agent, s.client.Patch(ctx, agent, client.MergeFrom(before)))
}
