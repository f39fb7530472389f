// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// machineSet creates the worker Machines that the MachineDeployment asks for.
func (w *world) machineSet() {
	md := &clusterv1.MachineDeployment{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "md"}, md))
	for i := range int(*md.Spec.Replicas) {
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("worker-%d", i), Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName},
				OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: "ms", UID: "ms", Controller: new(true)}},
			},
			Spec: clusterv1.MachineSpec{ClusterName: clusterName, Version: kubelet},
		}
		m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: view.ConfigKind, Name: m.Name,
		}
		w.must(client.IgnoreAlreadyExists(w.client.Create(context.Background(), m)))
	}
}

// bootstrap registers an Agent for every Machine, and binds it when the gate is open; a bound host is ready one step later.
func (w *world) bootstrap() {
	for _, m := range w.machines() {
		if w.unbootable[m.Name] {
			continue
		}
		role := assisted.RoleWorker
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			role = assisted.RoleMaster
		}
		agent := &assisted.Agent{}
		err := w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "agent-" + m.Name}, agent)
		switch {
		case err != nil:
			w.must(client.IgnoreNotFound(err))
			agent = &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "agent-" + m.Name, Annotations: map[string]string{bootstrapv1.ClaimAnnotation: assisted.Claim(&m)},
			}}
			agent.Status.DebugInfo.State = assisted.AgentStateKnownUnbound
			w.must(w.client.Create(context.Background(), agent))
		case agent.Spec.ClusterDeploymentName == nil && assisted.GateOf(w.install(), role) == assisted.GateDayOne:
			agent.Spec = assisted.AgentSpec{
				ClusterDeploymentName: &assisted.ClusterReference{Namespace: namespace, Name: "cp"}, Role: role, Approved: true,
			}
			w.must(w.client.Update(context.Background(), agent))
		case agent.Spec.ClusterDeploymentName != nil && agent.Status.DebugInfo.State == assisted.AgentStateKnownUnbound:
			ready(agent)
			w.must(w.client.Update(context.Background(), agent))
		}
	}
}

func ready(a *assisted.Agent) {
	a.Status.DebugInfo.State = assisted.AgentStateKnown
	a.Status.Conditions = []assisted.Condition{
		{Type: assisted.ConditionBound, Status: corev1.ConditionTrue}, {Type: assisted.ConditionSpecSynced, Status: corev1.ConditionTrue},
		{Type: assisted.ConditionConnected, Status: corev1.ConditionTrue},
		{Type: assisted.ConditionRequirementsMet, Status: corev1.ConditionTrue, Reason: assisted.ReasonAgentIsReady},
	}
}

// service is assisted-service: it starts at the moment of equality unless held, and then goes from stage to stage.
func (w *world) service() {
	install := w.install()
	if install == nil {
		w.stage = 0
		return
	}
	if install.UID != w.serves {
		w.serves, w.stage = install.UID, 0
	}
	if w.stage == 0 {
		masters, workers, unready := 0, 0, 0
		for _, a := range w.agents() {
			switch {
			case !a.BoundTo(namespace, "cp"):
			case !a.ReadyToInstall():
				unready++
			case a.Spec.Role == assisted.RoleMaster:
				masters++
			default:
				workers++
			}
		}
		wanted := hiveext.ProvisionRequirements{ControlPlaneAgents: masters, WorkerAgents: workers}
		if !install.Spec.HoldInstallation && unready == 0 && install.Spec.ProvisionRequirements == wanted {
			w.stage = 1
		}
	} else {
		w.stage++
	}
	w.report(install)
}

// report writes what the service says at its stage.
func (w *world) report(install *hiveext.AgentClusterInstall) {
	states := []string{
		assisted.ClusterStateInsufficient, assisted.ClusterStatePreparing, assisted.ClusterStateInstalling, assisted.ClusterStateFinalizing,
	}
	reason := hiveext.ClusterInstallationInProgressReason
	completed, failed := corev1.ConditionFalse, corev1.ConditionFalse
	state := assisted.ClusterStateAddingHosts
	switch {
	case w.failed():
		failed, state, reason = corev1.ConditionTrue, "error", hiveext.ClusterInstallationFailedReason
	case w.stage == 0:
		state, reason = states[0], hiveext.ClusterInstallationNotStartedReason
	case w.stage < len(states):
		state = states[w.stage]
	default:
		completed, reason = corev1.ConditionTrue, hiveext.ClusterInstalledReason
	}
	switch {
	case w.stage >= 2 && install.Spec.ClusterMetadata == nil:
		w.publishCredentials(install, "installer", nil)
	case w.stage == len(states) && !w.failed(): // Once, whatever becomes of the Secret afterwards.
		w.publishCredentials(install, "installer-completed", &corev1.LocalObjectReference{Name: "cp-admin-password"})
	}
	install.Status.DebugInfo.State = state
	percentages := []int64{0, 0, 10, 80, 100}
	install.Status.Progress.TotalPercentage = percentages[min(w.installedStage(), len(percentages)-1)]
	if w.forgetful {
		install.Status.Progress.TotalPercentage = 0
	}
	install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterCompletedCondition, Status: completed, Reason: reason},
		{Type: hiveext.ClusterFailedCondition, Status: failed, Message: "The installation failed: " + w.failure()},
	}
	w.must(w.client.Status().Update(context.Background(), install))
	w.installHosts(install)
}

// stageFinalizing is the stage of the service in which the hosts are installed.
const stageFinalizing = 3

// failed says whether the installation has failed, and installedStage how far it came.
func (w *world) failed() bool { return w.failAt > 0 && w.stage >= w.failAt }

func (w *world) installedStage() int {
	if w.failed() {
		return w.failAt - 1
	}
	return w.stage
}

// failure is why the installation fails.
func (w *world) failure() string {
	if w.failAt > stageFinalizing {
		return "Cluster installation timeout while finalizing"
	}
	return "cluster has hosts in error"
}

// installHosts writes what the service says of the hosts of the first installation. When it fails, they all turn to errors, installed or
// not.
func (w *world) installHosts(install *hiveext.AgentClusterInstall) {
	names, _ := assisted.DayOneAgents(install)
	for _, a := range w.agents() {
		if w.stage == 0 || !a.BoundTo(namespace, "cp") || !slices.Contains(names, a.Name) {
			continue
		}
		state, installed, reason := "installing-in-progress", corev1.ConditionFalse, assisted.ReasonInstallationInProgress
		switch stage := w.installedStage(); {
		case stage < 2:
			state = assisted.AgentStatePreparing
		case stage < stageFinalizing:
			a.Status.Progress.CurrentStage = "Rebooting"
		default:
			state, installed, reason = "installed", corev1.ConditionTrue, "InstallationCompleted"
			a.Status.Progress.CurrentStage = assisted.StageDone
		}
		if w.failed() {
			state, installed, reason = "error", corev1.ConditionFalse, assisted.ReasonInstallationFailed
			a.Status.DebugInfo.StateInfo = clusterFailedToInstall
		}
		a.Status.DebugInfo.State = state
		a.Status.Conditions = slices.DeleteFunc(a.Status.Conditions, func(c assisted.Condition) bool {
			return c.Type == assisted.ConditionInstalled || c.Type == assisted.ConditionRequirementsMet
		})
		a.Status.Conditions = append(a.Status.Conditions, assisted.Condition{
			Type: assisted.ConditionInstalled, Status: installed, Reason: reason,
		})
		w.must(w.client.Update(context.Background(), &a))
	}
}

// publishCredentials writes the installer's kubeconfig, whose content the service replaces at the end, when there is a password (ASSISTED
// fact 7).
func (w *world) publishCredentials(install *hiveext.AgentClusterInstall, user string, password *corev1.LocalObjectReference) {
	cd := &hivev1.ClusterDeployment{}
	w.must(w.client.Get(context.Background(), key, cd))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "cp-admin-kubeconfig",
			OwnerReferences: []metav1.OwnerReference{{Kind: "ClusterDeployment", Name: "cp", UID: cd.UID}},
		},
		Data: map[string][]byte{assisted.KubeconfigKey: []byte(kubeconfigOf(user))},
	}
	w.must(client.IgnoreNotFound(w.client.Delete(context.Background(), secret.DeepCopy())))
	w.must(w.client.Create(context.Background(), secret))
	install.Spec.ClusterMetadata = &hivev1.ClusterMetadata{
		ClusterID: clusterID, InfraID: "infra", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: secret.Name},
		AdminPasswordSecretRef: password,
	}
	w.must(w.client.Update(context.Background(), install))
	install.Status.DebugInfo.State = ""
}

func kubeconfigOf(user string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"x","cluster":{"server":"https://api:6443"}}],` +
		`"contexts":[{"name":"x","context":{"cluster":"x","user":"` + user + `"}}],"users":[{"name":"` + user + `","user":{"token":"t"}}]}`
}

// core gives Machines of an installed cluster their Nodes.
func (w *world) core() {
	if w.api.ID == "" {
		return
	}
	for _, m := range w.machines() {
		if m.Status.NodeRef.IsDefined() || w.unbootable[m.Name] {
			continue
		}
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: kubelet}
		for _, condition := range []string{clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition,
			clusterv1.MachineNodeReadyCondition} {
			conditions.Set(&m, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test"})
		}
		w.must(w.client.Status().Update(context.Background(), &m))
	}
}

// workload lets the installed cluster answer once the installation is complete.
func (w *world) workload() {
	if w.stage >= 4 && !w.failed() {
		w.api.ID, w.api.Last, w.api.Reported = clusterID, w.r.now(), healthyOperators()
		w.api.upgrades.Reported = installedVersion()
	}
}

// installedVersion is what a cluster says of the release that it was installed with.
func installedVersion() *workload.ClusterVersion {
	no, yes := workload.OperatorCondition{Status: "False"}, workload.OperatorCondition{Status: "True"}
	installed := workload.Release{Version: "4.20.4", Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("4", 64)}
	return &workload.ClusterVersion{
		ClusterID: clusterID, ResourceVersion: "1", Observed: true, Desired: installed,
		History:     []workload.PastRelease{{Release: installed, Completed: true}},
		Progressing: no, Failing: no, Upgradeable: yes, Accepted: yes, Invalid: no, Retrieved: no,
	}
}

// healthyOperators is what the operators of a control plane say that is well.
func healthyOperators() map[string]workload.Operator {
	operators := map[string]workload.Operator{}
	for _, name := range workload.OperatorNames() {
		operators[name] = workload.Operator{
			Available: workload.OperatorCondition{Status: "True"}, Progressing: workload.OperatorCondition{Status: "False"},
			Degraded: workload.OperatorCondition{Status: "False"},
		}
	}
	return operators
}
