// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index/indextest"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// lostInstalled makes the host of a worker one that was installed, and whose Agent is gone before the Machine has a Node.
func lostInstalled(s *scope) {
	worker(s)
	completed(s)
	fact.Done(bootstrapv1.AgentInstalledReason).Set(s.config, bootstrapv1.AgentInstalledCondition)
	s.agents = nil
}

// TestAnInstalledHostIsNotRebooted plays the passes for a host that is installed, and whose Machine has no Node for hours, while its Agent
// goes in all the ways in which it can.
func TestAnInstalledHostIsNotRebooted(t *testing.T) {
	for name, change := range map[string]func(*scope){
		"nothing is recorded": func(s *scope) { s.agents = nil; delete(s.config.Annotations, bootstrapv1.AgentAnnotation) },
		"it is gone":          func(s *scope) { s.agents = nil },
		"it is gone while the cluster is being installed": func(s *scope) {
			s.agents = nil
			s.install.Status.Conditions[0].Status, s.install.Status.Conditions[0].Reason = corev1.ConditionFalse, "InstallationInProgress"
			s.install.Annotations = map[string]string{assisted.DayOneAgentsAnnotation: "a-0"}
			s.install.Status.DebugInfo.State = assisted.ClusterStateInstalling
		},
		"it is being unbound": func(s *scope) { unbound(s, "installed") },
		"it was unbound":      func(s *scope) { unbound(s, "unbinding-pending-user-action") },
		"it was unbound, and the host boots the discovery image": func(s *scope) { unbound(s, assisted.AgentStateKnownUnbound) },
		"it is new, because the host boots the discovery image": func(s *scope) {
			s.agents[0].Annotations = nil
			unbound(s, assisted.AgentStateKnownUnbound)
		},
		"it is being deleted":       func(s *scope) { s.agents[0].DeletionTimestamp = &later },
		"CRDs are not served":       func(s *scope) { s.agents, s.missingCRDs = nil, []string{assisted.CRDAgents} },
		"the hook was taken off":    func(s *scope) { s.machine.Annotations = nil },
		"the BareMetalHost is gone": func(s *scope) { s.agents, s.host = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := booted(24 * time.Hour)
			lostInstalled(s)
			s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
			s.agents = discovered().agents
			host, day2 := s.host, s.install.DeepCopy()
			change(s)
			for range 3 {
				d := decide(s)
				g.Expect(d.reboot || d.wait.cycle || d.claim != nil || d.bind != nil || d.leftover != nil).To(BeFalse(), d.recognized.Message)
				setStatus(s.config, result{decision: &d})
				g.Expect(conditions.IsTrue(s.config, bootstrapv1.AgentInstalledCondition)).To(BeTrue())
				// What was in the way is over, and the Agent is gone.
				s.agents, s.host, s.install, s.missingCRDs = nil, host, day2, nil
				s.now = s.now.Add(24 * time.Hour)
			}
			s.machine.Status.NodeRef.Name = "m-0"
			d := decide(s)
			setStatus(s.config, result{decision: &d})
			g.Expect(conditions.GetReason(s.config, bootstrapv1.HostRecognizedCondition)).To(Equal(bootstrapv1.NodeJoinedReason))
			g.Expect(conditions.GetReason(s.config, bootstrapv1.AgentInstalledCondition)).To(Equal(bootstrapv1.NodeJoinedReason))
		})
	}
}

// unbound takes the host's Agent from its cluster.
func unbound(s *scope, state string) {
	s.agents[0].Spec.ClusterDeploymentName, s.agents[0].Status.DebugInfo.State = nil, state
}

// TestAHostThatIsBeingInstalledIsNotRebooted: assisted-service has lost its database, or the hub was restored from a backup, and the Agent
// of a host that was being installed is gone. The host may be a Node by now.
func TestAHostThatIsBeingInstalledIsNotRebooted(t *testing.T) {
	for name, change := range map[string]func(*scope){
		"it is gone":           func(s *scope) { s.agents = nil },
		"nothing is recorded":  func(s *scope) { s.agents = nil; delete(s.config.Annotations, bootstrapv1.AgentAnnotation) },
		"it is being deleted":  func(s *scope) { s.agents[0].DeletionTimestamp = &later },
		"CRDs are not served":  func(s *scope) { s.agents, s.missingCRDs = nil, []string{assisted.CRDAgents} },
		"the cluster is anew":  func(s *scope) { s.agents, s.install.Status = nil, discovered().install.Status },
		"the hub is as it was": func(s *scope) { s.agents, s.install.Status.DebugInfo.State = nil, "" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := booted(24 * time.Hour)
			worker(s)
			completed(s)
			fact.Waiting(bootstrapv1.AgentInstallingReason, "half").Set(s.config, bootstrapv1.AgentInstalledCondition)
			s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
			s.agents = discovered().agents
			change(s)
			for range 3 {
				d := decide(s)
				g.Expect(d.reboot || d.wait.cycle).To(BeFalse(), d.recognized.Message)
				setStatus(s.config, result{decision: &d})
				g.Expect(conditions.GetReason(s.config, bootstrapv1.AgentInstalledCondition)).To(Equal(bootstrapv1.AgentInstallingReason))
				s.agents, s.missingCRDs = nil, nil
				s.now = s.now.Add(24 * time.Hour)
			}
			s.agents = discovered().agents
			s.agents[0].Annotations = nil
			d := decide(s)
			g.Expect(d.claim != nil || d.bind != nil).To(BeTrue(), "it runs the discovery image, and nothing was installed")
		})
	}
}

// TestAPowerCycleThatIsHeld: baremetal-operator leaves a host alone while one of these annotations is there, and would carry a request out
// long afterwards, when the host may run its Node.
func TestAPowerCycleThatIsHeld(t *testing.T) {
	for _, annotation := range []string{bmov1alpha1.PausedAnnotation, bmov1alpha1.DetachedAnnotation} {
		t.Run(annotation, func(t *testing.T) {
			g := NewWithT(t)
			s := booted(time.Minute)
			s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
			metav1.SetMetaDataAnnotation(&s.host.ObjectMeta, annotation, "")
			d := decide(s)
			g.Expect(d.reboot).To(BeFalse())
			g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.AgentLostReason))
			g.Expect(d.recognized.Message).To(ContainSubstring(annotation))
			delete(s.host.Annotations, annotation)
			g.Expect(decide(s).reboot).To(BeTrue())
		})
	}
}

// TestAPowerCycleOfANodeIsWithdrawn: the host has become a Node before baremetal-operator has carried the request out.
func TestAPowerCycleOfANodeIsWithdrawn(t *testing.T) {
	g := NewWithT(t)
	s := booted(time.Minute)
	s.machine.Status.NodeRef.Name = "m-0"
	g.Expect(decide(s).forget).To(BeFalse(), "nothing was asked for")
	cycled := powerCycle{Boot: 1, Lost: "a-0", Machine: s.claim(), Time: s.now}
	metav1.SetMetaDataAnnotation(&s.host.ObjectMeta, bootstrapv1.PowerCycleAnnotation, cycled.String())
	g.Expect(decide(s).forget).To(BeTrue())
}

// TestALossByAMoveOnOtherInfrastructure: a move leaves Agents and status behind, and a provider ID that may be older than the installation.
func TestALossByAMoveOnOtherInfrastructure(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	ofOtherInfrastructure(s)
	s.agents, s.machine.Spec.ProviderID = nil, "dev://m-0"
	d := decide(s)
	g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.AgentLostReason))
	g.Expect(d.recognized.Message).To(And(ContainSubstring("Machine m-0 gets its Node"), ContainSubstring("if its host runs nothing")))
}

// TestALossOfANodeIsNotAskedFor: the cache does not show yet that the host is a Node.
func TestALossOfANodeIsNotAskedFor(t *testing.T) {
	g := NewWithT(t)
	s := booted(time.Minute)
	s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
	c := fakeClient(t, s)
	node := s.machine.DeepCopy()
	node.Spec.ProviderID = "metal3://ns/h0/m-0"
	g.Expect(c.Update(t.Context(), node)).To(Succeed())
	r := &Reconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(1), controller: capicontrollerutil.NewFakeController()}
	d := decide(s)
	g.Expect(d.reboot).To(BeTrue())
	g.Expect(r.apply(t.Context(), s, d).err()).NotTo(HaveOccurred())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), s.host)).To(Succeed())
	g.Expect(s.host.Annotations).NotTo(HaveKey(rebootAnnotation))
}

// TestALateRegistrationIsNoReasonToBoot: the cache does not show yet that the host has registered, or is a Node.
func TestALateRegistrationIsNoReasonToBoot(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scope, *clusterv1.Machine, *assisted.Agent)
		boots  bool
	}{
		"it has registered": {change: func(*scope, *clusterv1.Machine, *assisted.Agent) {}},
		"another has": {boots: true, change: func(_ *scope, _ *clusterv1.Machine, a *assisted.Agent) {
			a.Status.Inventory.Interfaces = nil
		}},
		"another InfraEnv's has": {boots: true, change: func(_ *scope, _ *clusterv1.Machine, a *assisted.Agent) { a.Labels = nil }},
		"one has, and the InfraEnv is for one host": {change: func(s *scope, _ *clusterv1.Machine, a *assisted.Agent) {
			s.config.Spec.HostIdentity, a.Status.Inventory.Interfaces = bootstrapv1.HostIdentityInfraEnv, nil
		}},
		"it is a Node": {change: func(_ *scope, m *clusterv1.Machine, a *assisted.Agent) {
			m.Spec.ProviderID, a.Labels = "metal3://ns/h0/m-0", nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := booted(timeout)
			late := discovered().agents[0].DeepCopy()
			late.Annotations = nil
			c := fakeClient(t, s)
			machine := s.machine.DeepCopy()
			tc.change(s, machine, late)
			g.Expect(c.Update(t.Context(), machine)).To(Succeed())
			g.Expect(c.Create(t.Context(), late)).To(Succeed())
			g.Expect(powerCycles(t, s, c)).To(Equal(tc.boots))
		})
	}
}

// powerCycles lets a host's time to register end, and reports whether baremetal-operator is asked for a power cycle of the BareMetalHost.
func powerCycles(t *testing.T, s *scope, c client.Client) bool {
	t.Helper()
	g := NewWithT(t)
	r := &Reconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(1), controller: capicontrollerutil.NewFakeController()}
	d := decide(s)
	g.Expect(d.wait.cycle).To(BeTrue())
	g.Expect(r.apply(t.Context(), s, d).err()).NotTo(HaveOccurred())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), s.host)).To(Succeed())
	_, boots := s.host.Annotations[rebootAnnotation]
	return boots
}

// sharing gives the Machine's host an address that another BareMetalHost has as well, which the pass does not know, and returns that one
// and an Agent that has nothing but the address.
func sharing(s *scope) (*bmov1alpha1.BareMetalHost, *assisted.Agent) {
	const mac = "cc:00"
	s.host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{NIC: []bmov1alpha1.NIC{{MAC: mac}}}
	other, agent := s.host.DeepCopy(), discovered().agents[0].DeepCopy()
	other.Name, other.UID, other.Spec.BootMACAddress = "host-1", "other-uid", "aa:01"
	agent.Annotations, agent.Status.Inventory.Interfaces = nil, []assisted.Interface{{MACAddress: mac}}
	return other, agent
}

// TestASharedAddressIsNoRegistration: every host has one address, as that of the port to its BMC, and one of the others has registered.
// Who takes that for a late registration waits for ever, since nothing of it comes late.
func TestASharedAddressIsNoRegistration(t *testing.T) {
	for name, shared := range map[string]bool{"another host has its address": true, "no other host has it": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := booted(timeout)
			other, agent := sharing(s)
			c := fakeClient(t, s)
			g.Expect(c.Create(t.Context(), agent)).To(Succeed())
			if shared {
				g.Expect(c.Create(t.Context(), other)).To(Succeed())
			}
			g.Expect(powerCycles(t, s, c)).To(Equal(shared))
		})
	}
}

// TestASharedAddressKeepsNoHook is the same of a Machine that is deleted.
func TestASharedAddressKeepsNoHook(t *testing.T) {
	for name, shared := range map[string]bool{"another host has its address": true, "no other host has it": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			other, agent := sharing(s)
			s.agents = nil
			c := fakeClient(t, s)
			g.Expect(c.Create(t.Context(), agent)).To(Succeed())
			if shared {
				g.Expect(c.Create(t.Context(), other)).To(Succeed())
			}
			r := &Reconciler{Client: c, APIReader: c}
			g.Expect(r.applyDeparture(t.Context(), s, departure{unhook: true}).err()).To(Succeed())
			machine := &clusterv1.Machine{}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.machine), machine)).To(Succeed())
			_, hooked := machine.Annotations[bootstrapv1.AgentDeletionHook]
			g.Expect(hooked).To(Equal(!shared))
		})
	}
}

// fakeClient has the host and the Machine of a scope, which are as they are read from then on.
func fakeClient(t *testing.T, s *scope) client.WithWatch {
	t.Helper()
	g := NewWithT(t)
	c := indextest.Builder(s.host, s.machine).Build()
	for _, o := range []client.Object{s.host, s.machine} {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	}
	return c
}

// TestALossIsAskedForOnce: the manager ends after it has asked for the power cycle, and before the config has forgotten the Agent; or the
// cache does not show yet that it has. The clock of baremetal-operator may be ahead.
func TestALossIsAskedForOnce(t *testing.T) {
	for _, sinceBoot := range []time.Duration{time.Minute, -9 * time.Minute} {
		t.Run(sinceBoot.String(), func(t *testing.T) { lossIsAskedForOnce(t, sinceBoot) })
	}
}

func lossIsAskedForOnce(t *testing.T, sinceBoot time.Duration) {
	t.Helper()
	g := NewWithT(t)
	s := booted(sinceBoot)
	s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
	c := fakeClient(t, s)
	r := &Reconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(100), controller: capicontrollerutil.NewFakeController()}
	read := func() { g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), s.host)).To(Succeed()) }
	// pass is one that ends before it writes the config, and after baremetal-operator has done what it was asked for.
	pass := func() (decision, bool) {
		t.Helper()
		read()
		d := decide(s)
		o := r.apply(t.Context(), s, d)
		g.Expect(o.identity.Err()).NotTo(HaveOccurred())
		read()
		_, asked := s.host.Annotations[rebootAnnotation]
		delete(s.host.Annotations, rebootAnnotation)
		g.Expect(c.Update(t.Context(), s.host)).To(Succeed())
		return d, asked
	}
	_, asked := pass()
	g.Expect(asked).To(BeTrue())
	d, asked := pass()
	g.Expect(asked).To(BeFalse(), "once for one loss")
	g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.AgentLostReason))
	setRecords(s.config, &d, outcomes{})
	g.Expect(s.config.Annotations).NotTo(HaveKey(bootstrapv1.AgentAnnotation))

	s.agents = discovered().agents
	s.agents[0].Annotations = nil
	d, asked = pass()
	g.Expect(asked).To(BeFalse())
	g.Expect(d.record).To(Equal("a-0"), "it has registered again")
	s.agents = nil
	_, asked = pass()
	g.Expect(asked).To(BeTrue(), "the next loss is another one")
}

// TestALossIsForgottenBeforeTheNextOne: while the record of a power cycle cannot be removed, the config does not have the Agent's name
// again. Otherwise that record would stand for the next loss too, and nobody would power-cycle the host.
func TestALossIsForgottenBeforeTheNextOne(t *testing.T) {
	hosts := schema.GroupResource{Group: bmov1alpha1.GroupVersion.Group, Resource: "baremetalhosts"}
	for name, answer := range map[string]error{
		"the host has changed":           apierrors.NewConflict(hosts, "h0", errors.New("it changed")),
		"the API server does not answer": errors.New("no answer"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := booted(time.Minute)
			s.agents = discovered().agents
			s.agents[0].Annotations = nil
			cycled := powerCycle{Boot: 1, Lost: "a-0", Machine: s.claim(), Time: s.now}
			metav1.SetMetaDataAnnotation(&s.host.ObjectMeta, bootstrapv1.PowerCycleAnnotation, cycled.String())
			scheme := runtime.NewScheme()
			g.Expect(bmov1alpha1.AddToScheme(scheme)).To(Succeed())
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.host).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return answer
				},
			}).Build()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), s.host)).To(Succeed())
			r := &Reconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(100), controller: capicontrollerutil.NewFakeController()}

			d := decide(s)
			g.Expect(d.record).To(Equal("a-0"))
			o := r.apply(t.Context(), s, d)
			g.Expect(o.record.Stops()).To(BeTrue())
			setRecords(s.config, &d, o)
			g.Expect(s.config.Annotations).NotTo(HaveKey(bootstrapv1.AgentAnnotation))

			d = decide(s)
			g.Expect(d.forget).To(BeTrue(), "the next pass tries again")
			g.Expect(s.saveRecord(t.Context(), d).Done()).To(BeTrue())
			g.Expect(s.config.Annotations).To(HaveKeyWithValue(bootstrapv1.AgentAnnotation, "a-0"))
			delete(s.host.Annotations, bootstrapv1.PowerCycleAnnotation)
			s.agents = nil
			g.Expect(decide(s).reboot).To(BeTrue(), "the next loss is another one")
		})
	}
}
