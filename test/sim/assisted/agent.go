// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

const (
	agentFinalizer       = "agent.agent-install.openshift.io/ai-deprovision"
	agentPrefix          = "agent.agent-install.openshift.io/"
	inventoryPrefix      = "inventory.agent-install.openshift.io/"
	skipCleanup          = agentPrefix + "skip-spoke-cleanup"
	clusterNamespaceLink = "agent-install.openshift.io/clusterdeployment-namespace"
)

func (s *Simulator) setupAgent(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("assisted-agent").
		For(&aiv1.Agent{}).
		WatchesRawSource(s.agents.source()).
		WithOptions(s.controllerOptions()).
		Complete(s.agents.tracked(s.reconcileAgent))
}

func (s *Simulator) reconcileAgent(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	if result, down := s.paused(); down {
		return result, nil
	}
	view, known := s.backend.hostView(req.Name)
	known = known && view.infraEnv.Namespace == req.Namespace
	agent := &aiv1.Agent{}
	err := s.client.Get(ctx, req.NamespacedName, agent)
	switch {
	case apierrors.IsNotFound(err) && known:
		return ctrl.Result{}, s.createAgent(ctx, view)
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case !agent.DeletionTimestamp.IsZero():
		return s.deleteAgent(ctx, agent, view, known)
	case !known:
		return ctrl.Result{}, nil
	}
	return s.syncAgent(ctx, agent)
}

// createAgent makes the Agent of a host that has just registered. If it existed before, somebody has deleted it, and the
// host is forgotten.
func (s *Simulator) createAgent(ctx context.Context, view hostView) error {
	key := types.NamespacedName{Namespace: view.infraEnv.Namespace, Name: view.id}
	if view.created {
		err := s.reader.Get(ctx, key, &aiv1.Agent{})
		if apierrors.IsNotFound(err) {
			s.backend.removeHost(view)
			return nil
		}
		return err
	}
	env := &aiv1.InfraEnv{}
	if err := s.client.Get(ctx, view.infraEnv, env); err != nil {
		if apierrors.IsNotFound(err) {
			s.backend.removeHost(view)
			return nil
		}
		return fmt.Errorf("cannot read InfraEnv %s of host %s: %w", view.infraEnv, view.id, err)
	}
	agent := &aiv1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	adopt(agent, env)
	if err := s.client.Create(ctx, agent); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create Agent %s: %w", key, err)
	}
	s.backend.markCreated(view.id)
	return nil
}

// adopt gives an Agent the metadata and the empty spec that it starts with in an InfraEnv (ASSISTED 1.2).
func adopt(agent *aiv1.Agent, env *aiv1.InfraEnv) {
	agent.Labels = maps.Clone(env.Spec.AgentLabels)
	if agent.Labels == nil {
		agent.Labels = map[string]string{}
	}
	agent.Labels[infraEnvLabel] = env.Name
	agent.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: aiv1.GroupVersion.String(), Kind: "InfraEnv", Name: env.Name, UID: env.UID,
	}}
	if agent.Annotations == nil {
		agent.Annotations = map[string]string{}
	}
	for _, name := range []string{"state", "role", "inventory", "validations-info", "current-stage"} {
		agent.Annotations[agentPrefix+name] = ""
	}
	agent.Spec = aiv1.AgentSpec{}
	if ref := env.Spec.ClusterRef; ref != nil {
		agent.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: ref.Name, Namespace: ref.Namespace}
	}
}

// syncAgent pushes the spec to the backend and mirrors the backend in the Agent.
func (s *Simulator) syncAgent(ctx context.Context, agent *aiv1.Agent) (ctrl.Result, error) {
	before := agent.DeepCopy()
	_, moved := s.backend.takeMove(agent.Name)
	if moved {
		if err := s.readopt(ctx, agent); err != nil {
			return ctrl.Result{}, err
		}
	}
	specErr := s.syncSpec(ctx, agent)
	s.backend.setSynced(agent.Name, specErr == nil)
	joins, err := s.lookForNode(ctx, agent.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	view, ok := s.backend.hostView(agent.Name)
	if !ok {
		return ctrl.Result{}, nil
	}
	result := ctrl.Result{RequeueAfter: s.backend.opts.Durations.Churn}
	if joins {
		result.RequeueAfter = s.backend.opts.Durations.Monitor
	}
	if specErr != nil && !isUserError(specErr) {
		result.RequeueAfter = s.backend.opts.Durations.BackendRetry
	}
	if done, err := s.cleanAfterUnbind(ctx, agent, view); !done || err != nil {
		return ctrl.Result{RequeueAfter: s.backend.opts.Durations.BackendRetry}, err
	}
	view.approved = agent.Spec.Approved
	s.decorate(agent, view)
	s.fillStatus(agent, view, specErr)
	return result, s.writeAgent(ctx, agent, before, moved)
}

// readopt moves an Agent to the InfraEnv through which its host registered last.
func (s *Simulator) readopt(ctx context.Context, agent *aiv1.Agent) error {
	view, _ := s.backend.hostView(agent.Name)
	env := &aiv1.InfraEnv{}
	if err := s.client.Get(ctx, view.infraEnv, env); err != nil {
		return client.IgnoreNotFound(err)
	}
	adopt(agent, env)
	return nil
}

// writeAgent sends what changed: metadata and spec in one patch, the status in another. The status of a host that has moved goes first: the
// webhook takes another cluster only when the status says that the host does not install.
func (s *Simulator) writeAgent(ctx context.Context, agent, before *aiv1.Agent, moved bool) error {
	writes := []func(context.Context, *aiv1.Agent, *aiv1.Agent) error{s.writeAgentSpec, s.writeAgentStatus}
	if moved {
		slices.Reverse(writes)
	}
	for _, write := range writes {
		if err := write(ctx, agent, before); err != nil {
			return err
		}
	}
	return nil
}

func (s *Simulator) writeAgentSpec(ctx context.Context, agent, before *aiv1.Agent) error {
	changed := agent.DeepCopy()
	changed.Status = before.Status
	if equality.Semantic.DeepEqual(changed, before) {
		return nil
	}
	return ignoreGone("cannot patch Agent", agent, s.client.Patch(ctx, changed, client.MergeFrom(before)))
}

func (s *Simulator) writeAgentStatus(ctx context.Context, agent, before *aiv1.Agent) error {
	changed := before.DeepCopy()
	changed.Status = agent.Status
	if equality.Semantic.DeepEqual(changed, before) {
		return nil
	}
	return ignoreGone("cannot write the status of Agent", agent, s.client.Status().Patch(ctx, changed, client.MergeFrom(before)))
}

func ignoreGone(what string, obj client.Object, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, client.ObjectKeyFromObject(obj), err)
}

// syncSpec sends an Agent's spec to the backend. The error is what SpecSynced shows.
func (s *Simulator) syncSpec(ctx context.Context, agent *aiv1.Agent) error {
	view, ok := s.backend.hostView(agent.Name)
	if !ok || isOneOf(view.state, leavingStates) {
		return nil
	}
	ref := agent.Spec.ClusterDeploymentName
	switch {
	case ref == nil && view.clusterID != "":
		if err := s.backend.unbind(agent.Name); err != nil {
			return err
		}
	case ref != nil && view.clusterID == "":
		cd := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if err := s.backend.bindOnce(agent.Name, signature(agent), cd); err != nil {
			return err
		}
	}
	if err := s.checkFencing(ctx, agent); err != nil {
		return err
	}
	return s.backend.applySpec(agent.Name, agent.Spec)
}

// signature changes with everything in an Agent that somebody else than the service may have changed.
func signature(agent *aiv1.Agent) string {
	annotations := maps.Clone(agent.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		own := strings.HasPrefix(key, agentPrefix) || strings.HasPrefix(key, inventoryPrefix)
		return own && key != skipCleanup
	})
	labels := maps.Clone(agent.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return strings.HasPrefix(key, inventoryPrefix) || key == clusterNamespaceLink
	})
	var text strings.Builder
	for _, m := range []map[string]string{annotations, labels, agent.Spec.NodeLabels} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&text, "%q=%q;", key, m[key])
		}
		text.WriteByte('|')
	}
	fmt.Fprintf(&text, "%d", agent.Generation)
	return text.String()
}

// cleanAfterUnbind removes the Node that a host leaves behind in the cluster that it was taken out of. As long as that
// fails the Agent's status stays what it was (ASSISTED 8.5 f).
func (s *Simulator) cleanAfterUnbind(ctx context.Context, agent *aiv1.Agent, view hostView) (done bool, err error) {
	if view.deprovision == nil || isOneOf(view.state, leavingStates) {
		return true, nil
	}
	_, skip := agent.Annotations[skipCleanup]
	reachable, err := s.leftClusterReachable(ctx, view.deprovision.cluster)
	if err != nil {
		return false, err
	}
	if !skip && reachable {
		if err := s.backend.opts.Workload.RemoveNode(ctx, view.deprovision.cluster, view.deprovision.node); err != nil {
			return false, s.showCleanupError(ctx, agent, err)
		}
	}
	s.backend.finishDeprovision(agent.Name)
	return true, nil
}

// leftClusterReachable says whether there is a cluster to clean up in: its ClusterDeployment stays, and there is a
// kubeconfig.
func (s *Simulator) leftClusterReachable(ctx context.Context, cluster types.NamespacedName) (bool, error) {
	cd := &hivev1.ClusterDeployment{}
	err := s.reader.Get(ctx, cluster, cd)
	if err == nil && cd.DeletionTimestamp.IsZero() {
		secret := types.NamespacedName{Namespace: cluster.Namespace, Name: kubeconfigName(cluster.Name)}
		err = s.reader.Get(ctx, secret, &corev1.Secret{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot see whether cluster %s has a Node to clean up: %w", cluster, err)
	}
	return cd.DeletionTimestamp.IsZero(), nil
}

func (s *Simulator) showCleanupError(ctx context.Context, agent *aiv1.Agent, cause error) error {
	before := agent.DeepCopy()
	if agent.Status.DeprovisionInfo == nil || agent.Status.DeprovisionInfo.Message == cause.Error() {
		return nil
	}
	agent.Status.DeprovisionInfo.Message = cause.Error()
	return ignoreGone("cannot write the status of Agent", agent, s.client.Status().Patch(ctx, agent, client.MergeFrom(before)))
}

// deleteAgent deregisters the host. The Node of a host that has joined is deleted too, unless the caller or a deletion
// of the whole cluster says otherwise (ASSISTED 1.2).
func (s *Simulator) deleteAgent(ctx context.Context, agent *aiv1.Agent, view hostView, known bool) (ctrl.Result, error) {
	if !known {
		return ctrl.Result{}, s.dropFinalizer(ctx, agent, agentFinalizer)
	}
	// The cache may show an Agent that is gone, and whose machine has registered again by that name.
	live := &aiv1.Agent{}
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(agent), live); err != nil || live.UID != agent.UID {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	needed, err := s.needsCleanup(ctx, agent, view)
	if err != nil {
		return ctrl.Result{}, err
	}
	if needed {
		if err := s.backend.opts.Workload.RemoveNode(ctx, view.cluster, agent.Spec.Hostname); err != nil {
			return s.cleanupBlocked(ctx, agent, err)
		}
	}
	s.backend.removeHost(view)
	return ctrl.Result{}, s.dropFinalizer(ctx, agent, agentFinalizer)
}

func (s *Simulator) cleanupBlocked(ctx context.Context, agent *aiv1.Agent, cause error) (ctrl.Result, error) {
	before := agent.DeepCopy()
	s.setAgentCondition(
		&agent.Status.Conditions, condition{condCleanup, no, "CleanupFailed", "failed to clean spoke cluster resources: " + cause.Error()},
	)
	if !equality.Semantic.DeepEqual(before.Status, agent.Status) {
		if err := s.client.Status().Patch(ctx, agent, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, ignoreGone("cannot write the status of Agent", agent, err)
		}
	}
	return ctrl.Result{RequeueAfter: s.backend.opts.Durations.BackendRetry}, nil
}

func (s *Simulator) needsCleanup(ctx context.Context, agent *aiv1.Agent, view hostView) (bool, error) {
	_, skip := agent.Annotations[skipCleanup]
	joined := view.stage == StageDone || !view.approvedCSRs.IsZero()
	if skip || view.clusterID == "" || !joined {
		return false, nil
	}
	for _, obj := range []struct {
		key    types.NamespacedName
		object client.Object
	}{
		{view.cluster, &hivev1.ClusterDeployment{}},
		{view.install, &hiveext.AgentClusterInstall{}},
		{view.infraEnv, &aiv1.InfraEnv{}},
	} {
		err := s.client.Get(ctx, obj.key, obj.object)
		if apierrors.IsNotFound(err) || err == nil && !obj.object.GetDeletionTimestamp().IsZero() {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot read %s, on which the cleanup of Agent %s depends: %w", obj.key, agent.Name, err)
		}
	}
	return true, nil
}

// decorate writes the service's labels and annotations.
func (s *Simulator) decorate(agent *aiv1.Agent, view hostView) {
	if !slices.Contains(agent.Finalizers, agentFinalizer) {
		agent.Finalizers = append(agent.Finalizers, agentFinalizer)
	}
	if agent.Annotations == nil {
		agent.Annotations = map[string]string{}
	}
	if agent.Labels == nil {
		agent.Labels = map[string]string{}
	}
	agent.Annotations[inventoryPrefix+"version"] = "0.1"
	agent.Annotations[agentPrefix+"state"] = view.state
	agent.Annotations[agentPrefix+"role"] = view.role
	agent.Annotations[agentPrefix+"current-stage"] = view.stage
	if ref := agent.Spec.ClusterDeploymentName; ref != nil {
		agent.Labels[clusterNamespaceLink] = ref.Namespace
	}
	if view.inventory == nil {
		return
	}
	maps.Copy(agent.Labels, inventoryLabels(view.inventory))
	if raw, err := json.Marshal(inventoryOf(view.inventory)); err == nil {
		agent.Annotations[agentPrefix+"inventory"] = string(raw)
	}
}
