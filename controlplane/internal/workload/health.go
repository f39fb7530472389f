// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Health tells whether a cluster answers, and how its control plane is.
type Health interface {
	// LastAnswer is when the API server last answered a probe; zero if it never has since the manager started.
	LastAnswer(ctx context.Context, cluster client.ObjectKey) time.Time
	// Operators reads the operators of the control plane (OperatorNames) that exist, and lets every later change of one of them wake the
	// subscriber. It is nil without an error when there is no connection; the subscriber is woken by the ClusterCache when there is one. With
	// an error, the operators are those that were read last; nil when that is too long ago.
	Operators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error)
	// LastOperators are those that Operators has read last, without a look at the cluster; nil when that is too long ago.
	LastOperators(cluster client.ObjectKey) map[string]Operator
	// Updates reads whether the hosts of the control plane are about to be restarted, and lets every later change of that wake the
	// subscriber. It is nil without an error when there is no connection.
	Updates(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (*Updates, error)
}

// LastAnswer is the time of the last probe that succeeded.
func (c Cached) LastAnswer(ctx context.Context, cluster client.ObjectKey) time.Time {
	return c.Cache.GetHealthCheckingState(ctx, cluster).LastProbeSuccessTime
}

// Operators answers with what was read last when it cannot be read now.
func (c Cached) Operators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error) {
	operators, err := c.readOperators(ctx, cluster, subscriber)
	if err != nil {
		return c.LastOperators(cluster), err
	}
	if operators != nil { // No connection is no answer, and leaves the one before.
		c.Answers.keep(cluster, operators)
	}
	return operators, nil
}

// LastOperators are those that are remembered.
func (c Cached) LastOperators(cluster client.ObjectKey) map[string]Operator {
	last, _ := c.Answers.last(cluster).(map[string]Operator)
	return last
}

func (c Cached) readOperators(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (map[string]Operator, error) {
	ofControlPlane := func(o client.Object) bool { return slices.Contains(OperatorNames(), o.GetName()) }
	watch := subscriber.to("clusteroperators", &configv1.ClusterOperator{}, ofControlPlane)
	remote, err := c.watched(ctx, cluster, "ClusterOperators", watch)
	if err != nil || remote == nil {
		return nil, err
	}
	operators := map[string]Operator{}
	for _, name := range OperatorNames() {
		operator := &configv1.ClusterOperator{}
		if err := remote.Get(ctx, client.ObjectKey{Name: name}, operator); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read ClusterOperator %s of Cluster %s: %w", name, cluster, err)
		}
		operators[name] = operatorOf(operator)
	}
	return operators, nil
}
