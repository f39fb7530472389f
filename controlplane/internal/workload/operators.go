// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
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

// Operator is what a ClusterOperator says. A condition that it does not report is Unknown.
type Operator struct {
	Available, Progressing, Degraded OperatorCondition
}

// OperatorCondition is the status of a condition, with its message, or its reason where it has none.
type OperatorCondition struct {
	Status  configv1.ConditionStatus
	Message string
}

// True reports whether the condition is True.
func (c OperatorCondition) True() bool { return c.Status == configv1.ConditionTrue }

// False reports whether the condition is False.
func (c OperatorCondition) False() bool { return c.Status == configv1.ConditionFalse }

func operatorOf(o *configv1.ClusterOperator) Operator {
	return Operator{
		Available:   operatorCondition(o, configv1.OperatorAvailable),
		Progressing: operatorCondition(o, configv1.OperatorProgressing),
		Degraded:    operatorCondition(o, configv1.OperatorDegraded),
	}
}

func operatorCondition(o *configv1.ClusterOperator, conditionType configv1.ClusterStatusConditionType) OperatorCondition {
	for _, c := range o.Status.Conditions {
		if c.Type == conditionType {
			return OperatorCondition{Status: c.Status, Message: oneLine(cmp.Or(c.Message, c.Reason))}
		}
	}
	return OperatorCondition{Status: configv1.ConditionUnknown, Message: "not reported"}
}

// oneLine joins the lines of a message and cuts what is too long.
func oneLine(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// Subscriber is woken by changes of operators.
type Subscriber struct {
	// Controller reconciles Request.
	Controller clustercache.SourceWatcher[reconcile.Request]
	Request    reconcile.Request
}

func (s Subscriber) watcher() clustercache.Watcher {
	return clustercache.NewWatcher(clustercache.WatcherOptions{
		Name:         "clusteroperators/" + s.Request.Name,
		Watcher:      s.Controller,
		Kind:         &configv1.ClusterOperator{},
		EventHandler: handler.EnqueueRequestsFromMapFunc(s.requests),
	})
}

func (s Subscriber) requests(_ context.Context, o client.Object) []reconcile.Request {
	if !slices.Contains(OperatorNames(), o.GetName()) {
		return nil
	}
	return []reconcile.Request{s.Request}
}
