// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// subject is a Machine with the objects that belong to it; those that do not exist are nil.
type subject struct {
	machine *clusterv1.Machine
	config  *bootstrapv1.OpenshiftAssistedConfig
	infra   *unstructured.Unstructured
	host    *bmov1alpha1.BareMetalHost
	agent   *assisted.Agent
	// past is nil when nobody watched the Machine. Of a Machine that is gone, it is all there is.
	past *PastMachine
}

func (s *subject) name() string {
	if s.machine != nil {
		return s.machine.Name
	}
	return s.past.Name
}

func (s *subject) created() time.Time {
	if s.machine != nil && (s.past == nil || s.past.Created.IsZero()) {
		return s.machine.CreationTimestamp.Time
	}
	return s.past.Created
}

// role is the group in which the page shows the Machine.
func (s *subject) role() string {
	if s.machine == nil {
		return roleGone
	}
	if _, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		return roleControlPlane
	}
	if deployment := s.machine.Labels[clusterv1.MachineDeploymentNameLabel]; deployment != "" {
		return roleWorkers + " of " + deployment
	}
	return roleWorkers
}

const (
	roleControlPlane = "control plane"
	roleWorkers      = "workers"
	roleGone         = "gone"
)

// subjectsOf joins the objects, the oldest Machine first.
func subjectsOf(in *Input) []*subject {
	configs, infras := map[string]*bootstrapv1.OpenshiftAssistedConfig{}, map[string]*unstructured.Unstructured{}
	for i := range in.Configs {
		configs[in.Configs[i].Name] = &in.Configs[i]
	}
	for i := range in.Infrastructure {
		infras[in.Infrastructure[i].GetName()] = &in.Infrastructure[i]
	}
	agents, past := map[string]*assisted.Agent{}, map[types.UID]*PastMachine{}
	for i := range in.Agents {
		if _, uid, claimed := in.Agents[i].ClaimedFor(); claimed {
			agents[uid] = &in.Agents[i]
		}
	}
	if in.History != nil {
		for i := range in.History.Machines {
			past[in.History.Machines[i].UID] = &in.History.Machines[i]
		}
	}
	subjects := make([]*subject, 0, len(in.Machines)+len(past))
	for i := range in.Machines {
		machine := &in.Machines[i]
		s := &subject{
			machine: machine, config: configs[machine.Spec.Bootstrap.ConfigRef.Name], infra: infras[machine.Spec.InfrastructureRef.Name],
			agent: agents[string(machine.UID)], past: past[machine.UID],
		}
		if s.infra != nil {
			s.host = metal3.HostOf(s.infra, in.Hosts)
		}
		subjects = append(subjects, s)
		delete(past, machine.UID)
	}
	for _, gone := range past {
		subjects = append(subjects, &subject{past: gone})
	}
	slices.SortFunc(subjects, func(a, b *subject) int {
		return cmp.Or(a.created().Compare(b.created()), strings.Compare(a.name(), b.name()))
	})
	return subjects
}

// associations are the conditions of a Metal3Machine that say that it has a BareMetalHost, in its newer and older releases.
var associations = []string{"AssociateBareMetalHost", "AssociateBMH"}

// milestones returns when the Machine passed which milestone. What a watcher saw is exact. Of what the objects tell, the earliest counts: a
// condition that has been False since shows its last transition only.
func (s *subject) milestones(events map[types.UID][]corev1.Event) map[Phase]time.Time {
	passed := map[Phase]time.Time{}
	if s.machine != nil {
		known := earliest{from: s.machine.CreationTimestamp.Time, passed: passed}
		s.fromMachine(known)
		s.fromConfig(known, events)
		s.fromHost(known)
		s.fromAgent(known)
	}
	if s.past != nil {
		for phase, at := range s.past.Passed {
			passed[phase] = at
		}
	}
	return passed
}

// earliest keeps the earliest time of each milestone that is not before the Machine.
type earliest struct {
	from   time.Time
	passed map[Phase]time.Time
}

func (e earliest) note(phase Phase, at time.Time) {
	if at.IsZero() || at.Before(e.from) {
		return
	}
	if known, ok := e.passed[phase]; !ok || at.Before(known) {
		e.passed[phase] = at
	}
}

func (e earliest) noteTrue(phase Phase, from conditions.Getter, condition string) {
	if c := conditions.Get(from, condition); c != nil && c.Status == metav1.ConditionTrue {
		e.note(phase, c.LastTransitionTime.Time)
	}
}

func (s *subject) fromMachine(known earliest) {
	known.noteTrue(Media, s.machine, clusterv1.MachineBootstrapConfigReadyCondition)
	known.noteTrue(Booted, s.machine, clusterv1.MachineInfrastructureReadyCondition)
	known.noteTrue(Ready, s.machine, clusterv1.MachineReadyCondition)
	if s.machine.Status.NodeRef.IsDefined() {
		known.noteTrue(Node, s.machine, clusterv1.MachineNodeReadyCondition)
		known.noteTrue(Node, s.machine, clusterv1.MachineNodeHealthyCondition)
	}
}

// configEvents are the events on a config that come with a milestone.
var configEvents = map[string]Phase{
	bootstrapv1.EventBootMediaPublished: Media, bootstrapv1.EventAgentClaimed: Recognised, bootstrapv1.EventAgentBound: Bound,
}

func (s *subject) fromConfig(known earliest, events map[types.UID][]corev1.Event) {
	if s.config == nil {
		return
	}
	known.noteTrue(Media, s.config, bootstrapv1.DataSecretAvailableCondition)
	known.noteTrue(Recognised, s.config, bootstrapv1.HostRecognizedCondition)
	known.noteTrue(Installed, s.config, bootstrapv1.AgentInstalledCondition)
	for i := range events[s.config.UID] {
		event := &events[s.config.UID][i]
		if phase, ok := configEvents[event.Reason]; ok {
			known.note(phase, firstSeen(event))
		}
	}
}

func (s *subject) fromHost(known earliest) {
	if s.infra != nil {
		// A Metal3Machine whose conditions cannot be read tells nothing.
		all, _ := conditions.UnstructuredGetAll(s.infra)
		for _, c := range all {
			if slices.Contains(associations, c.Type) && c.Status == metav1.ConditionTrue {
				known.note(HostChosen, c.LastTransitionTime.Time)
			}
		}
	}
	if s.host == nil {
		return
	}
	known.note(HostChosen, metal3.ProvisioningBegan(s.host).Time)
	known.note(Booted, metal3.ProvisioningEnded(s.host).Time)
}

func (s *subject) fromAgent(known earliest) {
	if s.agent == nil {
		return
	}
	for condition, phase := range map[string]Phase{assisted.ConditionBound: Bound, assisted.ConditionInstalled: Installed} {
		if c := s.agent.Condition(condition); c.Is(corev1.ConditionTrue) {
			known.note(phase, c.LastTransitionTime.Time)
		}
	}
}

// installationStarted adds when the first installation began to the Machines that were bound before. assisted-service does not tell it of
// each host, and not of hosts that join afterwards: the time between bound and installed is one then.
func installationStarted(in *Input, events map[types.UID][]corev1.Event, passed map[Phase]time.Time) {
	if in.ControlPlane == nil || passed[Bound].IsZero() || !passed[Installing].IsZero() {
		return
	}
	for i := range events[in.ControlPlane.UID] {
		event := &events[in.ControlPlane.UID][i]
		at := firstSeen(event)
		before := passed[Installed].IsZero() || at.Before(passed[Installed])
		if event.Reason == controlplanev1.EventInstallationStarted && at.After(passed[Bound]) && before {
			passed[Installing] = at
		}
	}
}

// firstSeen is when an event happened for the first time.
func firstSeen(event *corev1.Event) time.Time {
	for _, at := range []time.Time{event.FirstTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// lastSeen is when an event happened for the last time.
func lastSeen(event *corev1.Event) time.Time {
	last := firstSeen(event)
	if at := event.LastTimestamp.Time; at.After(last) {
		last = at
	}
	if event.Series != nil && event.Series.LastObservedTime.After(last) {
		last = event.Series.LastObservedTime.Time
	}
	return last
}
