// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// theEtcd is the only Etcd of an OpenShift cluster.
const theEtcd = "cluster"

// The conditions of the Etcd that are read.
const (
	etcdMembersAvailable           = "EtcdMembersAvailable"
	etcdMembersDegraded            = "EtcdMembersDegraded"
	etcdMembersProgressing         = "EtcdMembersProgressing"
	etcdRevisionControllerDegraded = "RevisionControllerDegraded"
)

func etcdConditions() []string {
	return []string{etcdMembersAvailable, etcdMembersDegraded, etcdMembersProgressing, etcdRevisionControllerDegraded}
}

// EtcdReport is what the operator of etcd reports. A condition that it does not report is Unknown.
type EtcdReport struct {
	// MembersAvailable is False when etcd has no quorum.
	MembersAvailable OperatorCondition
	// MembersDegraded is True when a member is not healthy, or has not started.
	MembersDegraded OperatorCondition
	// MembersProgressing is True while a member has not started. One that has started and does not vote yet is not told.
	MembersProgressing OperatorCondition
	// RevisionControllerDegraded is True, among others, while too few members are healthy for a new revision of the static Pod. With two of
	// three hosts it is True until the third has joined.
	RevisionControllerDegraded OperatorCondition
	// LatestRevision is the newest revision of the static Pod of etcd; 0 before the first.
	LatestRevision int32
	// Nodes are the Nodes on which the operator runs etcd.
	Nodes []EtcdNode
}

// EtcdNode is a Node on which the operator runs etcd.
type EtcdNode struct {
	Name string
	// CurrentRevision is the revision that runs; 0 on a Node that has none yet.
	CurrentRevision int32
	// TargetRevision is the revision that the operator is about to run; 0 when it is not.
	TargetRevision int32
}

// Stable reports whether every Node runs the newest revision. While they do not, members restart one after the other.
func (r *EtcdReport) Stable() bool {
	if r == nil || r.LatestRevision == 0 || len(r.Nodes) == 0 {
		return false
	}
	for _, n := range r.Nodes {
		if n.CurrentRevision != r.LatestRevision || n.TargetRevision != 0 && n.TargetRevision != r.LatestRevision {
			return false
		}
	}
	return true
}

// EtcdOperator reads from the connection's cache. When that fails it does not answer with what was read last, as Operators does: members
// are removed by this.
//
// The operator may not have come so far: then there is no Etcd, or not even its kind. That is an answer, since the subscriber is woken
// when they come.
func (c Cached) EtcdOperator(ctx context.Context, cluster client.ObjectKey, subscriber Subscriber) (*EtcdReport, error) {
	isTheEtcd := func(o client.Object) bool { return o.GetName() == theEtcd }
	remote, err := c.watched(ctx, cluster, "Etcds", subscriber.to("etcds", &operatorv1.Etcd{}, isTheEtcd).Resting(subscriber.Waits))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil || remote == nil {
		return nil, err
	}
	etcd := &operatorv1.Etcd{}
	err = remote.Get(ctx, client.ObjectKey{Name: theEtcd}, etcd)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Etcd %s of Cluster %s: %w", theEtcd, cluster, err)
	}
	return reportOf(etcd), nil
}

func reportOf(etcd *operatorv1.Etcd) *EtcdReport {
	report := &EtcdReport{
		MembersAvailable: etcdCondition(etcd, etcdMembersAvailable), MembersDegraded: etcdCondition(etcd, etcdMembersDegraded),
		MembersProgressing:         etcdCondition(etcd, etcdMembersProgressing),
		RevisionControllerDegraded: etcdCondition(etcd, etcdRevisionControllerDegraded),
		LatestRevision:             etcd.Status.LatestAvailableRevision,
	}
	for _, n := range etcd.Status.NodeStatuses {
		report.Nodes = append(report.Nodes, EtcdNode{
			Name: n.NodeName, CurrentRevision: n.CurrentRevision, TargetRevision: n.TargetRevision,
		})
	}
	return report
}

func etcdCondition(etcd *operatorv1.Etcd, conditionType string) OperatorCondition {
	for _, c := range etcd.Status.Conditions {
		if c.Type == conditionType {
			return OperatorCondition{
				Status: configv1.ConditionStatus(c.Status), Message: oneLine(cmp.Or(c.Message, c.Reason)), Since: c.LastTransitionTime.Time,
			}
		}
	}
	return unreported()
}
