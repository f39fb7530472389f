// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// maxBoots is how often a host is booted that does not register: by its provisioning, and by one power cycle.
const maxBoots = 2

// powerCycle is what the annotation PowerCycleAnnotation records.
type powerCycle struct {
	// Machine is the claim of the Machine that the host was power-cycled for.
	Machine string `json:"machine"`
	// Time is when baremetal-operator was asked for it.
	Time time.Time `json:"time"`
	// Boot is the number of the boot that it began, counted from the last time at which the host had registered.
	Boot int `json:"boot"`
	// Lost is the Agent whose loss it was asked for; empty when the host has not registered in time.
	Lost string `json:"lost,omitempty"`
}

// String is the annotation's value.
func (p powerCycle) String() string {
	value, err := json.Marshal(p)
	if err != nil {
		return "" // Strings, times and numbers can always be encoded.
	}
	return string(value)
}

// registrationWait is how far a host is that was booted and has not registered.
type registrationWait struct {
	// boot is the number of its boot, counted from 1; since is when that began, and until how long the host is waited for.
	boot         int
	since, until time.Time
	// cycle: the host is power-cycled now. over: it was before, and is given up.
	cycle, over bool
	// held is the annotation by which baremetal-operator leaves the host alone; it is not power-cycled then. Empty when there is none.
	held string
}

// left is how long the host is still waited for; 0 when the wait is over, or was none.
func (w registrationWait) left(now time.Time) time.Duration {
	return max(0, w.until.Sub(now))
}

// status is what the config says of the wait.
func (w registrationWait) status() bootstrapv1.HostRegistrationStatus {
	if w.boot == 0 {
		return bootstrapv1.HostRegistrationStatus{}
	}
	status := bootstrapv1.HostRegistrationStatus{Attempt: new(int32(w.boot))}
	if w.boot < maxBoots && w.held == "" {
		status.NextRetryTime = metav1.NewTime(w.until)
	}
	return status
}

// registrationWaitOf decides how much longer a host is waited for of which no Agent is recognised. Only one is given a time of which no
// Agent may be: one that reports other hardware than its BareMetalHost does so after a power cycle as well. A host that reports an error,
// or is to be off, is not waited for: HostHealthy says so, or the user knows. Nor is one that may run the cluster's system.
func registrationWaitOf(s *scope, verdict identity.Verdict) registrationWait {
	if verdict.Reason != bootstrapv1.WaitingForAgentReason || s.host == nil || s.install == nil || !s.config.DeletionTimestamp.IsZero() ||
		!metal3.Provisioned(s.host) || !s.host.Spec.Online || metal3.Error(s.host) != "" || wasInstalled(s) || wasInstalling(s) {
		return registrationWait{}
	}
	timeout := assisted.HostRegistrationTimeout(s.install)
	w := lastBoot(s)
	if timeout == 0 || w.since.IsZero() {
		return registrationWait{}
	}
	w.until = w.since.Add(timeout)
	if late := !w.until.After(s.now); late {
		w.over, w.held = w.boot >= maxBoots, metal3.HeldBy(s.host)
		w.cycle = !w.over && w.held == ""
	}
	return w
}

// wasCycled reports whether the Machine's host has the record of a power cycle.
func wasCycled(s *scope) bool {
	return s.host != nil && s.host.Annotations[bootstrapv1.PowerCycleAnnotation] != ""
}

// lastBoot is when the host was last booted for the Machine, as far as the providers know: by its provisioning, or by a power cycle
// since. A record that somebody broke counts as the last boot there may be: no host is power-cycled on a guess.
func lastBoot(s *scope) registrationWait {
	ended := metal3.ProvisioningEnded(s.host)
	first := registrationWait{boot: 1, since: ended.Time}
	value, recorded := s.host.Annotations[bootstrapv1.PowerCycleAnnotation]
	if !recorded || ended.IsZero() {
		return first
	}
	record, err := powerCycleOf(value)
	switch {
	case err != nil:
		return registrationWait{boot: maxBoots, since: ended.Time}
	case !record.concerns(s):
		return first
	}
	return registrationWait{boot: record.Boot, since: record.Time}
}

// cycledFor reports whether the host was power-cycled because of the loss of this Agent, and the config has not forgotten the Agent yet.
func cycledFor(s *scope, agent string) bool {
	record, err := powerCycleOf(s.host.Annotations[bootstrapv1.PowerCycleAnnotation])
	return err == nil && record.concerns(s) && record.Lost == agent
}

func powerCycleOf(value string) (record powerCycle, err error) {
	err = json.Unmarshal([]byte(value), &record)
	return record, err
}

// concerns reports whether a power cycle was that of the host as it was provisioned for the Machine.
func (p powerCycle) concerns(s *scope) bool {
	return p.Machine == s.claim() && !p.Time.Before(metal3.ProvisioningEnded(s.host).Time)
}

// unregisteredFact says why no Agent is recognised, and what becomes of a host that does not register.
func unregisteredFact(s *scope, w registrationWait, verdict identity.Verdict) fact.Fact {
	moment := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case w.boot == 0:
		return unrecognizedFact(verdict)
	case w.over:
		return fact.Waiting(
			bootstrapv1.HostNeverRegisteredReason,
			"BareMetalHost %s was booted at %s and power-cycled at %s, and its Agent has not registered by %s (attempt %d of %d): look at the "+
				"host's console, its boot medium and its network; deleting Machine %s boots a host anew",
			s.host.Name, moment(metal3.ProvisioningEnded(s.host).Time), moment(w.since), moment(w.until), w.boot, maxBoots, s.machine.Name,
		)
	case w.held != "":
		return fact.Waiting(
			bootstrapv1.WaitingForAgentReason, "BareMetalHost %s was booted and its Agent has not registered by %s (attempt %d of %d): the host is "+
				"power-cycled when its annotation %s is removed, which keeps baremetal-operator from it", s.host.Name, moment(w.until), w.boot,
			maxBoots, w.held,
		)
	case w.cycle:
		return fact.Waiting(
			bootstrapv1.WaitingForAgentReason, "BareMetalHost %s was booted and its Agent has not registered by %s (attempt %d of %d): the host "+
				"is power-cycled", s.host.Name, moment(w.until), w.boot, maxBoots,
		)
	case w.boot < maxBoots:
		return fact.Waiting(
			bootstrapv1.WaitingForAgentReason, "BareMetalHost %s was booted and its Agent has not registered (attempt %d of %d): unless it does, "+
				"the host is power-cycled at %s", s.host.Name, w.boot, maxBoots, moment(w.until),
		)
	}
	return fact.Waiting(
		bootstrapv1.WaitingForAgentReason, "BareMetalHost %s was booted and its Agent has not registered (attempt %d of %d), also after a power "+
			"cycle at %s: unless it does, it is given up at %s; look at the host's console", s.host.Name, w.boot, maxBoots, moment(w.since),
		moment(w.until),
	)
}
