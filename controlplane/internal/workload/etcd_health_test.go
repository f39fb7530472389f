// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// lostMeanwhile is a ClusterCache whose connection ends between two calls.
type lostMeanwhile struct{ clustercache.ClusterCache }

func (lostMeanwhile) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return nil, clustercache.ErrClusterNotConnected
}

func TestEtcdOperator(t *testing.T) {
	g := NewWithT(t)
	etcd := &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	etcd.Status.Conditions = []operatorv1.OperatorCondition{
		{Type: "EtcdMembersAvailable", Status: operatorv1.ConditionTrue, Message: "2 of 3 members are available,\nm-2 is unhealthy"},
		{Type: "EtcdMembersDegraded", Status: operatorv1.ConditionTrue, Reason: "UnhealthyMembers"},
		{Type: "EtcdMembersProgressing", Status: operatorv1.ConditionFalse, Reason: "AsExpected"},
		{Type: "NodeControllerDegraded", Status: operatorv1.ConditionTrue, Message: "another"},
	}
	etcd.Status.LatestAvailableRevision = 8
	etcd.Status.NodeStatuses = []operatorv1.NodeStatus{
		{NodeName: "m-0", CurrentRevision: 8}, {NodeName: "m-1", CurrentRevision: 7, TargetRevision: 8}, {NodeName: "m-3"},
	}
	other := &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	report, err := connected(t, interceptor.Funcs{}, etcd, other).EtcdOperator(t.Context(), cluster, subscriber)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report).To(Equal(&workload.EtcdReport{
		MembersAvailable: workload.OperatorCondition{
			Status: configv1.ConditionTrue, Message: "2 of 3 members are available, m-2 is unhealthy",
		},
		MembersDegraded:            workload.OperatorCondition{Status: configv1.ConditionTrue, Message: "UnhealthyMembers"},
		MembersProgressing:         workload.OperatorCondition{Status: configv1.ConditionFalse, Message: "AsExpected"},
		RevisionControllerDegraded: workload.OperatorCondition{Status: configv1.ConditionUnknown, Message: "not reported"},
		LatestRevision:             8,
		Nodes: []workload.EtcdNode{
			{Name: "m-0", CurrentRevision: 8}, {Name: "m-1", CurrentRevision: 7, TargetRevision: 8}, {Name: "m-3"},
		},
	}))
}

func TestEtcdOperatorThatDoesNotReport(t *testing.T) {
	failing := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		}}
	}
	for name, test := range map[string]struct {
		in   workload.Cached
		want string
	}{
		"no connection": {in: workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}},
		"no Etcd yet":   {in: connected(t, interceptor.Funcs{})},
		"no kind yet":   {in: connected(t, failing(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Etcd"}}))},
		"an error":      {in: connected(t, failing(errors.New("refused"))), want: "read Etcd cluster of Cluster ns/c: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := test.in.EtcdOperator(t.Context(), cluster, subscriber)
			g.Expect(report).To(BeNil())
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(test.want))
		})
	}
}

func TestStable(t *testing.T) {
	at := func(current, target int32) workload.EtcdNode {
		return workload.EtcdNode{CurrentRevision: current, TargetRevision: target}
	}
	for name, test := range map[string]struct {
		report *workload.EtcdReport
		want   bool
	}{
		"all at the newest":         {&workload.EtcdReport{LatestRevision: 8, Nodes: []workload.EtcdNode{at(8, 0), at(8, 8)}}, true},
		"one that waits":            {&workload.EtcdReport{LatestRevision: 8, Nodes: []workload.EtcdNode{at(8, 0), at(7, 0)}}, false},
		"one that is changed":       {&workload.EtcdReport{LatestRevision: 8, Nodes: []workload.EtcdNode{at(8, 0), at(7, 8)}}, false},
		"one that is changed again": {&workload.EtcdReport{LatestRevision: 8, Nodes: []workload.EtcdNode{at(8, 0), at(8, 9)}}, false},
		"one that joins":            {&workload.EtcdReport{LatestRevision: 8, Nodes: []workload.EtcdNode{at(8, 0), at(0, 0)}}, false},
		"none yet":                  {&workload.EtcdReport{LatestRevision: 8}, false},
		"no revision yet":           {&workload.EtcdReport{Nodes: []workload.EtcdNode{at(0, 0)}}, false},
		"not known":                 {nil, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(test.report.Stable()).To(Equal(test.want)) })
	}
}
