// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// stage is where a story is played: the objects of a namespace, and the machines behind the Agents.
type stage struct {
	story
	zero   time.Time
	now    time.Duration
	scopes []*scope
	// recognized is what the last pass for each of them says of its host.
	recognized [3]fact.Fact
	hosts      []bmov1alpha1.BareMetalHost
	agents     []assisted.Agent
	// behind tells whose inventory an Agent shows.
	behind map[string]string
	// registered is when the service began to examine the host of each Agent.
	registered map[string]time.Duration
	// began are the Agents whose installation has begun.
	began map[string]bool
	// rebooted is when each host was power-cycled, because its Agent was deleted.
	rebooted map[string]time.Duration
}

const (
	realMAC, realSerial = "aa:00", "S-0"
	stranger            = "stranger"
)

func (g *stage) at(d time.Duration) metav1.Time { return metav1.NewTime(g.zero.Add(d)) }

func newStage(st story) *stage {
	g := &stage{
		story: st, zero: born.Time, behind: map[string]string{}, registered: map[string]time.Duration{}, began: map[string]bool{},
		rebooted: map[string]time.Duration{},
	}
	for i, cluster := range []string{"one", "one", "two"} {
		s := discovered()
		name := fmt.Sprintf("m-%d", i)
		s.machine.Name, s.machine.UID, s.machine.CreationTimestamp = name, types.UID("uid-"+name), g.at(0)
		s.config.Name, s.config.Annotations = name, map[string]string{bootstrapv1.InfraEnvAnnotation: cluster}
		s.infraMachine.SetName(name)
		s.infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: fmt.Sprintf("ns/h%d", i)})
		s.install.Name, s.install.Spec.ClusterDeploymentRef.Name = cluster, cluster
		s.agents, s.hosts, s.host = nil, nil, nil
		g.scopes = append(g.scopes, s)
		g.addHost(fmt.Sprintf("h%d", i), fmt.Sprintf("aa:%02d", i), fmt.Sprintf("S-%d", i))
		g.hosts[i].Spec.ConsumerRef = &corev1.ObjectReference{
			Kind: metal3.MachineKind, APIVersion: metal3.InfrastructureGroup + "/v1beta2", Namespace: "ns", Name: name,
		}
	}
	if st.twins {
		serial(&g.hosts[1], realSerial)
	}
	if !st.known {
		serial(&g.hosts[0], "")
	}
	return g
}

func (g *stage) addHost(name, mac, serialNumber string) {
	host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
	host.Spec.BootMACAddress = mac
	host.Status.Provisioning.State = bmov1alpha1.StateAvailable
	serial(&host, serialNumber)
	g.hosts = append(g.hosts, host)
}

// register makes or updates the Agent of a machine: the object of one that registers again stays.
func (g *stage) register(who, name, infraEnv, mac, serialNumber string) {
	g.behind[name] = who
	i := slices.IndexFunc(g.agents, func(a assisted.Agent) bool { return a.Name == name })
	if i < 0 {
		a := assisted.Agent{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: g.at(g.now)}}
		a.Status.DebugInfo.State, g.registered[name] = assisted.AgentStateDiscoveringUnbound, g.now
		g.agents = append(g.agents, a)
		slices.SortFunc(g.agents, func(a, b assisted.Agent) int { return cmp.Compare(a.Name, b.Name) })
		i = slices.IndexFunc(g.agents, func(a assisted.Agent) bool { return a.Name == name })
	}
	a := &g.agents[i]
	if a.Labels[assisted.InfraEnvLabel] != infraEnv {
		a.Labels, a.Spec = map[string]string{assisted.InfraEnvLabel: infraEnv}, assisted.AgentSpec{} // Moved to another InfraEnv.
		a.Status.DebugInfo.State, g.registered[name] = assisted.AgentStateDiscoveringUnbound, g.now
	}
	a.Status.Inventory.Interfaces = []assisted.Interface{{MACAddress: mac}}
	a.Status.Inventory.SystemVendor.SerialNumber = serialNumber
}

// examineTakes is how long the service takes to examine a host: it looks every 8 to 10 s.
const examineTakes = 10 * time.Second

// examine lets the service examine the hosts that registered long enough before a time.
func (g *stage) examine(until time.Duration) {
	for i := range g.agents {
		a := &g.agents[i]
		if a.Status.DebugInfo.State == assisted.AgentStateDiscoveringUnbound && g.registered[a.Name]+examineTakes <= until {
			a.Status.DebugInfo.State = assisted.AgentStateKnownUnbound
			g.now = max(g.now, g.registered[a.Name]+examineTakes)
		}
	}
	g.settle()
}

// registerReal registers the machine behind a BareMetalHost.
func (g *stage) registerReal(i int) {
	serials, boards, clusters := []string{realSerial, "S-1", "S-2"}, []string{"r-0", "r-1", "r-2"}, []string{"one", "one", "two"}
	if g.twins {
		serials[1] = realSerial
	}
	if g.oneBoard {
		boards[1] = boards[0]
	}
	g.register(fmt.Sprintf("h%d", i), boards[i], clusters[i], fmt.Sprintf("aa:%02d", i), serials[i])
}

func (g *stage) registerStranger() {
	name, infraEnv, mac, serialNumber := stranger, "one", "ff:00", ""
	if g.strangerMAC {
		mac = realMAC
	}
	if g.strangerSerial {
		serialNumber = realSerial
	}
	if g.strangerElsewhere {
		infraEnv = "two"
	}
	if g.clone {
		name = "r-0"
	}
	g.register(stranger, name, infraEnv, mac, serialNumber)
}

// event is something that happens at a time of a story.
type event struct {
	at time.Duration
	do func()
}

func (g *stage) events() []event {
	setState := func(state bmov1alpha1.ProvisioningState) {
		for i := range g.scopes {
			g.hosts[i].Status.Provisioning.State = state
		}
	}
	list := []event{
		{provisioningBegins, func() {
			setState(bmov1alpha1.StateProvisioning)
			for i := range g.scopes {
				g.hosts[i].Status.OperationHistory.Provision.Start = g.at(g.now)
			}
		}},
		{provisioned, func() { setState(bmov1alpha1.StateProvisioned) }},
		{realsRegister, func() { g.registerReal(0) }},
		{realsRegister + time.Second, func() { g.registerReal(1); g.registerReal(2) }},
		{g.strangerAt, g.registerStranger},
		{g.again, func() { g.registerReal(0) }},
		{g.typo, func() { g.addHost("h9", realMAC, "") }},
	}
	if g.earlier {
		list = append(list, event{-2 * time.Hour, func() { g.registerReal(0) }})
	}
	if g.begins {
		list = append(list, event{installationBegins, g.begin})
	}
	slices.SortStableFunc(list, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return slices.DeleteFunc(list, func(e event) bool { return e.at >= never })
}

// begin begins the installation of all that are approved.
func (g *stage) begin() {
	for i := range g.agents {
		if a := &g.agents[i]; a.Spec.Approved {
			g.began[a.Name] = true
			a.Status.Conditions = []assisted.Condition{
				{Type: assisted.ConditionInstalled, Status: corev1.ConditionFalse, Reason: assisted.ReasonInstallationInProgress},
			}
		}
	}
}

// play lets a story happen, and calls check when all Machines have done what there is to do after each event.
func (g *stage) play(check func()) {
	for _, e := range g.events() {
		g.examine(e.at)
		check()
		g.now = e.at
		e.do()
		g.settle()
		check()
	}
	g.examine(never)
	check()
	for i := range g.scopes {
		if rebooted, ok := g.rebooted[fmt.Sprintf("h%d", i)]; ok {
			g.now = max(g.now, rebooted+rebootTakes)
			g.registerReal(i)
			g.examine(never)
			check()
		}
	}
}

// settle runs the passes of all Machines until none of them writes any more.
func (g *stage) settle() {
	for range 50 {
		wrote := false
		for i := range g.scopes {
			wrote = g.pass(i) || wrote
		}
		if !wrote {
			return
		}
	}
	panic("the passes do not come to an end")
}

// pass is one pass for a Machine: the real decision, carried out on the objects of the stage.
func (g *stage) pass(i int) (wrote bool) {
	s := g.scopes[i]
	s.now, s.hosts, s.host, s.allAgents, s.agents, s.livingClaims = g.at(g.now).Time, g.hosts, &g.hosts[i], g.agents, nil, nil
	for k := range g.agents {
		if s.concerns(&g.agents[k]) {
			s.agents = append(s.agents, g.agents[k])
		}
	}
	for k, other := range g.scopes {
		if k != i {
			s.livingClaims = append(s.livingClaims, other.claim())
		}
	}
	d := decide(s)
	g.recognized[i] = d.recognized
	if d.withdraw != nil {
		a := g.agent(d.withdraw.Name)
		a.Spec.Approved, a.Spec.ClusterDeploymentName, a.Status.DebugInfo.State = false, nil, assisted.AgentStateKnownUnbound
		if d.release {
			a.Annotations = nil
		}
		return true
	}
	if d.leftover != nil {
		name := d.leftover.Name
		g.agents = slices.DeleteFunc(g.agents, func(a assisted.Agent) bool { return a.Name == name })
		wrote = true
	}
	if d.claim != nil {
		g.agent(d.claim.Name).Annotations = map[string]string{bootstrapv1.ClaimAnnotation: s.claim()}
		wrote = true
	}
	if d.record != "" {
		s.config.Annotations[bootstrapv1.AgentAnnotation] = d.record
		wrote = true
	}
	if d.reboot {
		delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
		g.rebooted[s.host.Name] = g.now
		return true
	}
	if d.bind != nil {
		a := g.agent(d.bind.agent.Name)
		if d.bind.claim != "" {
			a.Annotations = map[string]string{bootstrapv1.ClaimAnnotation: d.bind.claim}
		}
		a.Spec.Approved, a.Spec.ClusterDeploymentName, a.Status.DebugInfo.State = true, &d.bind.cluster, assisted.AgentStateKnown
		wrote = true
	}
	return wrote
}

// agent returns an Agent of the stage; nil when it does not exist.
func (g *stage) agent(name string) *assisted.Agent {
	for i := range g.agents {
		if g.agents[i].Name == name {
			return &g.agents[i]
		}
	}
	return nil
}

func (g *stage) approved(name string) bool {
	a := g.agent(name)
	return a != nil && a.Spec.Approved
}
