// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"path/filepath"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

func TestContractMetal3(t *testing.T) {
	s := shared
	t.Run("CORE-21 CORE-22 the Node has its host's UID and Metal3's provider ID, which the Machine has too", func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		nodes := s.nodes(t, s.installed)
		machines, err := s.Machines(ctx, s.installed)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(nodes).To(HaveLen(len(machines)))
		for i := range machines {
			node := nodes[machines[i].Status.NodeRef.Name]
			l := &lab{scene: s, namespace: s.installed.Namespace}
			infra := l.metal3Machine(ctx, g, machines[i].Spec.InfrastructureRef.Name)
			key, ok := metal3.HostKey(infra)
			g.Expect(ok).To(BeTrue())
			host := &bmov1alpha1.BareMetalHost{}
			s.get(ctx, g, host, key.Namespace, key.Name)
			g.Expect(node.Labels).To(HaveKeyWithValue(metal3.NodeUIDLabel, string(host.UID)))
			g.Expect(node.Spec.ProviderID).To(Equal("metal3://" + host.Namespace + "/" + host.Name + "/" + infra.GetName()))
			g.Expect(machines[i].Spec.ProviderID).To(Equal(node.Spec.ProviderID))
		}
	})
	t.Run("CORE-24 an error that only the host shows reaches config and Machine", func(t *testing.T) {
		l := newProvidedLab(t, "broken-host", 1)
		host := types.NamespacedName{Namespace: l.namespace, Name: "host-0"}
		s.Metal3.Faults().ProvisioningError(host, "the virtual media could not be attached", 0)
		l.publish(t, "m-0")
		l.expectReason(t, bootstrapv1.HostHealthyCondition, bootstrapv1.HostErrorReason)
		eventually(t, func(g Gomega) {
			condition := conditions.Get(l.machine(t.Context(), g, "m-0"), clusterv1.MachineBootstrapConfigReadyCondition)
			// The host's own words change when it has tried often enough.
			g.Expect(condition).
				To(HaveValue(HaveField("Message", And(ContainSubstring(host.Name), ContainSubstring("reports provisioning error: ")))))
		})
	})
}

// nodes are the Nodes of an installed cluster by name.
func (s *scene) nodes(t *testing.T, cluster types.NamespacedName) map[string]*corev1.Node {
	t.Helper()
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(s.WriteKubeconfig(t.Context(), cluster, path)).To(Succeed())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	list := &corev1.NodeList{}
	g.Expect(c.List(t.Context(), list)).To(Succeed())
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = &list.Items[i]
	}
	return nodes
}
