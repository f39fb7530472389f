// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Fault is something that is or was wrong.
type Fault struct {
	// Kind and Name are the object that says it, Machine the one that it is about; empty when it is about the cluster.
	Kind, Name, Machine string
	// What is the condition, the check or, for an Event, its subject.
	What, Reason, Message string
	Event                 bool
	// From is when it began, To when it was seen last; Open that it is so now.
	From, To time.Time
	Open     bool
	// Dated says that From is of this fault. A condition tells since when it is False, for whatever reason.
	Dated bool
	// Count is how many times it happened.
	Count int
}

// FaultGroup are faults of one kind.
type FaultGroup struct {
	What, Reason string
	Open, Event  bool
	Links        []Link
	Faults       []*Fault
}

// checkReason is what stands for the reason of a failing check.
const checkReason = "fails"

// faultFinder collects faults.
type faultFinder struct {
	in     *Input
	faults []*Fault
	// machines has the name of the Machine that an object belongs to, by its UID; empty for objects of the whole cluster.
	machines map[types.UID]string
}

func findFaults(in *Input, subjects []*subject) []*Fault {
	f := &faultFinder{in: in, machines: ownersOf(in, subjects)}
	f.fromConditions(subjects)
	f.fromChecks(subjects)
	f.fromHistory()
	f.fromEvents(subjects)
	slices.SortStableFunc(f.faults, func(a, b *Fault) int {
		return cmp.Or(a.From.Compare(b.From), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
			strings.Compare(a.What, b.What), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return f.faults
}

func ownersOf(in *Input, subjects []*subject) map[types.UID]string {
	owners := map[types.UID]string{in.Cluster.UID: ""}
	if in.ControlPlane != nil {
		owners[in.ControlPlane.UID] = ""
	}
	if in.Install != nil {
		owners[in.Install.UID] = ""
	}
	for _, s := range subjects {
		if s.machine != nil {
			owners[s.machine.UID] = s.name()
		} else {
			owners[s.past.UID] = s.name()
		}
		if s.config != nil {
			owners[s.config.UID] = s.name()
		}
		if s.infra != nil {
			owners[s.infra.GetUID()] = s.name()
		}
		if s.host != nil {
			owners[s.host.UID] = s.name()
		}
		if s.agent != nil {
			owners[s.agent.UID] = s.name()
		}
	}
	for i := range in.Agents {
		if _, known := owners[in.Agents[i].UID]; !known && unclaimedHere(in, &in.Agents[i]) {
			owners[in.Agents[i].UID] = ""
		}
	}
	return owners
}

// unclaimedHere reports whether an Agent has registered from an image of the cluster and is nobody's host.
func unclaimedHere(in *Input, agent *assisted.Agent) bool {
	if _, _, claimed := agent.ClaimedFor(); claimed {
		return false
	}
	return slices.ContainsFunc(in.InfraEnvs, func(env assisted.InfraEnv) bool {
		return env.Name == agent.Labels[assisted.InfraEnvLabel] && env.Labels[bootstrapv1.InfraEnvClusterLabel] == in.Cluster.Name
	})
}

func (f *faultFinder) add(fault *Fault) {
	fault.Message = redact(fault.Message)
	fault.Count = max(fault.Count, 1)
	f.faults = append(f.faults, fault)
}

func (f *faultFinder) fromConditions(subjects []*subject) {
	if f.in.ControlPlane != nil {
		f.conditions(kindControlPlane, f.in.ControlPlane.Name, "", f.in.ControlPlane.Status.Conditions)
	}
	for _, s := range subjects {
		if s.machine != nil {
			f.conditions(kindMachine, s.machine.Name, s.name(), s.machine.Status.Conditions)
		}
		if s.config != nil {
			f.conditions(kindConfig, s.config.Name, s.name(), s.config.Status.Conditions)
		}
	}
}

func (f *faultFinder) conditions(kind, name, machine string, conditions []metav1.Condition) {
	for _, c := range conditions {
		if isFault(kind, c) {
			f.add(&Fault{
				Kind: kind, Name: name, Machine: machine, What: c.Type, Reason: c.Reason, Message: c.Message,
				From: c.LastTransitionTime.Time, To: f.in.Now, Open: true,
			})
		}
	}
}

// fromChecks has the checks of assisted-service that fail. Of what is installed they are those of before, and say nothing any more.
func (f *faultFinder) fromChecks(subjects []*subject) {
	if f.in.Install != nil && !f.installed() {
		f.checks(kindInstall, f.in.Install.Name, "", f.in.Install.Status.ValidationsInfo)
	}
	for _, s := range subjects {
		if s.agent != nil && !s.agent.Installed() {
			f.checks(kindAgent, s.agent.Name, s.name(), s.agent.Status.ValidationsInfo)
		}
	}
	for i := range f.in.Agents {
		agent := &f.in.Agents[i]
		why := agent.Annotations[bootstrapv1.RecognitionAnnotation]
		if why != "" && unclaimedHere(f.in, agent) {
			f.add(&Fault{
				Kind: kindAgent, Name: agent.Name, What: bootstrapv1.HostRecognizedCondition, Reason: bootstrapv1.AgentNotRecognizedReason,
				Message: why, From: agent.CreationTimestamp.Time, To: f.in.Now, Open: true, Dated: true,
			})
		}
	}
}

func (f *faultFinder) installed() bool {
	for _, c := range f.in.Install.Status.Conditions {
		if string(c.Type) == "Completed" && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func (f *faultFinder) checks(kind, name, machine string, validations common.ValidationsStatus) {
	for _, check := range assisted.FailingChecks(validations) {
		id, message, _ := strings.Cut(check, ": ")
		f.add(&Fault{
			Kind: kind, Name: name, Machine: machine, What: "check " + id, Reason: checkReason, Message: message, To: f.in.Now, Open: true,
		})
	}
}

func (f *faultFinder) fromHistory() {
	if f.in.History == nil {
		return
	}
	owners := map[string]string{}
	for i := range f.in.Machines {
		owners[kindConfig+f.in.Machines[i].Spec.Bootstrap.ConfigRef.Name] = f.in.Machines[i].Name
		owners[kindMachine+f.in.Machines[i].Name] = f.in.Machines[i].Name
	}
	for _, past := range f.in.History.Faults {
		if open := f.open(past); open != nil {
			open.From, open.Dated, open.Count = past.From, true, past.Count
			continue
		}
		f.add(&Fault{
			Kind: past.Kind, Name: past.Name, Machine: owners[past.Kind+past.Name], What: past.Condition, Reason: past.Reason,
			Message: past.Message, From: past.From, To: past.To, Count: past.Count, Dated: true,
		})
	}
}

// open returns the fault of now that a watcher saw too, or nil.
func (f *faultFinder) open(past PastFault) *Fault {
	for _, fault := range f.faults {
		if fault.Kind == past.Kind && fault.Name == past.Name && fault.What == past.Condition && fault.Reason == past.Reason {
			return fault
		}
	}
	return nil
}

// fromEvents has the warnings about the cluster's objects, also those that name a Machine that is gone.
func (f *faultFinder) fromEvents(subjects []*subject) {
	names := map[string]bool{}
	for _, s := range subjects {
		names[s.name()] = true
	}
	for i := range f.in.Events {
		event := &f.in.Events[i]
		about := event.InvolvedObject
		machine, ours := f.machines[about.UID]
		if !ours && names[about.Name] && slices.Contains([]string{kindMachine, kindConfig}, about.Kind) {
			machine, ours = about.Name, true
		}
		if !ours || event.Type != corev1.EventTypeWarning {
			continue
		}
		count := max(int(event.Count), 1)
		if event.Series != nil {
			count = max(count, int(event.Series.Count))
		}
		f.add(&Fault{
			Kind: about.Kind, Name: about.Name, Machine: machine, What: "event", Reason: event.Reason, Message: event.Message, Event: true,
			From: firstSeen(event), To: lastSeen(event), Count: count, Dated: true,
		})
	}
}

// groupFaults puts faults of one kind together: what is wrong now first, then what many suffer from.
func groupFaults(faults []*Fault, links linker) []FaultGroup {
	type key struct {
		what, reason, kind string
		open               bool
	}
	groups := map[key]*FaultGroup{}
	var order []key
	for _, fault := range faults {
		k := key{fault.What, fault.Reason, fault.Kind, fault.Open}
		if groups[k] == nil {
			groups[k] = &FaultGroup{What: fault.What, Reason: fault.Reason, Open: fault.Open, Event: fault.Event, Links: links.of(fault)}
			order = append(order, k)
		}
		groups[k].Faults = append(groups[k].Faults, fault)
	}
	out := make([]FaultGroup, 0, len(order))
	for _, k := range order {
		out = append(out, *groups[k])
	}
	slices.SortStableFunc(out, func(a, b FaultGroup) int { return cmp.Compare(len(b.Faults), len(a.Faults)) })
	return out
}
