// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func viewOf(initialized bool, nodesReady ...bool) *view.View {
	v := &view.View{
		ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp", UID: "cp"}},
		ClusterName:  clusterName, Now: time.Now(), Life: view.NotStarted,
	}
	v.Machines.Owned, v.Workload.Known = collections.New(), true
	if initialized {
		v.Life = view.Running
	}
	v.ControlPlane.Status.Initialization.ControlPlaneInitialized = &initialized
	for i, ready := range nodesReady {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: conditions.BoolToStatus(ready), Reason: "Test"})
		v.Machines.Owned.Insert(m)
	}
	return v
}

func testAvailable(t *testing.T) {
	down := viewOf(true, true)
	down.Workload.Down = true
	unavailable := func(name string) *view.View {
		v := viewOf(true, true, true, true)
		v.Workload.Operators = healthyOperators()
		v.Workload.Operators[name] = workload.Operator{Available: workload.OperatorCondition{Status: "False", Message: "no quorum"}}
		return v
	}
	twoNode := func(topology controlplanev1.TwoNodeTopology, etcd string, nodesReady ...bool) *view.View {
		v := viewOf(true, nodesReady...)
		v.ControlPlane.Spec.Install.TwoNode = topology
		v.Workload.Operators = healthyOperators()
		v.Workload.Operators[workload.OperatorEtcd] = workload.Operator{
			Available: workload.OperatorCondition{Status: configv1.ConditionStatus(etcd)},
		}
		return v
	}
	arbiter := func(ready bool, nodesReady ...bool) *view.View {
		v := twoNode(controlplanev1.TwoNodeArbiter, "True", nodesReady...)
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "arbiter", Labels: map[string]string{bootstrapv1.ArbiterLabel: ""}}}
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: conditions.BoolToStatus(ready), Reason: "Test"})
		v.Machines.Workers = append(v.Machines.Workers, m, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker"}})
		return v
	}
	tests := []struct {
		name   string
		view   *view.View
		status metav1.ConditionStatus
		reason string
	}{
		{"one of two down", viewOf(true, true, false), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"one of two down, and the arbiter votes", arbiter(true, true, false), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"two Nodes well, and the arbiter down", arbiter(false, true, true), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"one of two down, and the arbiter", arbiter(false, true, false), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{
			"one of two down, and the arbiter's Node is not known", twoNode(controlplanev1.TwoNodeArbiter, "True", true, false),
			metav1.ConditionTrue, controlplanev1.AvailableReason,
		},
		{"one of two fenced", twoNode(controlplanev1.TwoNodeFencing, "True", true, false), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"one of two fenced, and etcd has stopped", twoNode(controlplanev1.TwoNodeFencing, "False", true, false), metav1.ConditionFalse,
			controlplanev1.NotAvailableReason},
		{"both down", twoNode(controlplanev1.TwoNodeFencing, "True", false, false), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"not installed", viewOf(false), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"all Nodes ready", viewOf(true, true, true, true), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"one of three down", viewOf(true, true, false, true), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"two of three down", viewOf(true, false, false, true), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"two of four down", viewOf(true, false, false, true, true), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"no Nodes", viewOf(true), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"etcd has lost its quorum", unavailable(workload.OperatorEtcd), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"no API server is available", unavailable(workload.OperatorAPIServer), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"the scheduler is no part of a quorum", unavailable(workload.OperatorScheduler), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"API down", down, metav1.ConditionFalse, controlplanev1.ConnectionDownReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := availableCondition(tt.view, decision{}, &outcomes{}); got.Status != tt.status || got.Reason != tt.reason {
				t.Errorf("got %s %s %q", got.Status, got.Reason, got.Message)
			}
		})
	}
}

func testAvailableOfAnEarlierManager(t *testing.T) {
	v := viewOf(true, true)
	v.Workload.Known = false
	conditions.Set(
		v.ControlPlane, metav1.Condition{Type: controlplanev1.AvailableCondition, Status: metav1.ConditionTrue, Reason: "Available"},
	)
	if got := availableCondition(v, decision{}, &outcomes{}); got != nil {
		t.Errorf("the condition changed to %+v before the cluster was probed", got)
	}
}

// testAvailableWithoutOperators: that etcd has lost its quorum is not forgotten when the API is lost for it.
func testAvailableWithoutOperators(t *testing.T) {
	g := NewWithT(t)
	v := viewOf(true, true, true, true)
	conditions.Set(
		v.ControlPlane, metav1.Condition{Type: controlplanev1.AvailableCondition, Status: metav1.ConditionFalse, Reason: "NotAvailable"},
	)
	g.Expect(availableCondition(v, decision{}, &outcomes{})).To(BeNil())
	v.Workload.Operators = healthyOperators()
	g.Expect(availableCondition(v, decision{}, &outcomes{})).To(HaveField("Status", metav1.ConditionTrue))
}

func agentOf(name, state, info string) *assisted.Agent {
	return &assisted.Agent{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{bootstrapv1.ClaimAnnotation: "machine-" + name + "/uid"},
		},
		Spec: assisted.AgentSpec{ClusterDeploymentName: &assisted.ClusterReference{Namespace: namespace, Name: "cp"}, Approved: true},
		Status: assisted.AgentStatus{
			DebugInfo: assisted.DebugInfo{State: state, StateInfo: info},
			Conditions: []assisted.Condition{
				{Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationFailed},
			},
		},
	}
}

func TestFailureNamesTheHostThatFailedByItself(t *testing.T) {
	v := viewOf(false)
	v.Install.AgentClusterInstall = &hiveext.AgentClusterInstall{}
	v.Install.Agents = []*assisted.Agent{
		agentOf("a", "error", clusterFailedToInstall), agentOf("b", "error", "Failed - disk is broken"), agentOf("c", "error", "Failed - late"),
	}
	failure := func() string {
		reason, message := failedReason(v, plan.RetryDecision{})
		if reason != controlplanev1.InstallationFailedReason {
			t.Errorf("the reason is %s", reason)
		}
		return message
	}
	got := failure()
	for _, want := range []string{"machine-b", "Agent b", "disk is broken", controlplanev1.RetryInstallationAnnotation} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	v.Install.Agents = nil
	v.Install.AgentClusterInstall.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterFailedCondition, Status: corev1.ConditionTrue, Message: "operators timed out."},
	}
	if got := failure(); !strings.HasPrefix(got, "operators timed out. To install again") {
		t.Errorf("without a failed host: %q", got)
	}
	v.Install.AgentClusterInstall.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterFailedCondition, Status: corev1.ConditionFalse, Message: "The installation has not failed"},
		{Type: hiveext.ClusterStoppedCondition, Status: corev1.ConditionTrue, Message: "The installation was cancelled."},
	}
	if got := failure(); !strings.HasPrefix(got, "The installation was cancelled. To install again") {
		t.Errorf("cancelled: %q", got)
	}
}

func TestWaitingForHosts(t *testing.T) {
	unsynced := []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterSpecSyncedCondition, Status: corev1.ConditionFalse, Message: "ClusterImageSet x not found"},
	}
	binding := agentOf("a", "binding", "")
	tests := []struct {
		name       string
		conditions []hivev1.ClusterInstallCondition
		agents     []*assisted.Agent
		reason     string
	}{
		{"nothing is wrong", nil, nil, controlplanev1.WaitingForHostsReason},
		{"the service cannot use the spec", unsynced, nil, controlplanev1.SpecNotSyncedReason},
		{"while a host binds it is not told", unsynced, []*assisted.Agent{binding}, controlplanev1.WaitingForHostsReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := viewOf(false)
			v.Install.Agents, v.Install.AgentClusterInstall = tt.agents, &hiveext.AgentClusterInstall{}
			v.Install.AgentClusterInstall.Status.Conditions = tt.conditions
			if reason, message := waitingForHosts(v, decision{}); reason != tt.reason || message == "" {
				t.Errorf("got %s %q", reason, message)
			}
		})
	}
}

func testMayWriteKubeconfig(t *testing.T) {
	other := []metav1.OwnerReference{{UID: "other", Controller: new(true)}}
	ours := []metav1.OwnerReference{{UID: "cp", Controller: new(true)}}
	tests := []struct {
		name   string
		secret corev1.Secret
		may    bool
	}{
		{"ours", corev1.Secret{Type: clusterv1.ClusterSecretType, ObjectMeta: metav1.ObjectMeta{OwnerReferences: ours}}, true},
		{"nobody's", corev1.Secret{Type: clusterv1.ClusterSecretType}, true},
		{"of another type", corev1.Secret{Type: corev1.SecretTypeOpaque}, false},
		{"somebody else's", corev1.Secret{Type: clusterv1.ClusterSecretType, ObjectMeta: metav1.ObjectMeta{OwnerReferences: other}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := viewOf(true)
			v.Kubeconfigs.Cluster = &tt.secret
			if got := mayWriteKubeconfig(v); got != tt.may {
				t.Errorf("mayWriteKubeconfig = %t", got)
			}
		})
	}
}

func TestHostProblems(t *testing.T) {
	g := NewWithT(t)
	v := &view.View{}
	v.Machines.Owned, v.Machines.Configs = collections.New(), map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	add := func(name, conditionType, reason string) {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		v.Machines.Workers = append(v.Machines.Workers, m)
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		conditions.Set(config, metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: "of " + name})
		v.Machines.Configs[name] = config
	}
	add("m-0", bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentReadyReason)
	g.Expect(hostProblems(v)).To(BeEmpty(), "a host that is ready is no problem")
	add("m-2", bootstrapv1.HostRecognizedCondition, bootstrapv1.DuplicateSerialNumberReason)
	add("m-1", bootstrapv1.HostHealthyCondition, bootstrapv1.HostErrorReason)
	g.Expect(hostProblems(v)).To(Equal([]string{"Machine m-1: of m-1", "Machine m-2: of m-2"}))
	add("m-0-slow", bootstrapv1.HostRecognizedCondition, bootstrapv1.WaitingForAgentReason)
	g.Expect(hostProblems(v)[2]).To(Equal("Machine m-0-slow: of m-0-slow"), "it may only take its time")
	slow := &v.Machines.Configs["m-0-slow"].Status.HostRegistration
	v.Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	slow.Attempt, slow.NextRetryTime = new(int32(1)), metav1.NewTime(v.Now.Add(16*time.Minute))
	g.Expect(hostProblems(v)).To(HaveLen(2), "not half of its 30 minutes is over")
	g.Expect(plan.SlowHostsFrom(v)).To(Equal(v.Now.Add(time.Minute)))
	v.Now = v.Now.Add(time.Minute)
	g.Expect(hostProblems(v)).To(HaveLen(3))
	g.Expect(plan.SlowHostsFrom(v)).To(BeZero())
	slow.Attempt, slow.NextRetryTime = new(int32(2)), metav1.NewTime(v.Now.Add(29*time.Minute))
	g.Expect(hostProblems(v)).To(HaveLen(3), "it was power-cycled")
	add("m-3", bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentValidationsFailingReason)
	add("m-4", bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentDisconnectedReason)
	g.Expect(hostProblems(v)).To(HaveLen(maxProblems + 1))
	g.Expect(hostProblems(v)[maxProblems]).To(Equal("and 2 more Machines"))
}

// TestInstallingNamesTheHostThatNeedsAttention: an installation that stands still is not told by the number of hosts that are ready.
func TestInstallingNamesTheHostThatNeedsAttention(t *testing.T) {
	g := NewWithT(t)
	v := viewOf(false)
	v.Install.AgentClusterInstall = &hiveext.AgentClusterInstall{}
	v.Install.AgentClusterInstall.Status.DebugInfo.State = "installing"
	v.Install.AgentClusterInstall.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionFalse, Reason: hiveext.ClusterInstallationInProgressReason},
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-0"}}
	v.Machines.Owned = collections.FromMachines(machine)
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	v.Machines.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{"m-0": config}
	for reason, message := range map[string]string{
		bootstrapv1.AgentInstallingReason:        "Installing hosts",
		bootstrapv1.AgentPendingUserActionReason: "Installing hosts; Machine m-0: fix its boot order",
	} {
		conditions.Set(config, metav1.Condition{
			Type: bootstrapv1.AgentInstalledCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "fix its boot order",
		})
		_, said := installed(v, decision{}, &outcomes{})
		g.Expect(said).To(Equal(message))
	}
}

func TestWaitingNamesTheDeletionOfTheCluster(t *testing.T) {
	g := NewWithT(t)
	v := viewOf(false)
	v.Cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}}
	reason, _ := waiting(v)
	g.Expect(reason).To(Equal(controlplanev1.ClusterDeletingReason), "also while its infrastructure is not provisioned")
}
