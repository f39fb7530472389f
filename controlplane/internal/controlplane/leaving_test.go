// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// closeAndHold runs until all hosts are ready, and closes day 1: the installation has not begun, as when a host is unbound before it does.
func (w *world) closeAndHold() {
	w.t.Helper()
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.HoldInstallation = new(true) })
	w.run(nil, func() bool {
		return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationOnHoldReason
	})
	install, names := w.install(), []string{}
	for _, a := range w.agents() {
		names = append(names, a.Name)
	}
	install.Annotations[assisted.DayOneAgentsAnnotation] = assisted.FormatDayOneAgents(names)
	w.must(w.client.Update(context.Background(), install))
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.HoldInstallation = nil })
}

// finalize gives all Machines the finalizer of Cluster API core, which holds them until their hosts are free.
func (w *world) finalize() {
	w.t.Helper()
	for _, m := range w.machines() {
		if len(m.Finalizers) > 0 {
			continue
		}
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		w.must(w.client.Update(context.Background(), &m))
	}
}

// freezeMachines makes the cache show the Machines as they are now.
func (w *world) freezeMachines() {
	w.t.Helper()
	old := &clusterv1.MachineList{}
	w.must(w.client.List(context.Background(), old))
	w.r.Client = w.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if machines, ok := list.(*clusterv1.MachineList); ok {
				old.DeepCopyInto(machines)
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
}

// aboutToStart is a world whose next pass starts the installation of three control-plane hosts and of workers. Its Machines have
// finalizers.
func aboutToStart(t *testing.T, workers int) *world {
	t.Helper()
	w := newWorld(t, 3, workers)
	w.closeAndHold()
	w.finalize()
	return w
}

func deleteSecondMachine(w *world) {
	m := w.machines()[1]
	w.vanish(&m)
}

// TestNoStartWithAHostThatLeaves: no installation begins with a host whose Machine is being deleted, that nothing claims, or that is
// not approved any more.
func TestNoStartWithAHostThatLeaves(t *testing.T) {
	leaves := map[string]func(*world){
		"its Machine is being deleted": deleteSecondMachine,
		"it lost its claim": func(w *world) {
			a := w.agents()[1]
			delete(a.Annotations, bootstrapv1.ClaimAnnotation)
			w.must(w.client.Update(context.Background(), &a))
		},
		"it is not approved any more": func(w *world) {
			a := w.agents()[1]
			a.Spec.Approved = false
			w.must(w.client.Update(context.Background(), &a))
		},
	}
	for name, leave := range leaves {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := aboutToStart(t, 0)
			leave(w)
			for range 4 {
				w.reconcile()
			}
			g.Expect(w.install().Spec.HoldInstallation).To(BeTrue())
			_, closed := assisted.DayOneAgents(w.install())
			g.Expect(closed).To(BeFalse())
			g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("when 3 control-plane hosts"))
		})
	}
}

// TestNoStartWithAHostWhoseMachineIsGone: what the cache does not show yet counts too, whether the Machines are read one by one or listed.
func TestNoStartWithAHostWhoseMachineIsGone(t *testing.T) {
	gone := map[string]func(*world){
		"its Machine is being deleted": deleteSecondMachine,
		"another Machine has the name of its Machine": func(w *world) {
			m := w.machines()[1]
			m.Finalizers = nil
			w.must(w.client.Update(context.Background(), &m))
			w.vanish(&m)
			m.UID, m.ResourceVersion = "another", ""
			w.must(w.client.Create(context.Background(), &m))
		},
	}
	for name, leave := range gone {
		for _, workers := range []int{0, fewHosts} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				g, w := NewWithT(t), aboutToStart(t, workers)
				w.freezeMachines()
				leave(w)
				for range 4 {
					_ = w.try() // Writing to the Machines of before conflicts.
				}
				g.Expect(w.install().Spec.HoldInstallation).To(BeTrue())
				w.r.Client = w.client
				w.reconcile()
				_, closed := assisted.DayOneAgents(w.install())
				g.Expect(closed).To(BeFalse())
			})
		}
	}
}

// TestScaleDownBeforeTheStart: fewer replicas before the installation begins never leave a host in it whose Machine goes.
func TestScaleDownBeforeTheStart(t *testing.T) {
	t.Run("together with the release of the hold, and the cache is late", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 5, 0)
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.HoldInstallation = new(true) })
		w.run(nil, func() bool {
			return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationOnHoldReason
		})
		// Agents are named by serial numbers: that of the last Machine sorts first.
		for _, a := range w.agents() {
			if a.Name == "agent-cp-4" {
				w.vanish(&a)
				a.Name, a.ResourceVersion, a.UID = "0-agent-cp-4", "", ""
				w.must(w.client.Create(context.Background(), &a))
			}
		}
		w.finalize()
		w.freezeMachines()
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Install.HoldInstallation, s.Replicas = nil, new(int32(3))
		})
		for range 2 {
			_ = w.try()
		}
		_, closed := assisted.DayOneAgents(w.install())
		g.Expect(closed).To(BeFalse(), "the hosts of Machines that were just deleted look ready")
		w.r.Client = w.client
		for range 4 {
			w.reconcile()
		}
		set, _ := assisted.DayOneAgents(w.install())
		g.Expect(set).To(Equal([]string{"agent-cp-0", "agent-cp-1", "agent-cp-2"}))
	})

	t.Run("when the set of hosts is fixed", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 5, 0)
		w.closeAndHold()
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) })
		for range 7 {
			w.reconcile()
		}
		g.Expect(w.machines()).To(HaveLen(3))
		g.Expect(w.install().Spec.HoldInstallation).To(BeFalse())
		g.Expect(w.install().Spec.ProvisionRequirements.ControlPlaneAgents).To(Equal(3))
	})
}
