// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"fmt"
	"slices"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// waiting is a config of an InfraEnv whose host is not recognised, its Machine, and the host of that, which boots from an address.
func waiting(name, mac, serial string) []client.Object {
	c := config(name, metav1.ConditionFalse)
	c.Annotations = map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}
	return []client.Object{machine(name), c, bareMetalHost("host-"+name, name, mac, serial)}
}

func bareMetalHost(name, consumer, mac, serial string) *bmov1alpha1.BareMetalHost {
	host := &bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	host.Spec.BootMACAddress = mac
	host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: serial}}
	if consumer != "" {
		host.Spec.ConsumerRef = &corev1.ObjectReference{Name: consumer}
	}
	return host
}

func agentOf(name, claim string, macs ...string) *assisted.Agent {
	agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{assisted.InfraEnvLabel: "demo-x"}, Annotations: map[string]string{},
	}}
	if claim != "" {
		agent.Annotations[bootstrapv1.ClaimAnnotation] = claim
	}
	for _, mac := range macs {
		agent.Status.Inventory.Interfaces = append(agent.Status.Inventory.Interfaces, assisted.Interface{MACAddress: mac})
	}
	return agent
}

// unmatched is an Agent in which no host is recognised.
func unmatched(name string, macs ...string) *assisted.Agent {
	agent := agentOf(name, "", macs...)
	agent.Annotations[bootstrapv1.RecognitionAnnotation] = "no BareMetalHost has one of its addresses"
	return agent
}

// world has two hosts that wait and have nothing in common with each other, and twins that wait.
func world(more ...client.Object) []client.Object {
	objects := append(waiting("a", "aa:00", "s-a"), waiting("b", "bb:00", "s-b")...)
	objects = append(append(objects, waiting("twin-0", "cc:00", "s-c")...), waiting("twin-1", "cc:01", "s-c")...)
	return append(objects, more...)
}

// TestFromAgent: an Agent wakes those configs whose host it is or may be taken for, and not every one that waits.
func TestFromAgent(t *testing.T) {
	alone := config("alone", metav1.ConditionFalse)
	alone.Annotations, alone.Spec.HostIdentity = map[string]string{bootstrapv1.InfraEnvAnnotation: "own"}, bootstrapv1.HostIdentityInfraEnv
	recording := config("recording", metav1.ConditionTrue)
	recording.Annotations = map[string]string{bootstrapv1.AgentAnnotation: "lost"}
	vouching := bareMetalHost("host-v", "b", "", "")
	vouching.Annotations = map[string]string{bootstrapv1.VouchedAgentAnnotation: "vouched"}
	usb := func(o client.Object) client.Object {
		host, ok := o.(*bmov1alpha1.BareMetalHost)
		if ok {
			host.Status.HardwareDetails.NIC = []bmov1alpha1.NIC{{MAC: "dd:00"}}
		}
		return o
	}
	own := agentOf("own", "")
	own.Labels[assisted.InfraEnvLabel] = "own"
	for name, tt := range map[string]struct {
		agent *assisted.Agent
		more  []client.Object
		usb   bool
		want  []string
	}{
		"it reports nothing yet":         {agent: agentOf("x", "")},
		"it is a host":                   {agent: agentOf("x", "", "ff:00", "aa:00"), want: []string{"ns/a"}},
		"it is one of two twins":         {agent: agentOf("x", "", "cc:00"), want: []string{"ns/twin-0", "ns/twin-1"}},
		"it is two hosts":                {agent: agentOf("x", "", "aa:00", "bb:00"), want: []string{"ns/a", "ns/b"}},
		"it is none":                     {agent: unmatched("x", "ff:00")},
		"it is claimed":                  {agent: agentOf("x", "a/nsa", "bb:00"), want: []string{"ns/a"}},
		"its Machine is gone":            {agent: agentOf("x", "gone/gone", "bb:00"), want: []string{"ns/b"}},
		"somebody vouches for it":        {agent: agentOf("vouched", ""), more: []client.Object{vouching}, want: []string{"ns/b"}},
		"it is alone in its InfraEnv":    {agent: own, more: []client.Object{alone}, want: []string{"ns/alone"}},
		"a config has recorded it":       {agent: agentOf("lost", ""), more: []client.Object{recording}, want: []string{"ns/recording"}},
		"all hosts have its address":     {agent: agentOf("x", "", "dd:00"), usb: true},
		"that address, and a host's own": {agent: agentOf("x", "", "dd:00", "aa:00"), usb: true, want: []string{"ns/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := world(tt.more...)
			if tt.usb {
				for i := range objects {
					objects[i] = usb(objects[i])
				}
			}
			got := names(mapperOf(t, objects...).FromAgent(t.Context(), tt.agent))
			slices.Sort(got)
			NewWithT(t).Expect(slices.Compact(got)).To(Equal(tt.want))
		})
	}
}

// TestFromAnyHost: a BareMetalHost wakes its own config, and those that its addresses and its serial number concern.
func TestFromAnyHost(t *testing.T) {
	vouching := bareMetalHost("host-v", "", "", "")
	vouching.Annotations = map[string]string{bootstrapv1.VouchedAgentAnnotation: "y"}
	for name, tt := range map[string]struct {
		host *bmov1alpha1.BareMetalHost
		want []string
	}{
		"a free host":                                  {bareMetalHost("x", "", "ff:00", ""), nil},
		"its own config":                               {bareMetalHost("x", "a", "ff:00", ""), []string{"ns/a"}},
		"it has the serial number of others":           {bareMetalHost("x", "", "ff:00", "S-C"), []string{"ns/twin-0", "ns/twin-1"}},
		"it has the address of an Agent that is other": {bareMetalHost("x", "", "bb:00", ""), []string{"ns/b"}},
		"it has the address of a claimed Agent":        {bareMetalHost("x", "", "ee:00", ""), []string{"ns/a"}},
		"somebody vouches for an Agent":                {vouching, []string{"ns/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapperOf(t, world(agentOf("y", "", "bb:00"), agentOf("z", "a/nsa", "ee:00"))...)
			got := names(m.FromAnyHost(t.Context(), tt.host))
			slices.Sort(got)
			NewWithT(t).Expect(slices.Compact(got)).To(Equal(tt.want))
		})
	}
}

// TestIdentities: others than its own config hear of a BareMetalHost when what it is recognised by changes, and of nothing else.
func TestIdentities(t *testing.T) {
	before := bareMetalHost("x", "a", "ff:00", "s-x")
	for name, tt := range map[string]struct {
		change func(*bmov1alpha1.BareMetalHost)
		want   bool
	}{
		"its boot address":    {func(h *bmov1alpha1.BareMetalHost) { h.Spec.BootMACAddress = "ff:01" }, true},
		"its serial number":   {func(h *bmov1alpha1.BareMetalHost) { h.Status.HardwareDetails.SystemVendor.SerialNumber = "s-y" }, true},
		"its other addresses": {func(h *bmov1alpha1.BareMetalHost) { h.Status.HardwareDetails.NIC = []bmov1alpha1.NIC{{MAC: "ff:02"}} }, true},
		"somebody vouches": {func(h *bmov1alpha1.BareMetalHost) {
			h.Annotations = map[string]string{bootstrapv1.VouchedAgentAnnotation: "y"}
		}, true},
		"another annotation":     {func(h *bmov1alpha1.BareMetalHost) { h.Annotations = map[string]string{"example.com/flap": "1"} }, false},
		"its state and consumer": {func(h *bmov1alpha1.BareMetalHost) { h.Status.PoweredOn, h.Spec.ConsumerRef = true, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tt.change(after)
			NewWithT(t).Expect(Identities.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tt.want))
		})
	}
	g := NewWithT(t)
	g.Expect(Identities.Create(event.CreateEvent{Object: before})).To(BeTrue())
	g.Expect(Identities.Delete(event.DeleteEvent{Object: before})).To(BeTrue())
}

// TestCrowd: hosts and Agents that are many with one address or serial number hear nothing of each other: they cannot be told apart, before
// and after, and each event of theirs would wake all.
func TestCrowd(t *testing.T) {
	for size, want := range map[int]int{16: 16, 17: 0} {
		var objects []client.Object
		for i := range size {
			objects = append(objects, waiting(fmt.Sprintf("crowd-%02d", i), "ff:ff", "s-f")...)
			objects = append(objects, agentOf(fmt.Sprintf("agent-%02d", i), "", "ff:ff"))
		}
		g, m := NewWithT(t), mapperOf(t, objects...)
		for _, woken := range [][]reconcile.Request{
			m.FromAnyHost(t.Context(), bareMetalHost("x", "", "ff:ff", "s-f")), m.FromAgent(t.Context(), agentOf("agent-00", "", "ff:ff")),
		} {
			all := names(woken)
			slices.Sort(all)
			g.Expect(slices.Compact(all)).To(HaveLen(want))
		}
	}
}

// TestFromStranger: an Agent that is nobody's wakes the configs that wait for a host, once, and not one more when there are many.
func TestFromStranger(t *testing.T) {
	g := NewWithT(t)
	alone := config("alone", metav1.ConditionFalse)
	alone.Annotations, alone.Spec.HostIdentity = map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}, bootstrapv1.HostIdentityInfraEnv
	stranger, waits := unmatched("s-0", "ff:00"), []string{"ns/a", "ns/b", "ns/twin-0", "ns/twin-1"}
	objects := world(stranger, alone)
	g.Expect(names(mapperOf(t, objects...).FromStranger(t.Context(), stranger))).To(ConsistOf(waits))
	for i := range 2 * identity.MaxStrangers {
		objects = append(objects, unmatched(fmt.Sprintf("s-%d", i+1), fmt.Sprintf("ff:%02d", i+1)))
	}
	g.Expect(names(mapperOf(t, objects...).FromStranger(t.Context(), stranger))).To(BeEmpty())

	told := func(before, after client.Object) bool {
		return Strangers.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	busy := stranger.DeepCopy()
	busy.Status.DebugInfo.StateInfo = "it says something every minute"
	g.Expect(told(stranger, busy)).To(BeFalse())
	g.Expect(told(agentOf("s-0", ""), stranger)).To(BeTrue())
	g.Expect(told(stranger, agentOf("s-0", "a/nsa"))).To(BeTrue(), "it is somebody's now")
	g.Expect(told(agentOf("s-0", ""), agentOf("s-0", "a/nsa"))).To(BeFalse())
	moved := stranger.DeepCopy()
	moved.Labels[assisted.InfraEnvLabel] = "other"
	g.Expect(told(stranger, moved)).To(BeTrue())
}

// TestFromSerial: an Agent that reports the serial number of a BareMetalHost with another address is that host's problem from when the
// number is known.
func TestFromSerial(t *testing.T) {
	g := NewWithT(t)
	stranger := unmatched("s-0", "ff:00")
	stranger.Status.Inventory.SystemVendor.SerialNumber = "s-x"
	before, after := bareMetalHost("x", "", "ee:00", ""), bareMetalHost("x", "", "ee:00", "S-X")
	g.Expect(Serials.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
	g.Expect(Serials.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after})).To(BeFalse())
	m := mapperOf(t, world(stranger)...)
	g.Expect(names(m.FromSerial(t.Context(), after))).To(ConsistOf("ns/a", "ns/b", "ns/twin-0", "ns/twin-1"))
	g.Expect(names(m.FromSerial(t.Context(), before))).To(BeEmpty())
}
