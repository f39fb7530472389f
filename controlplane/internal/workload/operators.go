// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// The operators of an OpenShift control plane, as their ClusterOperators are called.
const (
	OperatorEtcd              = "etcd"
	OperatorAPIServer         = "kube-apiserver"
	OperatorControllerManager = "kube-controller-manager"
	OperatorScheduler         = "kube-scheduler"
)

// maxMessage bounds what is repeated of an operator's message, in bytes: some list every Pod, and a condition holds 32 KiB.
const maxMessage = 512

// OperatorNames are the operators that Operators reads.
func OperatorNames() []string {
	return []string{OperatorEtcd, OperatorAPIServer, OperatorControllerManager, OperatorScheduler}
}

// operatorConditions are the conditions of an operator that are read.
func operatorConditions() []configv1.ClusterStatusConditionType {
	return []configv1.ClusterStatusConditionType{configv1.OperatorAvailable, configv1.OperatorProgressing, configv1.OperatorDegraded}
}

// Operator is what a ClusterOperator says. A condition that it does not report is Unknown.
type Operator struct {
	Available, Progressing, Degraded OperatorCondition
}

// OperatorCondition is the status of a condition, with its message, or its reason where it has none.
type OperatorCondition struct {
	Status  configv1.ConditionStatus
	Message string
	// Reason is that of a condition of a ClusterVersion; empty for conditions of other objects, whose reasons nobody reads.
	Reason string
	// Since is the last change of Status; zero when the operator does not tell.
	Since time.Time
}

// True reports whether the condition is True.
func (c OperatorCondition) True() bool { return c.Status == configv1.ConditionTrue }

// False reports whether the condition is False.
func (c OperatorCondition) False() bool { return c.Status == configv1.ConditionFalse }

func operatorOf(o *configv1.ClusterOperator) Operator {
	return Operator{
		Available:   operatorCondition(o.Status.Conditions, configv1.OperatorAvailable),
		Progressing: operatorCondition(o.Status.Conditions, configv1.OperatorProgressing),
		Degraded:    operatorCondition(o.Status.Conditions, configv1.OperatorDegraded),
	}
}

func operatorCondition(
	reported []configv1.ClusterOperatorStatusCondition, conditionType configv1.ClusterStatusConditionType,
) OperatorCondition {
	for _, c := range reported {
		if c.Type == conditionType {
			return OperatorCondition{Status: c.Status, Message: oneLine(cmp.Or(c.Message, c.Reason))}
		}
	}
	return unreported()
}

// unreported is a condition that an operator does not report.
func unreported() OperatorCondition {
	return OperatorCondition{Status: configv1.ConditionUnknown, Message: "not reported"}
}

// oneLine joins the lines of a message and cuts what is too long.
func oneLine(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	const cut = "…"
	// What a connection keeps has been cut already.
	if len(message) <= maxMessage || len(message) <= maxMessage+len(cut) && strings.HasSuffix(message, cut) {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + cut
}
