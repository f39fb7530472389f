// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// awaitDrain makes a Machine one that is being deleted and that nothing but the pre-drain hook of etcd keeps from being drained.
func awaitDrain(v *view.View, name string) {
	m := v.Machines.Owned[name]
	m.DeletionTimestamp, m.Annotations = &metav1.Time{Time: noon}, map[string]string{
		controlplanev1.EtcdHookAnnotation: "", controlplanev1.EtcdDrainHookAnnotation: "",
	}
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.MachineDeletingWaitingForPreDrainHookReason})
}

// updating makes the hosts of the control plane ones that are restarted one after the other.
func updating(v *view.View) { v.Workload.Updates.PoolUpdating = because(yes, "1 of 3") }

// pauseUpdate pauses the pool of the control plane's hosts before all of them are up to date. The machine-config operator says then that it
// updates none.
func pauseUpdate(v *view.View, away int) {
	v.Workload.Updates = &workload.Updates{
		PoolUpdating: because(no, "Pool is paused; will not update to rendered-master-2"), PoolDegraded: because(no, ""),
		PoolPaused: true, PoolBehind: true, PoolAway: away,
	}
}

// notReady makes the Node of a Machine one that has not been ready for a while.
func notReady(v *view.View, name string, since time.Duration) {
	conditions.Set(v.Machines.Owned[name], metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown,
		Reason: "Test", LastTransitionTime: metav1.NewTime(noon.Add(-since))})
}

// TestDrain: a Node is not cordoned while the hosts restart, which a cordoned Node would stop.
func TestDrain(t *testing.T) {
	away := func(since time.Duration) func(*view.View) {
		return func(v *view.View) {
			updating(v)
			notReady(v, "cp-0", since)
		}
	}
	for name, tc := range map[string]struct {
		change func(*view.View)
		// waits is a part of what the Machine waits for; empty when it is drained.
		waits string
	}{
		"nothing restarts":         {change: func(*view.View) {}},
		"the hosts restart":        {change: updating, waits: "The hosts are restarted one after the other"},
		"an upgrade is about to":   {change: func(v *view.View) { askForUpgrade(v) }, waits: "asks for 4.20.8, which is about to begin"},
		"the cluster says nothing": {change: func(v *view.View) { v.Workload.Updates = nil }, waits: "has not said whether its hosts"},
		"its own host restarts":    {change: away(29 * time.Minute), waits: "The hosts are restarted"},
		"its own host is dead":     {change: away(30 * time.Minute)},
		"the pool is paused": {change: func(v *view.View) {
			askForUpgrade(v)
			pauseUpdate(v, 0)
		}},
		"the pool is paused, and a host is away": {waits: "asks for 4.20.8, which is about to begin", change: func(v *view.View) {
			askForUpgrade(v)
			pauseUpdate(v, 1)
		}},
		"the pool is paused, no upgrade is on its way, and a host is away": {waits: "is paused before all its hosts are up to date",
			change: func(v *view.View) { pauseUpdate(v, 1) }},
		"the pool is paused, and its own Node is cordoned": {change: func(v *view.View) {
			pauseUpdate(v, 1)
			v.Workload.Nodes = []workload.ControlPlaneNode{{Name: v.Machines.Owned["cp-0"].Status.NodeRef.Name, Ready: true, Cordoned: true}}
		}},
		"somebody has cordoned its Node": {waits: "Node n0 is cordoned already", change: func(v *view.View) {
			updating(v)
			v.Workload.Nodes = []workload.ControlPlaneNode{{Name: v.Machines.Owned["cp-0"].Status.NodeRef.Name, Ready: true, Cordoned: true}}
		}},
		"the pool is paused, and a host has still to join": {waits: "asks for 4.20.8, which is about to begin", change: func(v *view.View) {
			askForUpgrade(v)
			pauseUpdate(v, 0)
			v.Machines.Owned["cp-1"].Status.NodeRef.Name = ""
		}},
		"the pool is paused, and etcd has members enough": {change: func(v *view.View) {
			askForUpgrade(v)
			pauseUpdate(v, 0)
			v.ControlPlane.Spec.Replicas = new(int32(5))
		}},
		"the pool is paused, and all its hosts are up to date": {change: func(v *view.View) {
			pauseUpdate(v, 1)
			v.Workload.Updates.PoolBehind = false
		}},
		"nobody hears from the Nodes": {change: func(v *view.View) {
			away(time.Hour)(v)
			conditions.Set(v.Cluster, metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionFalse,
				Reason: "Test"})
		}, waits: "The hosts are restarted"},
		"it never had a Node":         {change: func(v *view.View) { updating(v); v.Machines.Owned["cp-0"].Status.NodeRef.Name = "" }},
		"the installation has failed": {change: func(v *view.View) { updating(v); v.Life = view.Failed }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := unhealthyView(voter(0), voter(1), voter(2))
			m := v.Machines.Owned["cp-0"]
			says(clusterv1.MachineNodeReadyCondition, metav1.ConditionTrue)(m)
			awaitDrain(v, "cp-0")
			tc.change(v)
			d := plan.LeavingOf(v)
			if tc.waits == "" {
				g.Expect(d.Drain).To(ConsistOf(m))
				g.Expect(d.Waiting).To(BeEmpty())
				return
			}
			g.Expect(d.Drain).To(BeEmpty())
			g.Expect(d.Waiting).To(HaveKeyWithValue("cp-0", ContainSubstring(tc.waits)))
			m.Annotations[clusterv1.PreDrainDeleteHookAnnotationPrefix+"/of-somebody-else"] = ""
			g.Expect(plan.LeavingOf(v).Waiting).To(BeEmpty(), "its hook is not the last")
		})
	}
}
