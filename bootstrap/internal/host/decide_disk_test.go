// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// withDisks gives the Agent two disks.
func withDisks(s *scope) {
	s.agents[0].Status.Inventory.Disks = []assisted.Disk{{ID: "id-a", Path: "/dev/sda"}, {ID: "id-b", Path: "/dev/sdb"}}
}

// hinted is withDisks with a BareMetalHost that asks for the second one.
func hinted(s *scope) {
	withDisks(s)
	s.host.Spec.RootDeviceHints = &bmov1alpha1.RootDeviceHints{DeviceName: "/dev/sdb"}
}

var boundTrue = assisted.Condition{Type: assisted.ConditionBound, Status: corev1.ConditionTrue}

// chosen is a bound Agent that waits for the second disk.
func chosen(state string, conditions ...assisted.Condition) func(*scope) {
	return func(s *scope) {
		hinted(s)
		bound(&s.agents[0], state, conditions...)
		s.agents[0].Spec.Approved = false
		s.agents[0].Annotations[bootstrapv1.InstallationDiskAnnotation] = "id-b"
	}
}

func TestDecideDisk(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*scope)
		reason   string
		bind     string // the disk of the bind; "-" when there is no bind
		approved bool
		recorded string
	}{
		{name: "no hints", change: withDisks, reason: bootstrapv1.AgentBindingReason, recorded: bootstrapv1.InstallationDiskDefault},
		{name: "hints of the host", change: hinted, reason: bootstrapv1.AgentBindingReason, bind: "id-b", recorded: "id-b"},
		{name: "hints of the config win", change: func(s *scope) {
			hinted(s)
			s.config.Spec.Installation.RootDeviceHints.DeviceName = "/dev/sda"
		}, reason: bootstrapv1.AgentBindingReason, bind: "id-a", recorded: "id-a"},
		{name: "without a host", change: func(s *scope) {
			withDisks(s)
			ofOtherInfrastructure(s)
			s.config.Spec.Installation.RootDeviceHints.DeviceName = "/dev/sda"
		}, reason: bootstrapv1.AgentBindingReason, bind: "id-a", recorded: "id-a"},
		{name: "a host without the disk is not bound", change: func(s *scope) {
			hinted(s)
			s.host.Spec.RootDeviceHints.DeviceName = "/dev/sdc"
		}, reason: bootstrapv1.InstallationDiskNotFoundReason, bind: "-"},
		{name: "nor on day 2", change: func(s *scope) {
			hinted(s)
			completed(s)
			s.host.Spec.RootDeviceHints.DeviceName = "/dev/sdc"
		}, reason: bootstrapv1.InstallationDiskNotFoundReason, bind: "-"},
		{
			name: "the bound host has not reported", change: chosen("discovering", boundTrue), reason: bootstrapv1.AgentBindingReason,
			bind: "-", recorded: "id-b",
		},
		{
			name: "the bind has not been taken over", change: chosen(assisted.AgentStateKnownUnbound),
			reason: bootstrapv1.AgentBindingReason, bind: "-", recorded: "id-b",
		},
		{
			name: "the bound host has reported", change: chosen(assisted.AgentStateInsufficient, boundTrue),
			reason: bootstrapv1.AgentBindingReason, bind: "-", approved: true, recorded: "id-b",
		},
		{
			name: "the bound host is known", change: chosen(assisted.AgentStateKnown, boundTrue), reason: bootstrapv1.AgentBindingReason,
			bind: "-", approved: true, recorded: "id-b",
		},
		{name: "hints that change later change nothing", change: func(s *scope) {
			chosen(assisted.AgentStateKnown, boundTrue)(s)
			s.host.Spec.RootDeviceHints = nil
		}, reason: bootstrapv1.AgentBindingReason, bind: "-", approved: true, recorded: "id-b"},
		{name: "the disk is gone", change: func(s *scope) {
			chosen(assisted.AgentStateKnown, boundTrue)(s)
			s.agents[0].Status.Inventory.Disks = s.agents[0].Status.Inventory.Disks[:1]
		}, reason: bootstrapv1.InstallationDiskNotFoundReason, bind: "-", recorded: "id-b"},
		{name: "the disk is set and the Agent approved", change: func(s *scope) {
			chosen(assisted.AgentStateKnown, boundTrue)(s)
			s.agents[0].Spec.Approved, s.agents[0].Spec.InstallationDiskID = true, "id-b"
			s.config.Annotations[bootstrapv1.InstallationDiskAnnotation] = "id-b"
		}, reason: bootstrapv1.AgentBindingReason, bind: "-"},
		{name: "somebody took the approval back", change: func(s *scope) {
			chosen(assisted.AgentStateKnown, boundTrue)(s)
			s.agents[0].Spec.InstallationDiskID = "id-b"
		}, reason: bootstrapv1.AgentBindingReason, bind: "-", recorded: "id-b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			tt.change(s)
			d := decide(s)
			g.Expect(d.installed.Reason).To(Equal(tt.reason), d.installed.Message)
			if tt.bind == "-" {
				g.Expect(d.bind).To(BeNil())
			} else {
				g.Expect(d.bind.disk).To(Equal(tt.bind))
			}
			g.Expect(d.approve != nil).To(Equal(tt.approved))
			g.Expect(d.disk).To(Equal(tt.recorded))
		})
	}
}

// TestBindWithDisk: of a host with a chosen disk nothing is approved by the patch that binds it, and the disk follows with the approval.
func TestBindWithDisk(t *testing.T) {
	tests := []struct {
		name   string
		change func(*assisted.Agent)
		disk   string
		want   func(*WithT, *assisted.Agent)
	}{
		{name: "no disk", change: func(*assisted.Agent) {}, want: func(g *WithT, a *assisted.Agent) {
			g.Expect(a.Spec.Approved).To(BeTrue())
			g.Expect(a.Annotations).NotTo(HaveKey(bootstrapv1.InstallationDiskAnnotation))
		}},
		{name: "a disk", change: func(*assisted.Agent) {}, disk: "id-b", want: func(g *WithT, a *assisted.Agent) {
			g.Expect(a.Spec.Approved).To(BeFalse())
			g.Expect(a.Spec.InstallationDiskID).To(BeEmpty())
			g.Expect(a.DiskOwed()).To(BeTrue())
		}},
		{name: "a disk of an earlier bind, chosen again", change: func(a *assisted.Agent) {
			a.Annotations[bootstrapv1.InstallationDiskAnnotation], a.Spec.InstallationDiskID, a.Spec.Approved = "id-b", "id-b", true
		}, disk: "id-b", want: func(g *WithT, a *assisted.Agent) {
			g.Expect(a.Spec.Approved).To(BeFalse())
			g.Expect(a.Spec.InstallationDiskID).To(BeEmpty())
			g.Expect(a.DiskOwed()).To(BeTrue())
		}},
		{name: "a disk of an earlier bind, and no hints any more", change: func(a *assisted.Agent) {
			a.Annotations[bootstrapv1.InstallationDiskAnnotation], a.Spec.InstallationDiskID = "id-b", "id-b"
		}, want: func(g *WithT, a *assisted.Agent) {
			g.Expect(a.Spec.Approved).To(BeTrue())
			g.Expect(a.Spec.InstallationDiskID).To(BeEmpty())
			g.Expect(a.Annotations).NotTo(HaveKey(bootstrapv1.InstallationDiskAnnotation))
		}},
		{
			name:   "a user's disk, without hints",
			change: func(a *assisted.Agent) { a.Spec.InstallationDiskID = "id-a" },
			want: func(g *WithT, a *assisted.Agent) {
				g.Expect(a.Spec.InstallationDiskID).To(Equal("id-a"))
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			tt.change(&s.agents[0])
			scheme := runtime.NewScheme()
			g.Expect(assisted.AddToScheme(scheme)).To(Succeed())
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&s.agents[0]).Build()
			r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10), controller: capicontrollerutil.NewFakeController()}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(&s.agents[0]), &s.agents[0])).To(Succeed())
			carryOut := func(d joining) {
				decided := decision{joining: d}
				o := r.apply(t.Context(), s, decided)
				g.Expect(o.err()).NotTo(HaveOccurred())
				setStatus(s.config, result{decision: &decided, outcomes: o})
			}
			carryOut(joining{bind: &binding{agent: &s.agents[0], disk: tt.disk}, disk: "recorded"})
			agent := &assisted.Agent{}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(&s.agents[0]), agent)).To(Succeed())
			tt.want(g, agent)
			g.Expect(s.config.Annotations).To(HaveKeyWithValue(bootstrapv1.InstallationDiskAnnotation, "recorded"))

			if tt.disk == "" {
				return
			}
			carryOut(joining{approve: agent})
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(agent), agent)).To(Succeed())
			g.Expect(agent.Spec.Approved).To(BeTrue())
			g.Expect(agent.Spec.InstallationDiskID).To(Equal(tt.disk))
			g.Expect(agent.DiskOwed()).To(BeFalse())
		})
	}
}
