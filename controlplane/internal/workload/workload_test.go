// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

var (
	cluster    = types.NamespacedName{Namespace: "ns", Name: "c"}
	subscriber = workload.Subscriber{Request: ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cp"}}}
)

func operator(name string, conditions ...configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
	return &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: configv1.ClusterOperatorStatus{Conditions: conditions}}
}

func clusterVersion(id configv1.ClusterID) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: id}}
}

// connected is a ClusterCache with a connection, whose API answers as funcs say, and whose watches of operators are already there.
func connected(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) workload.Cached {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(configv1.Install(scheme)).To(Succeed())
	NewWithT(t).Expect(operatorv1.Install(scheme)).To(Succeed())
	remote := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return workload.Cached{Cache: clustercache.NewFakeClusterCache(
		remote, cluster, "clusteroperators/cp", "clusterversions/cp", "etcds/cp", "configmaps/cp", "serviceaccounts/cp",
		"clusterrolebindings/cp",
	)}
}

func TestContractConnection(t *testing.T) {
	t.Run("CORE-16 no connection is no error, and nothing is known", func(t *testing.T) {
		g := NewWithT(t)
		lost := workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}
		id, err := lost.ClusterID(t.Context(), cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(id).To(BeEmpty())
		g.Expect(lost.LastAnswer(t.Context(), cluster)).To(BeZero())
		operators, err := lost.Operators(t.Context(), cluster, subscriber)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(operators).To(BeNil())
	})
	t.Run("CORE-16 KCP-5 a cluster answers when its API does", func(t *testing.T) {
		g := NewWithT(t)
		up := connected(t, interceptor.Funcs{}, clusterVersion("3c1d"))
		id, err := up.ClusterID(t.Context(), cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(id).To(Equal("3c1d"))
		g.Expect(up.LastAnswer(t.Context(), cluster)).To(BeTemporally("~", time.Now(), time.Minute))
	})
}

func TestClusterWithoutAnID(t *testing.T) {
	_, err := connected(t, interceptor.Funcs{}, clusterVersion("")).ClusterID(t.Context(), cluster)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the ClusterVersion of Cluster ns/c has no spec.clusterID")))
}

func TestOperators(t *testing.T) {
	g := NewWithT(t)
	up := connected(t, interceptor.Funcs{},
		operator(
			workload.OperatorEtcd,
			configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, Reason: "AsExpected"},
			configv1.ClusterOperatorStatusCondition{
				Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue, Message: "2 of 3 members\nare available",
			},
		),
		operator(
			workload.OperatorAPIServer,
			configv1.ClusterOperatorStatusCondition{
				Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue, Message: strings.Repeat("ä", 1000),
			},
		),
		operator("ingress"))
	operators, err := up.Operators(t.Context(), cluster, subscriber)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(operators).To(HaveLen(2), "of the control plane's operators, those that exist")
	g.Expect(operators[workload.OperatorEtcd]).To(Equal(workload.Operator{
		Available:   workload.OperatorCondition{Status: configv1.ConditionTrue, Message: "AsExpected"},
		Progressing: workload.OperatorCondition{Status: configv1.ConditionUnknown, Message: "not reported"},
		Degraded:    workload.OperatorCondition{Status: configv1.ConditionTrue, Message: "2 of 3 members are available"},
	}))
	g.Expect(operators[workload.OperatorAPIServer].Degraded.Message).To(And(HaveSuffix("ä…"), HaveLen(512+len("…"))))
}

func TestOperatorsThatCannotBeRead(t *testing.T) {
	refuse := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("refused")
	}}
	g := NewWithT(t)
	down := connected(t, refuse)
	operators, err := down.Operators(t.Context(), cluster, subscriber)
	g.Expect(err).To(MatchError(ContainSubstring("ClusterOperator etcd of Cluster ns/c: refused")))
	g.Expect(operators).To(BeNil())

	down.Answers = workload.NewMemory(time.Minute)
	up := connected(t, interceptor.Funcs{}, operator(workload.OperatorEtcd))
	up.Answers = down.Answers
	read, err := up.Operators(t.Context(), cluster, subscriber)
	g.Expect(err).NotTo(HaveOccurred())
	operators, err = down.Operators(t.Context(), cluster, subscriber)
	g.Expect(err).To(HaveOccurred(), "it is tried again")
	g.Expect(operators).To(Equal(read), "with what was read last")
	lost := workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache(), Answers: down.Answers}
	g.Expect(lost.Operators(t.Context(), cluster, subscriber)).To(BeNil())
	operators, _ = down.Operators(t.Context(), cluster, subscriber)
	g.Expect(operators).To(Equal(read), "no connection is no answer")
}
