// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// TestNodes: a Node gets a provider ID as it was read, and no later one of its name does.
func TestNodes(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	remote := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m-0"}}).Build()
	up := workload.Cached{Cache: clustercache.NewFakeClusterCache(remote, cluster, "nodes")}

	missing, err := up.Named(t.Context(), cluster, "m-1", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(missing).To(BeNil())
	node, err := up.Named(t.Context(), cluster, "m-0", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(up.SetProviderID(t.Context(), cluster, node, "dev:///m-0")).To(Succeed())
	g.Expect(apierrors.IsConflict(up.SetProviderID(t.Context(), cluster, node, "dev:///m-1"))).To(BeTrue())
	node, err = up.Named(t.Context(), cluster, "m-0", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node.Spec.ProviderID).To(Equal("dev:///m-0"))

	lost := workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}
	node, err = lost.Named(t.Context(), cluster, "m-0", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node).To(BeNil())
}
