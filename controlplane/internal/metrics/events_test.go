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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// stored is a cache that has a config, whose host was recognised for a reason, and a control plane.
type stored struct {
	client.Reader
	recognized   string
	controlPlane *controlplanev1.OpenshiftAssistedControlPlane
}

func (s stored) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *bootstrapv1.OpenshiftAssistedConfig:
		conditions.Set(o, metav1.Condition{Type: bootstrapv1.HostRecognizedCondition, Status: metav1.ConditionTrue, Reason: s.recognized})
		return nil
	case *controlplanev1.OpenshiftAssistedControlPlane:
		if s.controlPlane != nil {
			*o = *s.controlPlane
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// member is a control-plane Machine with the reasons of conditions, by their types.
func member(node string, reasons map[string]string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", UID: "m", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
		OwnerReferences: []metav1.OwnerReference{{Kind: kindControlPlane, Name: "cp", UID: "cp", Controller: ptr.To(true)}},
	}}
	m.Status.NodeRef.Name = node
	for conditionType, reason := range reasons {
		conditions.Set(m, metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason})
	}
	return m
}

// TestReplacementJoined: the replacement of an unhealthy Machine is complete when the new Machine gets its Node, and that once.
func TestReplacementJoined(t *testing.T) {
	replacing := func(node string) *clusterv1.Machine {
		m := member(node, nil)
		m.Annotations = map[string]string{controlplanev1.RemediationForAnnotation: view.Remediation{Machine: "old"}.String()}
		return m
	}
	for name, test := range map[string]struct {
		recognized    string
		before, after *clusterv1.Machine
		want          float64
	}{
		"it gets a Node":           {bootstrapv1.HostRecognizedReason, replacing(""), replacing("node"), 1},
		"it has one":               {bootstrapv1.HostRecognizedReason, replacing("node"), replacing("node"), 0},
		"it has none yet":          {bootstrapv1.HostRecognizedReason, replacing(""), replacing(""), 0},
		"it takes nobody's place":  {bootstrapv1.HostRecognizedReason, member("", nil), member("node", nil), 0},
		"it was moved here before": {bootstrapv1.NodeJoinedReason, replacing(""), replacing("node"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			completed := replacements.WithLabelValues(metrics.CauseUnhealthy, metrics.ReplacementCompleted)
			before := testutil.ToFloat64(completed)
			machines := Machines(stored{recognized: test.recognized}, handler.Funcs{})
			machines.Create(t.Context(), event.CreateEvent{Object: test.after}, nil)
			g.Expect(testutil.ToFloat64(completed)-before).To(BeZero(), "a manager that starts is told of all Machines as new ones")
			machines.Update(t.Context(), event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, nil)
			g.Expect(testutil.ToFloat64(completed) - before).To(Equal(test.want))
		})
	}
}

// TestOutdatedGone: an outdated Machine is replaced when it is gone, as long as its control plane is there and it was not unhealthy too.
func TestOutdatedGone(t *testing.T) {
	outdated := map[string]string{clusterv1.MachineUpToDateCondition: controlplanev1.MachineNotUpToDateReason}
	unhealthy := map[string]string{
		clusterv1.MachineUpToDateCondition:        controlplanev1.MachineNotUpToDateReason,
		clusterv1.MachineOwnerRemediatedCondition: controlplanev1.MachineRemediationDeletingReason,
	}
	alive := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "cp", UID: "cp"}}
	successor := alive.DeepCopy()
	successor.UID = "other"
	going := alive.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	worker := member("node", outdated)
	worker.Labels = nil
	foreign := member("node", outdated)
	foreign.OwnerReferences[0].Kind = "KubeadmControlPlane"
	for name, test := range map[string]struct {
		controlPlane *controlplanev1.OpenshiftAssistedControlPlane
		machine      *clusterv1.Machine
		deleted      bool
		want         float64
	}{
		"it was outdated":               {alive, member("node", outdated), true, 1},
		"it was up to date":             {alive, member("node", nil), true, 0},
		"it was unhealthy":              {alive, member("node", unhealthy), true, 0},
		"it left the cache":             {alive, member("node", outdated), false, 0},
		"it was a worker":               {alive, worker, true, 0},
		"it was another provider's":     {alive, foreign, true, 0},
		"its control plane is deleted":  {going, member("node", outdated), true, 0},
		"its control plane is gone":     {nil, member("node", outdated), true, 0},
		"its control plane has another": {successor, member("node", outdated), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if test.deleted {
				test.machine.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			completed := replacements.WithLabelValues(metrics.CauseOutdated, metrics.ReplacementCompleted)
			before := testutil.ToFloat64(completed)
			Machines(stored{controlPlane: test.controlPlane}, handler.Funcs{}).
				Delete(t.Context(), event.DeleteEvent{Object: test.machine}, nil)
			NewWithT(t).Expect(testutil.ToFloat64(completed) - before).To(Equal(test.want))
		})
	}
}
