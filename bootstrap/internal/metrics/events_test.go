// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// queue is what events bring requests to.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// stored is a cache that has one config, or none, and nothing else.
type stored struct {
	client.Reader
	config *bootstrapv1.OpenshiftAssistedConfig
}

func (s stored) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if config, ok := into.(*bootstrapv1.OpenshiftAssistedConfig); ok && s.config != nil && s.config.Name == key.Name {
		*config = *s.config
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// machineOf is a Machine of the config "mine", with or without a Node.
func machineOf(node string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", UID: "1", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}, CreationTimestamp: metav1.NewTime(noon),
	}}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: "mine",
	}
	m.Status.NodeRef.Name = node
	return m
}

// TestEventsOfMachines: the Node of a Machine is counted once, if its config says that its host was recognised here, and the event goes on.
func TestEventsOfMachines(t *testing.T) {
	recognised := stage{recognized: bootstrapv1.HostRecognizedReason}.config()
	moved := stage{recognized: bootstrapv1.NodeJoinedReason}.config()
	recognised.Name, moved.Name = "mine", "mine"
	foreign := machineOf("node")
	foreign.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig"
	successor := machineOf("node")
	successor.UID = "2"
	for name, test := range map[string]struct {
		config *bootstrapv1.OpenshiftAssistedConfig
		before *clusterv1.Machine
		after  *clusterv1.Machine
		want   uint64
	}{
		"it gets a Node":                     {recognised, machineOf(""), machineOf("node"), 1},
		"it has one":                         {recognised, machineOf("node"), machineOf("node"), 0},
		"it was moved here":                  {moved, machineOf(""), machineOf("node"), 0},
		"its config is gone":                 {nil, machineOf(""), machineOf("node"), 0},
		"it is another provider's":           {recognised, machineOf(""), foreign, 0},
		"it is another one of the same name": {recognised, machineOf(""), successor, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			days := Days{Client: stored{config: test.config}, Gate: gate{missing: []string{assisted.CRDAgentClusterInstalls}}}
			passed := 0
			machines := days.Machines(handler.Funcs{UpdateFunc: func(context.Context, event.UpdateEvent, queue) { passed++ }})
			counted, _ := observed(t, phaseSeconds, metrics.PhaseNode, metrics.RoleControlPlane, metrics.DayOne)
			machines.Update(t.Context(), event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, nil)
			now, _ := observed(t, phaseSeconds, metrics.PhaseNode, metrics.RoleControlPlane, metrics.DayOne)
			g.Expect(now - counted).To(Equal(test.want))
			g.Expect(passed).To(Equal(1))
			machines.Create(t.Context(), event.CreateEvent{Object: test.after}, nil)
			again, _ := observed(t, phaseSeconds, metrics.PhaseNode, metrics.RoleControlPlane, metrics.DayOne)
			g.Expect(again).To(Equal(now), "a manager that starts is told of all Machines as new ones")
		})
	}
}

// TestEventsOfAgents: an Agent is refused when it gets the note, and not when a manager starts and finds it there.
func TestEventsOfAgents(t *testing.T) {
	g := NewWithT(t)
	agents := Agents(handler.Funcs{})
	plain, noted, other := &assisted.Agent{}, &assisted.Agent{}, &assisted.Agent{}
	noted.Annotations = map[string]string{bootstrapv1.RecognitionAnnotation: "nobody"}
	other.Annotations = map[string]string{bootstrapv1.RecognitionAnnotation: "still nobody"}
	refused := agentsRefused.WithLabelValues(metrics.RefusedNotRecognised)
	before := testutil.ToFloat64(refused)
	agents.Create(t.Context(), event.CreateEvent{Object: noted}, nil)
	g.Expect(testutil.ToFloat64(refused) - before).To(BeZero())
	for _, change := range [][2]*assisted.Agent{{plain, noted}, {noted, other}, {other, plain}} {
		agents.Update(t.Context(), event.UpdateEvent{ObjectOld: change[0], ObjectNew: change[1]}, nil)
		g.Expect(testutil.ToFloat64(refused) - before).To(Equal(1.0))
	}
	agents.Delete(t.Context(), event.DeleteEvent{Object: noted}, nil)
	g.Expect(testutil.ToFloat64(refused) - before).To(Equal(1.0))
}

// TestEventsOfReadyMachines: a Machine is ready for the first time once, also when its Node comes and goes; of one that has its Node since
// before the manager acts, nobody knows whether it is the first time.
func TestEventsOfReadyMachines(t *testing.T) {
	g := NewWithT(t)
	config := stage{recognized: bootstrapv1.HostRecognizedReason}.config()
	config.Name = "mine"
	machines := Days{Client: stored{config: config}, Gate: gate{missing: []string{assisted.CRDAgentClusterInstalls}}}.Machines(handler.Funcs{})
	state := func(uid types.UID, node string, ready metav1.ConditionStatus) *clusterv1.Machine {
		m := machineOf(node)
		m.UID = uid
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: ready}}
		return m
	}
	begin, _ := observed(t, phaseSeconds, metrics.PhaseReady, metrics.RoleControlPlane, metrics.DayOne)
	expect := func(uid types.UID, count uint64, states ...*clusterv1.Machine) {
		for i := range len(states) - 1 {
			machines.Update(t.Context(), event.UpdateEvent{ObjectOld: states[i], ObjectNew: states[i+1]}, nil)
		}
		now, _ := observed(t, phaseSeconds, metrics.PhaseReady, metrics.RoleControlPlane, metrics.DayOne)
		g.Expect(now-begin).To(Equal(count), string(uid))
	}
	expect("new", 1, state("new", "", metav1.ConditionFalse), state("new", "n", metav1.ConditionUnknown),
		state("new", "n", metav1.ConditionFalse), state("new", "n", metav1.ConditionTrue))
	expect(
		"new",
		1,
		state("new", "n", metav1.ConditionTrue),
		state("new", "n", metav1.ConditionFalse),
		state("new", "n", metav1.ConditionTrue),
	)
	expect("old", 1, state("old", "n", metav1.ConditionFalse), state("old", "n", metav1.ConditionTrue))
	expect("at once", 2, state("at once", "", metav1.ConditionFalse), state("at once", "n", metav1.ConditionTrue))
	expect("short", 2, state("short", "", metav1.ConditionFalse), state("short", "n", metav1.ConditionFalse))
	machines.Delete(t.Context(), event.DeleteEvent{Object: state("short", "n", metav1.ConditionFalse)}, nil)
	expect("short", 2, state("short", "n", metav1.ConditionFalse), state("short", "n", metav1.ConditionTrue))
}
