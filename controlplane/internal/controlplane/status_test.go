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
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func scopeOf(initialized bool, nodesReady ...bool) *scope {
	s := &scope{
		controlPlane: &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp", UID: "cp"}},
		clusterName:  clusterName, machines: collections.New(), connectionKnown: true, now: time.Now(),
	}
	s.controlPlane.Status.Initialization.ControlPlaneInitialized = &initialized
	for i, ready := range nodesReady {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: conditions.BoolToStatus(ready), Reason: "Test"})
		s.machines.Insert(m)
	}
	return s
}

func testAvailable(t *testing.T) {
	down := scopeOf(true, true)
	down.connectionDown = true
	unavailable := func(name string) *scope {
		s := scopeOf(true, true, true, true)
		s.operators = healthyOperators()
		s.operators[name] = workload.Operator{Available: workload.OperatorCondition{Status: "False", Message: "no quorum"}}
		return s
	}
	twoNode := func(topology controlplanev1.TwoNodeTopology, etcd string, nodesReady ...bool) *scope {
		s := scopeOf(true, nodesReady...)
		s.controlPlane.Spec.Install.TwoNode = topology
		s.operators = healthyOperators()
		s.operators[workload.OperatorEtcd] = workload.Operator{Available: workload.OperatorCondition{Status: configv1.ConditionStatus(etcd)}}
		return s
	}
	arbiter := func(ready bool, nodesReady ...bool) *scope {
		s := twoNode(controlplanev1.TwoNodeArbiter, "True", nodesReady...)
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "arbiter", Labels: map[string]string{bootstrapv1.ArbiterLabel: ""}}}
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: conditions.BoolToStatus(ready), Reason: "Test"})
		s.workers = append(s.workers, m, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker"}})
		return s
	}
	tests := []struct {
		name   string
		scope  *scope
		status metav1.ConditionStatus
		reason string
	}{
		{"one of two down", scopeOf(true, true, false), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
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
		{"not installed", scopeOf(false), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"all Nodes ready", scopeOf(true, true, true, true), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"one of three down", scopeOf(true, true, false, true), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"two of three down", scopeOf(true, false, false, true), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"two of four down", scopeOf(true, false, false, true, true), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"no Nodes", scopeOf(true), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"etcd has lost its quorum", unavailable(workload.OperatorEtcd), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"no API server is available", unavailable(workload.OperatorAPIServer), metav1.ConditionFalse, controlplanev1.NotAvailableReason},
		{"the scheduler is no part of a quorum", unavailable(workload.OperatorScheduler), metav1.ConditionTrue, controlplanev1.AvailableReason},
		{"API down", down, metav1.ConditionFalse, controlplanev1.ConnectionDownReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := availableCondition(tt.scope, decision{}); got.Status != tt.status || got.Reason != tt.reason {
				t.Errorf("got %s %s %q", got.Status, got.Reason, got.Message)
			}
		})
	}
}

func testAvailableOfAnEarlierManager(t *testing.T) {
	s := scopeOf(true, true)
	s.connectionKnown = false
	conditions.Set(
		s.controlPlane, metav1.Condition{Type: controlplanev1.AvailableCondition, Status: metav1.ConditionTrue, Reason: "Available"},
	)
	if got := availableCondition(s, decision{}); got != nil {
		t.Errorf("the condition changed to %+v before the cluster was probed", got)
	}
}

// testAvailableWithoutOperators: that etcd has lost its quorum is not forgotten when the API is lost for it.
func testAvailableWithoutOperators(t *testing.T) {
	g := NewWithT(t)
	s := scopeOf(true, true, true, true)
	conditions.Set(
		s.controlPlane, metav1.Condition{Type: controlplanev1.AvailableCondition, Status: metav1.ConditionFalse, Reason: "NotAvailable"},
	)
	g.Expect(availableCondition(s, decision{})).To(BeNil())
	s.operators = healthyOperators()
	g.Expect(availableCondition(s, decision{})).To(HaveField("Status", metav1.ConditionTrue))
}

func agentOf(name, state, info string) assisted.Agent {
	return assisted.Agent{
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
	s := scopeOf(false)
	s.install = &hiveext.AgentClusterInstall{}
	s.agents = []assisted.Agent{
		agentOf("a", "error", clusterFailedToInstall), agentOf("b", "error", "Failed - disk is broken"), agentOf("c", "error", "Failed - late"),
	}
	got := failure(s)
	for _, want := range []string{"machine-b", "Agent b", "disk is broken", controlplanev1.RetryInstallationAnnotation} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	s.agents = nil
	s.install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterFailedCondition, Status: corev1.ConditionTrue, Message: "operators timed out."},
	}
	if got := failure(s); !strings.HasPrefix(got, "operators timed out. To install again") {
		t.Errorf("without a failed host: %q", got)
	}
	s.install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterFailedCondition, Status: corev1.ConditionFalse, Message: "The installation has not failed"},
		{Type: hiveext.ClusterStoppedCondition, Status: corev1.ConditionTrue, Message: "The installation was cancelled."},
	}
	if got := failure(s); !strings.HasPrefix(got, "The installation was cancelled. To install again") {
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
		agents     []assisted.Agent
		reason     string
	}{
		{"nothing is wrong", nil, nil, controlplanev1.WaitingForHostsReason},
		{"the service cannot use the spec", unsynced, nil, controlplanev1.SpecNotSyncedReason},
		{"while a host binds it is not told", unsynced, []assisted.Agent{binding}, controlplanev1.WaitingForHostsReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scopeOf(false)
			s.agents, s.install = tt.agents, &hiveext.AgentClusterInstall{}
			s.install.Status.Conditions = tt.conditions
			if reason, message := waitingForHosts(s, decision{}, ""); reason != tt.reason || message == "" {
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
			s := scopeOf(true)
			s.kubeconfig = &tt.secret
			if got := mayWriteKubeconfig(s); got != tt.may {
				t.Errorf("mayWriteKubeconfig = %t", got)
			}
		})
	}
}

func TestHostProblems(t *testing.T) {
	g := NewWithT(t)
	s := &scope{machines: collections.New(), configs: map[string]*bootstrapv1.OpenshiftAssistedConfig{}}
	add := func(name, conditionType, reason string) {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.workers = append(s.workers, m)
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		conditions.Set(config, metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: "of " + name})
		s.configs[name] = config
	}
	add("m-0", bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentReadyReason)
	g.Expect(hostProblems(s)).To(BeEmpty(), "a host that is ready is no problem")
	add("m-2", bootstrapv1.HostRecognizedCondition, bootstrapv1.DuplicateSerialNumberReason)
	add("m-1", bootstrapv1.HostHealthyCondition, bootstrapv1.HostErrorReason)
	g.Expect(hostProblems(s)).To(Equal([]string{"Machine m-1: of m-1", "Machine m-2: of m-2"}))
	add("m-3", bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentValidationsFailingReason)
	add("m-4", bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentDisconnectedReason)
	g.Expect(hostProblems(s)).To(HaveLen(maxProblems + 1))
	g.Expect(hostProblems(s)[maxProblems]).To(Equal("and 1 more Machines"))
}

func TestWaitingNamesTheDeletionOfTheCluster(t *testing.T) {
	g := NewWithT(t)
	s := scopeOf(false)
	s.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}}
	reason, _ := waiting(s)
	g.Expect(reason).To(Equal(controlplanev1.ClusterDeletingReason), "also while its infrastructure is not provisioned")
}
