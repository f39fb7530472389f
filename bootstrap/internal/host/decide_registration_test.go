// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// booted is a scope whose host was booted so long ago and has not registered.
func booted(since time.Duration) *scope {
	s := discovered()
	s.agents = nil
	delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
	s.host.Spec.Online = true
	s.host.Status.OperationHistory.Provision = bmov1alpha1.OperationMetric{Start: born, End: later}
	s.now = later.Add(since)
	return s
}

// cycled is such a scope whose host was power-cycled so long after it was booted.
func cycled(since, after time.Duration) *scope {
	s := booted(since)
	record := powerCycle{Machine: s.claim(), Time: later.Add(after), Boot: maxBoots}
	s.host.Annotations = map[string]string{bootstrapv1.PowerCycleAnnotation: record.String()}
	return s
}

const timeout = assisted.DefaultHostRegistrationTimeout

func TestRegistrationTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		scope   *scope
		change  func(*scope)
		cycle   bool
		reason  string
		message string
		attempt int32
		retryAt time.Duration
		lookIn  time.Duration
	}{
		"it has time": {scope: booted(timeout - time.Second), reason: bootstrapv1.WaitingForAgentReason,
			message: "(attempt 1 of 2): unless it does, the host is power-cycled at 2026-01-01T00:31:00Z", attempt: 1, retryAt: timeout,
			lookIn: time.Second},
		"its time is over": {scope: booted(timeout), cycle: true, reason: bootstrapv1.WaitingForAgentReason,
			message: "the host is power-cycled", attempt: 1, retryAt: timeout},
		"its time is over, and baremetal-operator is paused": {scope: booted(timeout), change: func(s *scope) {
			s.host.Annotations = map[string]string{bmov1alpha1.PausedAnnotation: ""}
		}, reason: bootstrapv1.WaitingForAgentReason,
			message: "power-cycled when its annotation baremetalhost.metal3.io/paused is removed", attempt: 1},
		"its time is over, and it is detached": {scope: booted(timeout), change: func(s *scope) {
			s.host.Annotations = map[string]string{bmov1alpha1.DetachedAnnotation: ""}
		}, reason: bootstrapv1.WaitingForAgentReason,
			message: "power-cycled when its annotation baremetalhost.metal3.io/detached is removed", attempt: 1},
		"it has an InfraEnv of its own, and is provisioned anew": {scope: booted(timeout), change: func(s *scope) {
			s.config.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv
			s.host.Status.Provisioning.State = bmov1alpha1.StateDeprovisioning
		}, reason: bootstrapv1.WaitingForAgentReason, message: "no Agent has registered through the Machine's own InfraEnv"},
		"it was power-cycled": {scope: cycled(2*timeout-time.Second, timeout), reason: bootstrapv1.WaitingForAgentReason,
			message: "also after a power cycle at 2026-01-01T00:31:00Z: unless it does, it is given up at 2026-01-01T01:01:00Z", attempt: 2,
			lookIn: time.Second},
		"it was power-cycled, and its time is over again": {scope: cycled(2*timeout, timeout), reason: bootstrapv1.HostNeverRegisteredReason,
			message: "was booted at 2026-01-01T00:01:00Z and power-cycled at 2026-01-01T00:31:00Z, and its Agent has not registered by " +
				"2026-01-01T01:01:00Z (attempt 2 of 2): look at the host's console", attempt: 2},
		"it was power-cycled because its Agent was lost": {scope: cycled(2*timeout, timeout), change: func(s *scope) {
			s.host.Annotations[bootstrapv1.PowerCycleAnnotation] = powerCycle{Machine: s.claim(), Time: later.Add(timeout), Boot: 1}.String()
		}, cycle: true, reason: bootstrapv1.WaitingForAgentReason, message: "the host is power-cycled", attempt: 1, retryAt: 2 * timeout},
		"it was power-cycled for another Machine": {scope: cycled(timeout, -time.Hour), change: func(s *scope) {
			s.host.Annotations[bootstrapv1.PowerCycleAnnotation] = powerCycle{Machine: "m-1/x", Time: later.Time, Boot: 2}.String()
		}, cycle: true, reason: bootstrapv1.WaitingForAgentReason, message: "the host is power-cycled", attempt: 1, retryAt: timeout},
		"it was provisioned anew since": {scope: cycled(timeout, -time.Hour), cycle: true, reason: bootstrapv1.WaitingForAgentReason,
			message: "the host is power-cycled", attempt: 1, retryAt: timeout},
		"somebody broke the record": {scope: booted(timeout), change: func(s *scope) {
			s.host.Annotations = map[string]string{bootstrapv1.PowerCycleAnnotation: "{"}
		}, reason: bootstrapv1.HostNeverRegisteredReason, message: "look at the host's console", attempt: 2},
		"the control plane gives it less": {scope: booted(time.Minute), change: func(s *scope) {
			s.install.Annotations = map[string]string{assisted.HostRegistrationTimeoutAnnotation: "60"}
		}, cycle: true, reason: bootstrapv1.WaitingForAgentReason, message: "the host is power-cycled", attempt: 1, retryAt: time.Minute},
		"the control plane gives it any time": {scope: booted(24 * time.Hour), change: func(s *scope) {
			s.install.Annotations = map[string]string{assisted.HostRegistrationTimeoutAnnotation: "0"}
		}, reason: bootstrapv1.WaitingForAgentReason, message: "look at the host's console"},
		"there is no cluster": {scope: booted(24 * time.Hour), change: func(s *scope) { s.install = nil },
			reason: bootstrapv1.WaitingForAgentReason, message: "look at the host's console"},
		"nobody knows since when it runs": {scope: booted(24 * time.Hour), change: func(s *scope) {
			s.host.Status.OperationHistory = bmov1alpha1.OperationHistory{}
		}, reason: bootstrapv1.WaitingForAgentReason, message: "look at the host's console"},
		"it is to be off": {scope: booted(24 * time.Hour), change: func(s *scope) { s.host.Spec.Online = false },
			reason: bootstrapv1.WaitingForAgentReason, message: "look at the host's console"},
		"it reports an error": {scope: booted(24 * time.Hour), change: func(s *scope) {
			s.host.Status.ErrorType, s.host.Status.ErrorMessage = bmov1alpha1.PowerManagementError, "no power"
		}, reason: bootstrapv1.WaitingForAgentReason, message: "look at the host's console"},
		"it is still provisioned": {scope: booted(24 * time.Hour), change: func(s *scope) {
			s.host.Status.Provisioning.State = bmov1alpha1.StateProvisioning
		}, reason: bootstrapv1.WaitingForHostReason, message: "waiting for it to be booted"},
		"somebody else has registered": {scope: booted(24 * time.Hour), change: func(s *scope) {
			s.agents = discovered().agents
			s.agents[0].Annotations, s.agents[0].Status.Inventory.Interfaces[0].MACAddress = nil, "ff:00"
		}, reason: bootstrapv1.AgentNotRecognizedReason, message: "no Agent has its identity"},
		"other hardware has registered": {scope: booted(timeout), change: func(s *scope) {
			s.agents = discovered().agents
			s.agents[0].Annotations, s.agents[0].Status.Inventory.Interfaces[0].MACAddress = nil, "ff:00"
			s.agents[0].Status.Inventory.SystemVendor.SerialNumber = "s-9"
			s.host.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{}
			s.host.Status.HardwareDetails.SystemVendor.SerialNumber = "s-0"
		}, cycle: true, reason: bootstrapv1.WaitingForAgentReason, message: "the host is power-cycled", attempt: 1, retryAt: timeout},
		"it is installed": {scope: booted(24 * time.Hour), change: lostInstalled, reason: bootstrapv1.WaitingForAgentReason,
			message: "look at the host's console"},
		"the config is being deleted": {scope: booted(24 * time.Hour), change: func(s *scope) { s.config.DeletionTimestamp = &later },
			reason: bootstrapv1.WaitingForAgentReason, message: "look at the host's console"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := test.scope
			if test.change != nil {
				test.change(s)
			}
			d := decide(s)
			g.Expect(d.wait.cycle).To(Equal(test.cycle))
			g.Expect(d.recognized.Reason).To(Equal(test.reason))
			g.Expect(d.recognized.Message).To(ContainSubstring(test.message))
			g.Expect(d.lookAgain).To(Equal(test.lookIn))
			setStatus(s.config, result{decision: &d})
			wanted := bootstrapv1.HostRegistrationStatus{}
			if test.attempt > 0 {
				wanted.Attempt = &test.attempt
			}
			if test.retryAt > 0 {
				wanted.NextRetryTime = metav1.NewTime(later.Add(test.retryAt))
			}
			g.Expect(s.config.Status.HostRegistration).To(Equal(wanted))
		})
	}
	t.Run("it registers after all", func(t *testing.T) {
		g := NewWithT(t)
		s := cycled(3*timeout, timeout)
		s.agents = discovered().agents
		s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
		s.config.Status.HostRegistration.Attempt = new(int32(2))
		d := decide(s)
		setStatus(s.config, result{decision: &d})
		g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.HostRecognizedReason))
		g.Expect(d.forget).To(BeTrue(), "the next time it is lost, it is waited for anew")
		g.Expect(s.config.Status.HostRegistration).To(BeZero())
		delete(s.host.Annotations, bootstrapv1.PowerCycleAnnotation)
		g.Expect(decide(s).forget).To(BeFalse())
	})
	t.Run("it registers before it was power-cycled", func(t *testing.T) {
		g := NewWithT(t)
		s := cycled(timeout, timeout)
		s.host.Annotations[rebootAnnotation] = rebootMode
		s.agents = discovered().agents
		s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{bmov1alpha1.AddToScheme, assisted.AddToScheme} {
			g.Expect(add(scheme)).To(Succeed())
		}
		refuse := true
		var writes []string
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.host, &s.agents[0]).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				writes = append(writes, o.GetName())
				if refuse {
					return errors.New("the API is busy")
				}
				return c.Patch(ctx, o, patch, opts...)
			},
		}).Build()
		for _, o := range []client.Object{s.host, &s.agents[0]} {
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
		}
		r := &Reconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(100), controller: capicontrollerutil.NewFakeController()}
		d := decide(s)
		g.Expect(d.bind).NotTo(BeNil())
		g.Expect(r.apply(t.Context(), s, d).err()).To(HaveOccurred())
		g.Expect(writes).To(Equal([]string{s.host.Name}), "it is not bound while a power cycle may come")
		refuse = false
		g.Expect(r.apply(t.Context(), s, d).err()).To(Succeed())
		g.Expect(writes[1:]).To(Equal([]string{s.host.Name, "a-0"}))
		host := &bmov1alpha1.BareMetalHost{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), host)).To(Succeed())
		g.Expect(host.Annotations).To(BeEmpty())
	})
	t.Run("its Machine is deleted", func(t *testing.T) {
		g := NewWithT(t)
		s := cycled(3*timeout, timeout)
		s.machine.DeletionTimestamp = &later
		g.Expect(decideDeparture(s).forget).To(BeFalse(), "not before the hook goes")
		s.machine.Status.Conditions = []metav1.Condition{
			{Type: clusterv1.MachineDeletingCondition, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason},
		}
		g.Expect(decideDeparture(s).forget).To(BeTrue())
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{bmov1alpha1.AddToScheme, clusterv1.AddToScheme, assisted.AddToScheme} {
			g.Expect(add(scheme)).To(Succeed())
		}
		s.machine.DeletionTimestamp = nil // The fake API server takes no object that is being deleted and has no finalizer.
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.host, s.machine).Build()
		r := &Reconciler{Client: c, APIReader: c, controller: capicontrollerutil.NewFakeController()}
		g.Expect(r.applyDeparture(t.Context(), s, departure{unhook: true, forget: true}).err()).To(Succeed())
		host := &bmov1alpha1.BareMetalHost{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), host)).To(Succeed())
		g.Expect(host.Annotations).To(BeEmpty())
	})
}

// TestPowerCycleOnce: a host that never registers is power-cycled once, at whatever write the manager ends, and whatever the cache shows.
func TestPowerCycleOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, stale := range []bool{false, true} {
			t.Run(fmt.Sprintf("the write takes effect %t, the cache is behind %t", after, stale), func(t *testing.T) {
				neverRegisters(t, after, stale)
			})
		}
	}
}

// ending makes the first write of a manager the one at which it ends, before or after it takes effect, and counts those that do.
func ending(after bool, writes *int) interceptor.Funcs {
	ended := false
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			ends := !ended
			ended = true
			if ends && !after {
				return errors.New("the manager has ended")
			}
			if err := c.Patch(ctx, o, patch, opts...); err != nil {
				return err
			}
			*writes++
			if ends {
				return errors.New("the manager has ended")
			}
			return nil
		},
	}
}

// neverRegisters runs the passes for a host that does not register, until long after the end of its time.
func neverRegisters(t *testing.T, after, stale bool) {
	t.Helper()
	g := NewWithT(t)
	s := booted(timeout)
	asked := 0
	c := interceptor.NewClient(fakeClient(t, s), ending(after, &asked))
	recorder := events.NewFakeRecorder(100)
	r := &Reconciler{Client: c, APIReader: c, Recorder: recorder, controller: capicontrollerutil.NewFakeController()}
	read := func() { g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), s.host)).To(Succeed()) }
	read()
	for pass := range 100 {
		if behind := stale && pass < 2; !behind {
			read()
			if _, reboots := s.host.Annotations[rebootAnnotation]; reboots {
				delete(s.host.Annotations, rebootAnnotation) // As baremetal-operator does when it has power-cycled the host.
				g.Expect(c.Update(t.Context(), s.host)).To(Succeed())
			}
		}
		d := decide(s)
		o := r.apply(t.Context(), s, d)
		setStatus(s.config, result{decision: &d, outcomes: o})
		s.now = s.now.Add(time.Minute)
	}
	g.Expect(asked).To(Equal(1))
	g.Expect(conditions.GetReason(s.config, bootstrapv1.HostRecognizedCondition)).To(Equal(bootstrapv1.HostNeverRegisteredReason))
	g.Expect(*s.config.Status.HostRegistration.Attempt).To(Equal(int32(maxBoots)))
	g.Expect(len(recorder.Events)).To(BeNumerically("<=", 2), "the power cycle and its end are told once each")
}
