// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index/indextest"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const (
	namespace = "ns"
	// worlds is how many worlds TestCandidates makes up.
	worlds = 3000
)

// TestCandidates makes up worlds of few addresses and serial numbers, in which hosts and Agents are mistaken for each other in every way,
// and compares what is said of each host: with all Agents and hosts of the namespace, and with the candidates alone. A number that fails
// makes the same world again.
func TestCandidates(t *testing.T) {
	reasons := map[string]int{}
	for n := range uint64(worlds) {
		w := newWorld(rand.New(rand.NewPCG(n, 0)))
		reader := indextest.NewReader()
		for i := range w.agents {
			reader.Put(&w.agents[i])
		}
		for i := range w.hosts {
			reader.Put(&w.hosts[i])
		}
		for i := range w.hosts {
			all := w.request(&w.hosts[i], w.agents, w.hosts)
			candidates, err := index.Finder{Reader: reader, Namespace: namespace}.Candidates(t.Context(), index.Wanted{
				Host: &w.hosts[i], Claim: all.Claim, InfraEnv: infraEnv,
			})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			want, got := identity.Recognize(all), identity.Recognize(w.request(&w.hosts[i], candidates.Agents, candidates.Hosts))
			NewWithT(t).Expect(got).To(Equal(want), "world %d, host %d", n, i)
			reasons[cmp.Or(want.Reason, "recognized")]++
		}
	}
	for _, reason := range []string{
		"recognized", bootstrapv1.SeveralAgentsReason, bootstrapv1.SeveralHostsReason, bootstrapv1.DuplicateSerialNumberReason,
		bootstrapv1.AgentClaimedByOtherReason, bootstrapv1.WaitingForAgentReason, bootstrapv1.AgentNotRecognizedReason,
		bootstrapv1.WaitingForHostReason,
	} {
		NewWithT(t).Expect(reasons[reason]).To(BeNumerically(">", 20), reason)
	}
}

// TestCrowd: of hosts and Agents that are many with one address, some are looked at, the same in each pass, and nobody is recognised.
func TestCrowd(t *testing.T) {
	const size = 100
	reader, w := indextest.NewReader(), madeUp{}
	for i := range size {
		host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("host-%02d", i)}}
		host.Spec.BootMACAddress = "52:54:00:00:00:01"
		agent := assisted.Agent{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("agent-%02d", i), Labels: map[string]string{assisted.InfraEnvLabel: infraEnv},
		}}
		agent.Status.Inventory.Interfaces = []assisted.Interface{{MACAddress: host.Spec.BootMACAddress}}
		w.hosts, w.agents = append(w.hosts, host), append(w.agents, agent)
		reader.Put(&host)
		reader.Put(&agent)
	}
	g, last := NewWithT(t), &w.hosts[size-1]
	wanted := index.Wanted{Host: last, Claim: claimOf(last), InfraEnv: infraEnv}
	first, err := index.Finder{Reader: reader, Namespace: namespace}.Candidates(t.Context(), wanted)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Agents).To(HaveLen(16))
	g.Expect(len(first.Hosts)).To(BeNumerically("<=", 16+1+2*16), "its own, and two of each Agent that show that the address is shared")
	again, err := index.Finder{Reader: reader, Namespace: namespace}.Candidates(t.Context(), wanted)
	g.Expect(err).NotTo(HaveOccurred())
	all := identity.Recognize(w.request(last, w.agents, w.hosts))
	some := identity.Recognize(w.request(last, first.Agents, first.Hosts))
	g.Expect(identity.Recognize(w.request(last, again.Agents, again.Hosts))).To(Equal(some))
	g.Expect(some.Agent).To(BeNil())
	g.Expect(some.Reason).To(And(Equal(all.Reason), Not(BeEmpty())))
}

const infraEnv = "demo-x"

type madeUp struct {
	hosts  []bmov1alpha1.BareMetalHost
	agents []assisted.Agent
}

// request is what is known of a host with some Agents and hosts.
func (w madeUp) request(host *bmov1alpha1.BareMetalHost, agents []assisted.Agent, hosts []bmov1alpha1.BareMetalHost) identity.Request {
	r := identity.Request{Host: host, Hosts: hosts, AllAgents: agents, Claim: claimOf(host)}
	for i := range agents {
		if agents[i].Labels[assisted.InfraEnvLabel] == infraEnv || agents[i].Annotations[bootstrapv1.ClaimAnnotation] == r.Claim {
			r.Agents = append(r.Agents, agents[i])
		}
	}
	for i := range w.hosts {
		if w.hosts[i].Name != host.Name {
			r.LivingClaims = append(r.LivingClaims, claimOf(&w.hosts[i]))
		}
	}
	return r
}

func claimOf(host *bmov1alpha1.BareMetalHost) string { return "m-" + host.Name + "/uid" }

func newWorld(r *rand.Rand) madeUp {
	w := madeUp{}
	mac := func() string { return fmt.Sprintf("%02x:00", r.IntN(12)) }
	serial := func() string { return []string{"", "", "s-0", "S-0", "s-1", "s-2", "s-3", "Default string"}[r.IntN(8)] }
	for i := range 1 + r.IntN(5) {
		host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("h%d", i)}}
		host.Spec.BootMACAddress = mac()
		host.Status.Provisioning.State = []bmov1alpha1.ProvisioningState{
			bmov1alpha1.StateProvisioned, bmov1alpha1.StateProvisioned, bmov1alpha1.StateProvisioned, bmov1alpha1.StateProvisioning,
			bmov1alpha1.StateExternallyProvisioned,
		}[r.IntN(5)]
		if r.IntN(4) > 0 {
			host.Spec.ConsumerRef = &corev1.ObjectReference{Name: host.Name}
		}
		if r.IntN(4) > 0 {
			host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{SystemVendor: bmov1alpha1.HardwareSystemVendor{SerialNumber: serial()}}
			for range r.IntN(4) {
				host.Status.HardwareDetails.NIC = append(host.Status.HardwareDetails.NIC, bmov1alpha1.NIC{MAC: mac()})
			}
		}
		if r.IntN(10) == 0 {
			host.Annotations = map[string]string{bootstrapv1.VouchedAgentAnnotation: fmt.Sprintf("a%d", r.IntN(5))}
		}
		w.hosts = append(w.hosts, host)
	}
	for i := range r.IntN(6) {
		w.agents = append(w.agents, w.agent(r, fmt.Sprintf("a%d", i), mac, serial))
	}
	slices.SortFunc(w.agents, func(a, b assisted.Agent) int { return cmp.Compare(a.Name, b.Name) })
	return w
}

func (w madeUp) agent(r *rand.Rand, name string, mac, serial func() string) assisted.Agent {
	agent := assisted.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{},
		Labels: map[string]string{assisted.InfraEnvLabel: []string{infraEnv, infraEnv, infraEnv, "other"}[r.IntN(4)]},
	}}
	agent.Status.Inventory.SystemVendor.SerialNumber = serial()
	for range r.IntN(4) {
		agent.Status.Inventory.Interfaces = append(agent.Status.Inventory.Interfaces, assisted.Interface{MACAddress: mac()})
	}
	if r.IntN(8) == 0 {
		agent.Status.Conditions = []assisted.Condition{{Type: assisted.ConditionInstalled, Status: corev1.ConditionTrue}}
	}
	switch r.IntN(4) {
	case 0:
		agent.Annotations[bootstrapv1.ClaimAnnotation] = claimOf(&w.hosts[r.IntN(len(w.hosts))])
	case 1:
		agent.Annotations[bootstrapv1.ClaimAnnotation] = "m-gone/uid"
	default:
		if agent.HasInventory() && len(identity.HostsMatching(&agent, w.hosts)) == 0 { // What the agent controller notes.
			agent.Annotations[bootstrapv1.RecognitionAnnotation] = "no BareMetalHost has one of its addresses"
		}
	}
	return agent
}
