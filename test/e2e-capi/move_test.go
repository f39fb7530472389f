// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"
	"path/filepath"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// In the place of SelfHostedSpec: the other management cluster is not the cluster that was installed, whose nodes would have to run pods,
// but a second one of the same data centre.
var _ = Describe("Moving a cluster to another management cluster", Label("move"), func() {
	ctx := context.Background()
	BeforeEach(onlyLocal)
	s := newOwnSpec(ctx, "move")
	It("Should replace no Machine, and go on with the cluster on the other side", func() {
		s.createCluster(ctx, 1)
		before := s.servers(ctx, withoutMachines)
		source := s.management
		target := s.startTarget(ctx)
		s.move(ctx, target)
		s.expectRunning(ctx)
		Expect(s.servers(ctx, withoutMachines)).To(Equal(before), "no Machine was replaced, and no Node")
		s.expectClean(ctx, source)
		s.expectGrowing(ctx, before, withoutMachines)
	})
})

// labelPullSecret is the user's part of the move (docs/guides/move.md).
func (s *ownSpec) labelPullSecret(ctx context.Context) {
	GinkgoHelper()
	c := s.management.GetClient()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace.Name, Name: environment.config.MustGetVariable("OPENSHIFT_PULL_SECRET_NAME"),
	}}
	Expect(c.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	before := secret.DeepCopy()
	metav1.SetMetaDataLabel(&secret.ObjectMeta, clusterctlv1.ClusterctlMoveLabel, "")
	Expect(c.Patch(ctx, secret, client.MergeFrom(before))).To(Succeed())
}

// startTarget starts the other management cluster. It ends with the spec, after the namespace there has gone with all in it.
func (s *ownSpec) startTarget(ctx context.Context) framework.ClusterProxy {
	GinkgoHelper()
	By("Starting another management cluster")
	target := framework.NewClusterProxy("target", environment.local.startBeside(ctx).kubeconfig(), newScheme())
	DeferCleanup(target.Dispose)
	return target
}

// move moves the namespace of the spec, which is cleaned up on the target from then on.
func (s *ownSpec) move(ctx context.Context, target framework.ClusterProxy) {
	GinkgoHelper()
	source := s.management
	s.labelPullSecret(ctx)
	clusterctl.Move(ctx, clusterctl.MoveInput{
		LogFolder:            filepath.Join(environment.artifacts, "clusters", source.GetName()),
		ClusterctlConfigPath: environment.clusterctl, FromKubeconfigPath: source.GetKubeconfigPath(),
		ToKubeconfigPath: target.GetKubeconfigPath(), Namespace: s.namespace.Name,
	})
	s.management = target
	if !*keepClusters {
		DeferCleanup(func() {
			framework.DeleteNamespace(ctx, framework.DeleteNamespaceInput{Deleter: source.GetClient(), Name: s.namespace.Name})
			expectGone(ctx, target.GetClient(), s.namespace.Name)
		})
	}
	s.resources.Cluster = framework.DiscoveryAndWaitForCluster(ctx, framework.DiscoveryAndWaitForClusterInput{
		Getter: target.GetClient(), Namespace: s.namespace.Name, Name: s.resources.Cluster.Name,
	}, s.intervals("wait-cluster")...)
	for _, field := range s.resources.Cluster.ManagedFields {
		Expect(field.Manager).NotTo(Equal("clusterctl"), "clusterctl owns no field of the Cluster after the move")
	}
}

// expectClean waits until the source has nothing left of the cluster. What clusterctl does not move goes afterwards: a namespace that was
// deleted before would take it away in any order, and assisted-service would reboot hosts (docs/guides/move.md).
func (s *ownSpec) expectClean(ctx context.Context, source framework.ClusterProxy) {
	GinkgoHelper()
	By("Verify that the source has nothing left of the cluster")
	Eventually(func(g Gomega) {
		for _, kind := range []schema.GroupVersionKind{
			clusterv1.GroupVersion.WithKind("Machine"), controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlane"),
			bmov1alpha1.GroupVersion.WithKind("BareMetalHost"),
			{Group: "hive.openshift.io", Version: "v1", Kind: "ClusterDeployment"},
			{Group: "extensions.hive.openshift.io", Version: "v1beta1", Kind: "AgentClusterInstall"},
			{Group: "agent-install.openshift.io", Version: "v1beta1", Kind: "InfraEnv"},
			{Group: "agent-install.openshift.io", Version: "v1beta1", Kind: "Agent"},
		} {
			left := &unstructured.UnstructuredList{}
			left.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			g.Expect(source.GetClient().List(ctx, left, client.InNamespace(s.namespace.Name))).To(Succeed())
			g.Expect(left.Items).To(BeEmpty(), "%s is left", kind.Kind)
		}
	}, s.intervals("wait-delete-cluster")...).Should(Succeed())
}
