// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

func TestControlPlaneNodes(t *testing.T) {
	g := NewWithT(t)
	node := func(name string, ready corev1.ConditionStatus, roles ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
		for _, role := range roles {
			n.Labels["node-role.kubernetes.io/"+role] = ""
		}
		n.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "192.168.126.10"},
			{Type: corev1.NodeExternalIP, Address: "203.0.113.1"}, {Type: corev1.NodeInternalIP, Address: "fd2e::10"},
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		return n
	}
	going := node("m-1", corev1.ConditionUnknown, "master")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0).UTC()}, []string{"example.com/stays"}
	changing := node("m-2", corev1.ConditionTrue, "arbiter")
	changing.Spec.Unschedulable, changing.Annotations = true, map[string]string{
		"machineconfiguration.openshift.io/currentConfig": "rendered-1", "machineconfiguration.openshift.io/desiredConfig": "rendered-2",
	}
	going.Annotations = map[string]string{
		"machineconfiguration.openshift.io/currentConfig": "rendered-2", "machineconfiguration.openshift.io/desiredConfig": "rendered-2",
	}
	up := connected(t, interceptor.Funcs{}, node("w-0", corev1.ConditionTrue, "worker"), changing, going,
		node("m-0", corev1.ConditionFalse, "master", "arbiter"))
	nodes, err := up.ControlPlaneNodes(t.Context(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	addresses := []string{"192.168.126.10", "fd2e::10"}
	g.Expect(nodes).To(HaveLen(3))
	g.Expect(nodes[1].DeletionTimestamp.Unix()).To(BeEquivalentTo(1))
	nodes[1].DeletionTimestamp = nil
	g.Expect(nodes).To(Equal([]workload.ControlPlaneNode{
		{Name: "m-0", UID: "uid-m-0", Addresses: addresses}, {Name: "m-1", UID: "uid-m-1", Addresses: addresses},
		{Name: "m-2", UID: "uid-m-2", Addresses: addresses, Ready: true, Cordoned: true, Changing: true},
	}))

	refuse := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("refused")
	}}
	nodes, err = connected(t, refuse).ControlPlaneNodes(t.Context(), cluster)
	g.Expect(err).To(MatchError("list Nodes with label node-role.kubernetes.io/master of Cluster ns/c: refused"))
	g.Expect(nodes).To(BeNil(), "a part of the Nodes is no answer")
	_, err = (workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}).ControlPlaneNodes(t.Context(), cluster)
	g.Expect(err).To(MatchError(clustercache.ErrClusterNotConnected))
}

func TestDeleteNode(t *testing.T) {
	resource := corev1.Resource("nodes")
	for name, test := range map[string]struct {
		answer error
		want   bool
		err    string
	}{
		"deleted":             {want: true},
		"gone":                {answer: apierrors.NewNotFound(resource, "m-0")},
		"another of its name": {answer: apierrors.NewConflict(resource, "m-0", errors.New("the UID in the precondition does not match"))},
		"refused":             {answer: errors.New("refused"), err: "delete Node m-0 of Cluster ns/c: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			up := connected(t, interceptor.Funcs{Delete: func(
				_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption,
			) error {
				asked := (&client.DeleteOptions{}).ApplyOptions(options)
				g.Expect(o.GetName()).To(Equal("m-0"))
				g.Expect(asked.Preconditions.UID).To(HaveValue(BeEquivalentTo("uid")), "never a successor of its name")
				return test.answer
			}})
			deleted, err := up.DeleteNode(t.Context(), cluster, "m-0", "uid")
			g.Expect(deleted).To(Equal(test.want))
			if test.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(test.err))
		})
	}
	deleted, err := (workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}).DeleteNode(t.Context(), cluster, "m-0", "uid")
	g := NewWithT(t)
	g.Expect(err).To(MatchError(clustercache.ErrClusterNotConnected))
	g.Expect(deleted).To(BeFalse())
}
