// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/etcd"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// operatorStatus is what a ClusterOperator says.
type operatorStatus struct {
	version    string
	conditions []configv1.ClusterOperatorStatusCondition
}

// staticPodOperators have a static Pod on each host, and are degraded while a host is silent.
var staticPodOperators = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// operands are the operators whose operands do not have yet what the operator wants for them, and those that their operands degrade.
func (c *cluster) operands() (busy, degraded map[string]bool) {
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	busy, degraded = map[string]bool{}, map[string]bool{}
	if c.etcd == nil {
		return busy, degraded
	}
	report := c.etcd.Operator()
	busy[etcdOperator] = !c.etcd.Updated()
	degraded[etcdOperator] = slices.ContainsFunc(report.ClusterOperator, func(condition etcd.Condition) bool {
		return condition.Type == string(configv1.OperatorDegraded) && condition.Status == etcd.True
	})
	if silent, _ := c.silentHosts(report); silent {
		for _, name := range staticPodOperators {
			degraded[name] = true
		}
	}
	return busy, degraded
}

// silentHosts reports whether a host of the control plane has been silent for so long that operators are degraded, and what they say.
func (c *cluster) silentHosts(report etcd.Operator) (silent bool, message string) {
	nodes := report.Condition("NodeControllerDegraded")
	return nodes.Status == etcd.True && time.Since(nodes.Since) >= c.manager.opts.Etcd.DegradedInertia, nodes.Message
}

// showOperators writes what ClusterOperators say, when that changes: of a release, and of the state of etcd and of the hosts. What somebody
// else writes stands until then.
func (c *cluster) showOperators(ctx context.Context, reports []upgrade.Operator) error {
	members := c.operatorOfEtcd()
	for _, report := range reports {
		wanted := c.operatorStatus(report, members)
		shown, known := c.shownOperators[report.Name]
		if known && equality.Semantic.DeepEqual(shown.conditions, wanted.conditions) && shown.version == wanted.version {
			continue
		}
		if err := c.showOperator(ctx, report.Name, wanted); err != nil {
			return err
		}
		c.shownOperators[report.Name] = wanted
	}
	return nil
}

// operatorStatus is what an operator says of its release and of its operands.
func (c *cluster) operatorStatus(report upgrade.Operator, members etcd.Operator) operatorStatus {
	status := map[configv1.ClusterStatusConditionType]configv1.ClusterOperatorStatusCondition{}
	set := func(kind configv1.ClusterStatusConditionType, is bool, reason, message string) {
		condition := configv1.ClusterOperatorStatusCondition{Type: kind, Status: configv1.ConditionFalse, Reason: reason, Message: message}
		if is {
			condition.Status = configv1.ConditionTrue
		}
		status[kind] = condition
	}
	set(configv1.OperatorAvailable, true, asExpected, "")
	set(configv1.OperatorProgressing, false, asExpected, "")
	set(configv1.OperatorDegraded, false, asExpected, "")
	set(configv1.OperatorUpgradeable, true, asExpected, "")
	if report.Name == etcdOperator {
		for _, condition := range members.ClusterOperator {
			status[configv1.ClusterStatusConditionType(condition.Type)] = configv1.ClusterOperatorStatusCondition{
				Type: configv1.ClusterStatusConditionType(condition.Type), Status: configv1.ConditionStatus(condition.Status),
				Reason: condition.Reason, Message: condition.Message, LastTransitionTime: metav1.NewTime(condition.Since).Rfc3339Copy(),
			}
		}
	}
	unstable := slices.ContainsFunc(members.NodeStatuses, func(n etcd.NodeStatus) bool { return n.Current != members.LatestAvailableRevision })
	if report.Name == "kube-apiserver" && unstable {
		set(configv1.OperatorProgressing, true, "NodeInstaller", "") // The API servers restart when the members of etcd change.
	}
	if silent, message := c.silentHosts(members); silent && slices.Contains(staticPodOperators, report.Name) {
		set(configv1.OperatorDegraded, true, "NodeController_MasterNodesReady", message)
	}
	if report.Progressing != "" && status[configv1.OperatorProgressing].Status == configv1.ConditionFalse {
		set(configv1.OperatorProgressing, true, "Updating", report.Progressing)
	}
	if report.Degraded != "" {
		set(configv1.OperatorDegraded, true, report.DegradedReason, report.Degraded)
	}
	if report.NotUpgradeable != "" {
		set(configv1.OperatorUpgradeable, false, report.NotUpgradeableReason, report.NotUpgradeable)
	}
	out := operatorStatus{version: report.Version}
	for _, kind := range []configv1.ClusterStatusConditionType{
		configv1.OperatorAvailable, configv1.OperatorProgressing, configv1.OperatorDegraded, configv1.OperatorUpgradeable,
	} {
		out.conditions = append(out.conditions, status[kind])
	}
	return out
}

// showOperator writes the status of a ClusterOperator. A condition keeps its time unless its status changes.
func (c *cluster) showOperator(ctx context.Context, name string, wanted operatorStatus) error {
	o := &configv1.ClusterOperator{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, o); err != nil {
		return fmt.Errorf("cannot read ClusterOperator %s: %w", name, err)
	}
	before := o.DeepCopy()
	o.Status.Conditions = nil
	for _, condition := range wanted.conditions {
		same := func(have configv1.ClusterOperatorStatusCondition) bool { return have.Type == condition.Type }
		at := slices.IndexFunc(before.Status.Conditions, same)
		kept := metav1.Now().Rfc3339Copy()
		if at >= 0 && before.Status.Conditions[at].Status == condition.Status {
			kept = before.Status.Conditions[at].LastTransitionTime
		}
		if condition.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = kept
		}
		o.Status.Conditions = append(o.Status.Conditions, condition)
	}
	o.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: wanted.version}}
	if equality.Semantic.DeepEqual(before.Status, o.Status) {
		return nil
	}
	if err := c.client.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of ClusterOperator %s: %w", name, err)
	}
	return nil
}
