// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// TestAHostThatIsNotFreedIsTold plays a Machine that is deleted and whose host has a BMC that does not answer.
func TestAHostThatIsNotFreedIsTold(t *testing.T) {
	const remedy = ". Machine m-0 is not gone before its host is freed, which is tried again and again: repair the BMC, or its credentials; " +
		"if the host is lost, make sure that it has no power and delete BareMetalHost host-0"
	failing := func(kind bmov1alpha1.ErrorType, message string) func(*scope) {
		return func(s *scope) {
			s.host.Status.ErrorType, s.host.Status.ErrorMessage, s.host.Status.ErrorCount = kind, message, 1
		}
	}
	freeing := func(s *scope) { s.host.Status.Provisioning.State = bmov1alpha1.StateDeprovisioning }
	unhooked := func(s *scope) { s.agents, s.machine.Annotations = nil, nil }
	waited := func(s *scope) {
		fact.Waiting(bootstrapv1.WaitingForAgentDeletionReason, "x").Set(s.config, bootstrapv1.HostRecognizedCondition)
	}
	for name, test := range map[string]struct {
		changes           []func(*scope)
		healthy, released fact.Fact
	}{
		"it is well": {healthy: fact.Done(bootstrapv1.HostHealthyReason)},
		"its BMC fails before it is freed": {changes: []func(*scope){failing(bmov1alpha1.PowerManagementError, "no answer")},
			healthy: fact.Waiting(bootstrapv1.HostErrorReason,
				"BareMetalHost host-0 in state provisioned reports power management error: no answer")},
		"it is being freed": {changes: []func(*scope){freeing, unhooked, waited}, healthy: fact.Done(bootstrapv1.HostHealthyReason)},
		"it cannot be freed": {
			changes: []func(*scope){freeing, unhooked, failing(bmov1alpha1.ProvisioningError, "Failed to tear down: no power")},
			healthy: fact.Waiting(bootstrapv1.HostErrorReason,
				"BareMetalHost host-0 in state deprovisioning reports provisioning error: Failed to tear down: no power"+remedy),
		},
		"it cannot be registered, and its Agent was waited for": {
			changes: []func(*scope){freeing, unhooked, waited, failing(bmov1alpha1.RegistrationError, "see https://u:p@bmc/x?token=secret")},
			healthy: fact.Waiting(bootstrapv1.HostErrorReason,
				"BareMetalHost host-0 in state deprovisioning reports registration error: see https://bmc/[redacted]"+remedy),
			released: fact.Waiting(bootstrapv1.WaitingForHostReleaseReason,
				"the Agent of the host is gone, and BareMetalHost host-0 is not freed yet"),
		},
		"it is tried again, which is no news": {changes: []func(*scope){freeing, unhooked, waited, failing("", "")}},
		"its BareMetalHost is gone":           {changes: []func(*scope){func(s *scope) { s.host = nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			s.machine.DeletionTimestamp = ptr.To(later)
			s.machine.Status.Conditions = []metav1.Condition{
				{Type: clusterv1.MachineDeletingCondition, Reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason},
			}
			s.host.Status.Provisioning.State = bmov1alpha1.StateProvisioned
			for _, change := range test.changes {
				change(s)
			}
			d := decideDeparture(s)
			g.Expect(d.healthy).To(Equal(test.healthy))
			g.Expect(d.recognized).To(Equal(test.released))
			g.Expect(d.unhook || len(d.agents) > 0).To(BeFalse())
			setStatus(s.config, result{departure: &d})
		})
	}
}

// TestAnAgentGoesWithoutTheHook plays a Machine whose pre-terminate hook somebody has removed while its Agent was there: nothing else lets
// the Agent go, and the config of the Machine waits for that.
func TestAnAgentGoesWithoutTheHook(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		hooked bool
		agents int
	}{
		"core has not said anything yet":        {},
		"its Node is being drained":             {reason: clusterv1.MachineDeletingDrainingNodeReason},
		"volumes of its Node are detached":      {reason: clusterv1.MachineDeletingWaitingForVolumeDetachReason},
		"another hook is there":                 {reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason, agents: 1},
		"its host is being freed":               {reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, agents: 1},
		"its host is free":                      {reason: clusterv1.MachineDeletingWaitingForBootstrapDeletionReason, agents: 1},
		"its hook has come too late to matter":  {reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, hooked: true},
		"its Node is deleted, and all was done": {reason: clusterv1.MachineDeletingDeletingNodeReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			s.machine.DeletionTimestamp = ptr.To(later)
			if !test.hooked {
				s.machine.Annotations = nil
			}
			if test.reason != "" {
				s.machine.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Reason: test.reason}}
			}
			d := decideDeparture(s)
			g.Expect(d.agents).To(HaveLen(test.agents))
			g.Expect(d.unhook).To(BeFalse())
			if test.agents > 0 {
				g.Expect(d.recognized).To(Equal(fact.Waiting(bootstrapv1.WaitingForAgentDeletionReason,
					"Machine m-0 has no pre-terminate hook, and assisted-service has not let Agent a-0 go yet")))
			}
		})
	}
}
