// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// availableCondition is nil while nothing new is known: of a cluster that was seen by an earlier manager, or whose operators cannot be
// asked and are remembered by nothing but the condition.
func availableCondition(v *view.View, d decision, o *outcomes) *metav1.Condition {
	condition := &metav1.Condition{
		Type: controlplanev1.AvailableCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.NotAvailableReason,
	}
	switch {
	case !v.Initialized() && v.Record != nil:
		condition.Message = conditions.GetMessage(v.ControlPlane, controlplanev1.InstalledCondition)
	case !v.Initialized():
		// The condition Installed was set before; clusterctl describe shows only this one, so it has to say why.
		condition.Message = "The cluster is not installed yet: " + conditions.GetMessage(v.ControlPlane, controlplanev1.InstalledCondition)
	case v.Workload.OtherCluster != "":
		condition.Status, condition.Reason = metav1.ConditionUnknown, controlplanev1.OtherClusterReason
		condition.Message = plan.OtherCluster(v)
	case v.Workload.Down:
		condition.Reason = controlplanev1.ConnectionDownReason
		condition.Message = "The API of the cluster does not answer"
	case !v.Workload.Known && conditions.Has(v.ControlPlane, controlplanev1.AvailableCondition):
		return nil
	default:
		condition.Message = lostQuorum(v)
	}
	if condition.Message != "" {
		return condition
	}
	if v.Workload.Operators == nil && conditions.Has(v.ControlPlane, controlplanev1.AvailableCondition) {
		return nil
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.AvailableReason
	// The cluster is well, but nobody looks after it: Installed does not say so any more.
	_, condition.Message = obstacle(v, d, o)
	return condition
}

// lostQuorum says what of an initialized cluster has no quorum: Nodes, etcd or the API; it is empty when nothing is lost (CONTRACT CP-80).
func lostQuorum(v *view.View) string {
	nodes, ready := 0, 0
	var notReady []string
	for _, m := range voters(v) {
		if !m.Status.NodeRef.IsDefined() {
			continue // It is being provisioned, or scaled up, and no member of the quorum yet.
		}
		nodes++
		if conditions.IsTrue(m, clusterv1.MachineNodeReadyCondition) {
			ready++
		} else {
			notReady = append(notReady, m.Name)
		}
	}
	if nodes == 0 || ready <= nodes/2 && !oneNodeIsEnough(v, nodes, ready) {
		message := fmt.Sprintf("%d of %d control-plane Nodes are ready, which is no quorum", ready, nodes)
		if len(notReady) > 0 {
			message += "; not ready: " + strings.Join(notReady, ", ")
		}
		return message
	}
	for _, name := range []string{workload.OperatorEtcd, workload.OperatorAPIServer} {
		if available := v.Workload.Operators[name].Available; available.False() {
			return fmt.Sprintf("ClusterOperator %s is not available: %s", name, available.Message)
		}
	}
	return ""
}

// voters are the Machines whose Nodes have a member of etcd: those of the control plane, and the arbiter.
func voters(v *view.View) []*clusterv1.Machine {
	machines := v.Machines.Owned.SortedByCreationTimestamp()
	if v.ControlPlane.Spec.Install.TwoNode == controlplanev1.TwoNodeArbiter {
		for _, w := range v.Machines.Workers {
			if view.IsArbiter(w) {
				machines = append(machines, w)
			}
		}
	}
	return machines
}

// oneNodeIsEnough reports whether a cluster of two Nodes may live on with one of them: its hosts power each other off, or the Node of its
// arbiter is not known. Then the operator of etcd decides.
func oneNodeIsEnough(v *view.View, nodes, ready int) bool {
	return v.ControlPlane.Spec.Install.TwoNode != "" && nodes == 2 && ready == 1
}

// operatorSummary is a condition that sums up ClusterOperators, with its reasons (CONTRACT CP-82).
type operatorSummary struct {
	conditionType string
	operators     []string

	healthy, notHealthy, unknown, inspectionFailed, connectionDown string
}

var operatorSummaries = []operatorSummary{
	{
		conditionType: controlplanev1.EtcdClusterHealthyCondition, operators: []string{workload.OperatorEtcd},
		healthy: controlplanev1.EtcdClusterHealthyReason, notHealthy: controlplanev1.EtcdClusterNotHealthyReason,
		unknown: controlplanev1.EtcdClusterHealthUnknownReason, inspectionFailed: controlplanev1.EtcdClusterInspectionFailedReason,
		connectionDown: controlplanev1.EtcdClusterConnectionDownReason,
	},
	{
		conditionType:    controlplanev1.ControlPlaneComponentsHealthyCondition,
		operators:        []string{workload.OperatorAPIServer, workload.OperatorControllerManager, workload.OperatorScheduler},
		healthy:          controlplanev1.ControlPlaneComponentsHealthyReason,
		notHealthy:       controlplanev1.ControlPlaneComponentsNotHealthyReason,
		unknown:          controlplanev1.ControlPlaneComponentsHealthUnknownReason,
		inspectionFailed: controlplanev1.ControlPlaneComponentsInspectionFailedReason,
		connectionDown:   controlplanev1.ControlPlaneComponentsConnectionDownReason,
	},
}

// condition is nil while there is no connection, or nothing was read yet, and the grace period is not over: what was known before stands.
func (o operatorSummary) condition(v *view.View) *metav1.Condition {
	condition := &metav1.Condition{Type: o.conditionType, Status: metav1.ConditionUnknown}
	switch {
	case !v.Initialized():
		condition.Reason, condition.Message = o.inspectionFailed, "Waiting for the control plane to be initialized"
	case v.Workload.OtherCluster != "":
		condition.Reason, condition.Message = o.inspectionFailed, plan.OtherCluster(v)
	case v.Workload.Down:
		condition.Reason, condition.Message = o.connectionDown, lastAnswerMessage(v.Workload.LastAnswer)
	case v.Workload.Problem != nil && v.Workload.Operators == nil && v.Workload.Settling && conditions.Has(v.ControlPlane, o.conditionType):
		return nil // What an earlier manager knew stands as long as an answer of this one would.
	case v.Workload.Problem != nil && v.Workload.Operators == nil:
		condition.Reason, condition.Message = o.inspectionFailed, "The ClusterOperators cannot be read: "+sentence(v.Workload.Problem.Error())
	case v.Workload.Operators == nil && conditions.Has(v.ControlPlane, o.conditionType):
		return nil
	case v.Workload.Operators == nil:
		condition.Reason, condition.Message = o.connectionDown, "There is no connection to the cluster yet"
	default:
		o.sumUp(condition, v.Workload.Operators)
	}
	return condition
}

func lastAnswerMessage(last time.Time) string {
	if last.IsZero() {
		return "The API of the cluster has not answered since the manager started"
	}
	return "Last successful probe at " + last.UTC().Format(time.RFC3339)
}

// sumUp is True when all operators are available and not degraded, and lists what is wrong otherwise.
func (o operatorSummary) sumUp(condition *metav1.Condition, operators map[string]workload.Operator) {
	var wrong, unknown []string
	for _, name := range o.operators {
		operator, exists := operators[name]
		switch {
		case !exists:
			unknown = append(unknown, fmt.Sprintf("* ClusterOperator %s does not exist", name))
		case operator.Available.False():
			wrong = append(wrong, fmt.Sprintf("* ClusterOperator %s is not available: %s", name, operator.Available.Message))
		case operator.Degraded.True():
			wrong = append(wrong, fmt.Sprintf("* ClusterOperator %s is degraded: %s", name, operator.Degraded.Message))
		case !operator.Available.True():
			unknown = append(unknown, fmt.Sprintf("* ClusterOperator %s does not say whether it is available: %s", name, operator.Available.Message))
		case !operator.Degraded.False():
			unknown = append(unknown, fmt.Sprintf("* ClusterOperator %s does not say whether it is degraded: %s", name, operator.Degraded.Message))
		}
	}
	switch {
	case len(wrong) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, o.notHealthy
	case len(unknown) > 0:
		condition.Reason = o.unknown
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, o.healthy
	}
	condition.Message = strings.Join(append(wrong, unknown...), "\n")
}
