// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index/indextest"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestExplanation: an Agent gets the note that no host is recognised in it, unless it is one, or somebody vouches for it; an address that
// many hosts have makes it none. An InfraEnv that is the identity of one host tells by itself.
func TestExplanation(t *testing.T) {
	const unknown = `no BareMetalHost has one of the MAC addresses`
	host := func(name, mac string, inspected ...string) *bmov1alpha1.BareMetalHost {
		h := &bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		h.Spec.BootMACAddress, h.Status.HardwareDetails = mac, &bmov1alpha1.HardwareDetails{}
		for _, mac := range inspected {
			h.Status.HardwareDetails.NIC = append(h.Status.HardwareDetails.NIC, bmov1alpha1.NIC{MAC: mac})
		}
		return h
	}
	vouching := host("h9", "")
	vouching.Annotations = map[string]string{bootstrapv1.VouchedAgentAnnotation: "a-0"}
	alone := func(recorded string) *bootstrapv1.OpenshiftAssistedConfig {
		c := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m-0",
			Annotations: map[string]string{bootstrapv1.InfraEnvAnnotation: "m-0-env", bootstrapv1.AgentAnnotation: recorded}}}
		c.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv
		return c
	}
	for name, tt := range map[string]struct {
		macs  []string
		hosts []client.Object
		want  string
	}{
		"nothing is known of hosts":     {macs: []string{"aa:00"}},
		"it is none of them":            {macs: []string{"ff:00"}, hosts: []client.Object{host("h0", "aa:00")}, want: unknown + " ff:00"},
		"it is a host":                  {macs: []string{"ff:00", "AA:00"}, hosts: []client.Object{host("h0", "aa:00"), host("h1", "aa:01")}},
		"it has an address of one host": {macs: []string{"dd:00"}, hosts: []client.Object{host("h0", "aa:00", "dd:00")}},
		"it has an address that many have": {
			macs: []string{"dd:00"}, hosts: []client.Object{host("h0", "aa:00", "dd:00"), host("h1", "aa:01", "dd:00")}, want: unknown + " dd:00",
		},
		"somebody vouches for it": {macs: []string{"ff:00"}, hosts: []client.Object{vouching}},
		"its InfraEnv tells":      {macs: []string{"ff:00"}, hosts: []client.Object{host("h0", "aa:00"), alone("")}},
		"its InfraEnv told":       {macs: []string{"ff:00"}, hosts: []client.Object{host("h0", "aa:00"), alone("a-0")}},
		"another Agent was first": {macs: []string{"ff:00"}, hosts: []client.Object{host("h0", "aa:00"), alone("a-1")}, want: unknown + " ff:00"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "a-0", Labels: map[string]string{assisted.InfraEnvLabel: "m-0-env"},
			}}
			for _, mac := range tt.macs {
				agent.Status.Inventory.Interfaces = append(agent.Status.Inventory.Interfaces, assisted.Interface{MACAddress: mac})
			}
			text, err := (&Reconciler{Client: indextest.Builder(tt.hosts...).Build()}).explanation(t.Context(), agent)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(text).To(HavePrefix(tt.want))
			if tt.want == "" {
				NewWithT(t).Expect(text).To(BeEmpty())
			}
		})
	}

	g := NewWithT(t)
	agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0"}}
	agent.Status.Inventory.Interfaces = []assisted.Interface{{MACAddress: "aa:00"}}
	other := agent.DeepCopy()
	other.Name, other.Status.Inventory.Interfaces = "a-1", []assisted.Interface{{MACAddress: "aa:01"}}
	r := &Reconciler{Client: indextest.Builder(agent, other).Build()}
	own := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a-0"}}
	g.Expect(r.concerned(t.Context(), host("h0", "aa:00"))).To(ConsistOf(own), "and no other Agent of the namespace")
}
