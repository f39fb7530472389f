// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// expectedReasons are those of the conditions of a host that is on its way.
var expectedReasons = sets.New(
	bootstrapv1.WaitingForHostReason, bootstrapv1.ClaimingAgentReason, bootstrapv1.WaitingForRecognitionReason,
	bootstrapv1.WaitingForCRDsReason, bootstrapv1.WaitingForClusterReason, bootstrapv1.AgentDiscoveringReason, bootstrapv1.AgentBindingReason,
	bootstrapv1.AgentReadyReason, bootstrapv1.AgentInstallingReason,
)

// HostProblem is the first condition of a host that is not as expected; nil when all are.
func HostProblem(config *bootstrapv1.OpenshiftAssistedConfig) *metav1.Condition {
	if config == nil {
		return nil
	}
	for _, conditionType := range []string{bootstrapv1.HostHealthyCondition, bootstrapv1.HostRecognizedCondition,
		bootstrapv1.AgentInstalledCondition} {
		c := conditions.Get(config, conditionType)
		if c != nil && c.Status == metav1.ConditionFalse && !expectedReasons.Has(c.Reason) {
			return c
		}
	}
	return nil
}

// unfreed says for Machines, the first by name, why their hosts are not freed: it is empty unless a BareMetalHost reports an error. Metal3
// and Cluster API wait for it without a word (METAL3 M3-56, M3-61).
func unfreed(v *view.View, machines []*clusterv1.Machine) []string {
	var lines []string
	for _, m := range slices.SortedFunc(slices.Values(machines), func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) }) {
		if problem := HostError(v.Machines.Configs[m.Name]); problem != "" && !m.DeletionTimestamp.IsZero() {
			lines = append(lines, fmt.Sprintf("Machine %s: %s", m.Name, problem))
		}
	}
	return lines
}

// HostError is the error that the BareMetalHost of a config reports; empty when there is none.
func HostError(config *bootstrapv1.OpenshiftAssistedConfig) string {
	if config == nil || conditions.GetReason(config, bootstrapv1.HostHealthyCondition) != bootstrapv1.HostErrorReason {
		return ""
	}
	return conditions.GetMessage(config, bootstrapv1.HostHealthyCondition)
}

// SlowFrom is when a host that was booted and has not registered begins to be slow, which is when half of the time that it has is over; the
// zero time for a host that does something else.
func SlowFrom(v *view.View, config *bootstrapv1.OpenshiftAssistedConfig) time.Time {
	problem := HostProblem(config)
	if problem == nil || problem.Reason != bootstrapv1.WaitingForAgentReason {
		return time.Time{}
	}
	timeout := assisted.DefaultHostRegistrationTimeout
	if v.Install.AgentClusterInstall != nil {
		timeout = assisted.HostRegistrationTimeout(v.Install.AgentClusterInstall)
	}
	last := config.Status.HostRegistration.NextRetryTime
	if attempt := ptr.Deref(config.Status.HostRegistration.Attempt, 1); attempt > 1 || last.IsZero() {
		return time.Time{} // It was power-cycled, or never is.
	}
	return last.Add(-timeout / 2)
}

// SlowHostsFrom is when the next host begins to be slow; zero when none does.
func SlowHostsFrom(v *view.View) time.Time {
	var next time.Time
	if v.Life.Installed() {
		return next
	}
	for _, config := range v.Machines.Configs {
		if from := SlowFrom(v, config); from.After(v.Now) && (next.IsZero() || from.Before(next)) {
			next = from
		}
	}
	return next
}
