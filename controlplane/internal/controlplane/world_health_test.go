// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// unhealthyAfter is how long a Node is not ready before the MachineHealthCheck of the world says that its Machine is not healthy.
const unhealthyAfter = 5 * time.Minute

// answers makes Cluster API core say that the cluster's API answers, and that it has for long.
func (w *world) answers() {
	w.t.Helper()
	cluster := &clusterv1.Cluster{}
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: clusterName}, cluster))
	conditions.Set(cluster, metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.ClusterRemoteConnectionProbeSucceededReason, LastTransitionTime: metav1.NewTime(w.now.Add(-time.Hour))})
	w.must(w.client.Status().Update(context.Background(), cluster))
}

// nodeHealth is what Cluster API core says of the Nodes, and a MachineHealthCheck of their Machines.
func (w *world) nodeHealth() {
	w.t.Helper()
	for _, m := range w.machines() {
		host := w.installed.hosts[m.Name]
		if host == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if host.Ready && !w.installed.unreachable {
			delete(w.darkSince, m.Name)
		} else if _, dark := w.darkSince[m.Name]; !dark {
			w.darkSince[m.Name] = w.now
		}
		before := m.DeepCopy()
		since, dark := w.darkSince[m.Name]
		set(&m, clusterv1.MachineNodeReadyCondition, !dark)
		switch {
		case !dark:
			set(&m, clusterv1.MachineHealthCheckSucceededCondition, true)
		case w.now.Sub(since) >= unhealthyAfter && !conditions.IsFalse(&m, clusterv1.MachineHealthCheckSucceededCondition):
			set(&m, clusterv1.MachineHealthCheckSucceededCondition, false)
			set(&m, clusterv1.MachineOwnerRemediatedCondition, false)
		}
		w.must(w.client.Status().Patch(context.Background(), &m, client.MergeFrom(before)))
	}
}

// set sets a condition of a Machine.
func set(m *clusterv1.Machine, condition string, is bool) {
	conditions.Set(m, metav1.Condition{Type: condition, Status: conditions.BoolToStatus(is), Reason: "Test",
		Message: "what the test says"})
}
