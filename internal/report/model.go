// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Report is what the page shows.
type Report struct {
	Namespace, Name string
	// Release is the OpenShift release that runs or is to run, Kubernetes the version of Kubernetes; empty when nobody tells.
	Release, Kubernetes string
	// Install is the phase of the installation with its progress.
	Install string
	// Start is when the template was applied, Taken when the objects were read.
	Start, Taken time.Time
	// Available says that the Cluster is, AvailableAfter when it became so for the last time; zero when that is not known.
	Available      bool
	AvailableAfter time.Duration
	// Machines, Done, Waiting, Faulty and Gone count Machines. A faulty one may be ready or wait.
	Machines, Done, Waiting, Faulty, Gone int
	// Compact is for many Machines: lower rows, those to look at first.
	Compact bool
	Waves   []Wave
	Stats   []Stats
	// Open are the faults of now, Past those of before and the warnings.
	Open, Past []FaultGroup
	// Objects are those of the whole cluster, Details those of each Machine.
	Objects []Object
	Details []Detail
	Writes  []Writer
	Unread  []string
}

// Object is an object with its conditions.
type Object struct {
	Kind, Name string
	// Note is what else matters of it in a line.
	Note       string
	Conditions []Condition
}

// Condition is one row of an Object.
type Condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
	Verdict                       Verdict
	URL                           string
}

// Detail has the objects of a Machine.
type Detail struct {
	// ID is the anchor of the Machine on the page: names of others are no part of it.
	ID      string
	Line    *Line
	Objects []Object
}

// mostRows is how many Machines have full rows.
const mostRows = 24

// New makes a Report. It is pure.
func New(in *Input) *Report {
	links := linker{docs: cmp.Or(strings.TrimRight(in.Docs, "/"), DefaultDocs)}
	subjects := subjectsOf(in)
	faults := findFaults(in, subjects)
	r := &Report{
		Namespace: in.Cluster.Namespace, Name: in.Cluster.Name, Start: in.Cluster.CreationTimestamp.Time, Taken: in.Now,
		Compact: len(subjects) > mostRows, Writes: in.Writes, Machines: len(subjects), Objects: clusterObjects(in, links),
	}
	for _, why := range in.Unread {
		r.Unread = append(r.Unread, redact(why))
	}
	r.versions(in)
	events := eventsByObject(in.Events)
	lines := make([]*Line, 0, len(subjects))
	for _, s := range subjects {
		passed := s.milestones(events)
		installationStarted(in, events, passed)
		line := lineOf(s, passed, faults)
		lines = append(lines, line)
		r.count(line)
		r.Details = append(r.Details, Detail{Line: line, Objects: s.objects(links)})
	}
	if len(lines) > 0 && lines[0].Created.Before(r.Start) {
		r.Start = lines[0].Created
	}
	r.Waves = wavesOf(lines, r.Start, in.Now, r.Compact)
	r.Stats = statsOf(r.Waves)
	slices.SortStableFunc(r.Details, func(a, b Detail) int {
		return cmp.Or(rank(a.Line.Role)-rank(b.Line.Role), strings.Compare(a.Line.Name, b.Line.Name))
	})
	for i := range r.Details {
		r.Details[i].ID = fmt.Sprintf("machine-%d", i+1)
		r.Details[i].Line.ID = r.Details[i].ID
	}
	open := func(fault *Fault) bool { return fault.Open }
	r.Past = groupFaults(slices.DeleteFunc(slices.Clone(faults), open), links)
	r.Open = groupFaults(slices.DeleteFunc(faults, func(fault *Fault) bool { return !fault.Open }), links)
	return r
}

func (r *Report) versions(in *Input) {
	available := conditions.Get(in.Cluster, clusterv1.ClusterAvailableCondition)
	if available != nil && available.Status == metav1.ConditionTrue {
		r.Available, r.AvailableAfter = true, max(0, available.LastTransitionTime.Sub(in.Cluster.CreationTimestamp.Time))
	}
	if in.ControlPlane == nil {
		return
	}
	status := in.ControlPlane.Status
	r.Release = cmp.Or(status.DistributionVersion, status.Release.Version, in.ControlPlane.Spec.DistributionVersion)
	r.Kubernetes = cmp.Or(status.Release.KubernetesVersion, in.ControlPlane.Spec.Version)
	r.Install = status.Install.Phase
}

func (r *Report) count(line *Line) {
	switch {
	case line.Gone:
		r.Gone++
	case line.Done:
		r.Done++
	default:
		r.Waiting++
	}
	if len(line.Faults) > 0 {
		r.Faulty++
	}
}

func eventsByObject(events []corev1.Event) map[types.UID][]corev1.Event {
	by := map[types.UID][]corev1.Event{}
	for i := range events {
		by[events[i].InvolvedObject.UID] = append(by[events[i].InvolvedObject.UID], events[i])
	}
	return by
}

func lineOf(s *subject, passed map[Phase]time.Time, faults []*Fault) *Line {
	line := &Line{Name: s.name(), Role: s.role(), Created: s.created(), Gone: s.machine == nil}
	line.Segments = segmentsOf(line.Created, passed)
	if s.machine != nil {
		line.Done = conditions.IsTrue(s.machine, clusterv1.ReadyCondition)
	}
	if !line.Done && !line.Gone {
		line.Next = next(line.Segments)
	}
	for _, fault := range faults {
		if fault.Machine != line.Name {
			continue
		}
		if fault.Open {
			line.Faults = append(line.Faults, fault)
		}
		if fault.Dated {
			line.Marks = append(line.Marks, fault)
		}
	}
	return line
}

// clusterObjects are the objects of the whole cluster.
func clusterObjects(in *Input, links linker) []Object {
	objects := []Object{{
		Kind: kindCluster, Name: in.Cluster.Name, Note: in.Cluster.Status.Phase,
		Conditions: conditionsOf(kindCluster, in.Cluster.Status.Conditions, links),
	}}
	if in.ControlPlane != nil {
		objects = append(objects, Object{
			Kind: kindControlPlane, Name: in.ControlPlane.Name, Note: in.ControlPlane.Status.Install.Phase,
			Conditions: conditionsOf(kindControlPlane, in.ControlPlane.Status.Conditions, links),
		})
	}
	if in.Install != nil {
		install := Object{Kind: kindInstall, Name: in.Install.Name, Note: in.Install.Status.DebugInfo.State}
		for _, c := range in.Install.Status.Conditions {
			install.Conditions = append(install.Conditions, conditionOf(kindInstall, metav1.Condition{
				Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
				LastTransitionTime: c.LastTransitionTime,
			}, links))
		}
		objects = append(objects, install)
	}
	return objects
}

// objects are those of a Machine.
func (s *subject) objects(links linker) []Object {
	var objects []Object
	if s.machine != nil {
		objects = append(objects, Object{
			Kind: kindMachine, Name: s.machine.Name, Note: strings.Join(machineNotes(s.machine), ", "),
			Conditions: conditionsOf(kindMachine, s.machine.Status.Conditions, links),
		})
	}
	if s.config != nil {
		objects = append(objects, Object{
			Kind: kindConfig, Name: s.config.Name, Conditions: conditionsOf(kindConfig, s.config.Status.Conditions, links),
		})
	}
	if s.host != nil {
		note := hostNote(string(s.host.Status.Provisioning.State), metal3.Error(s.host))
		objects = append(objects, Object{Kind: kindHost, Name: s.host.Name, Note: redact(note)})
	}
	if s.agent != nil {
		objects = append(objects, agentObject(s.agent, links))
	}
	return objects
}

func machineNotes(machine *clusterv1.Machine) []string {
	notes := []string{machine.Status.Phase}
	if machine.Status.NodeRef.IsDefined() {
		notes = append(notes, "Node "+machine.Status.NodeRef.Name)
	}
	return notes
}

func hostNote(state, failure string) string {
	if failure == "" {
		return state
	}
	return state + ": " + failure
}

func agentObject(agent *assisted.Agent, links linker) Object {
	object := Object{Kind: kindAgent, Name: agent.Name, Note: redact(agent.Status.DebugInfo.State)}
	if agent.Status.Progress.CurrentStage != "" {
		object.Note += ", " + redact(agent.Status.Progress.CurrentStage)
	}
	for _, c := range agent.Status.Conditions {
		object.Conditions = append(object.Conditions, conditionOf(kindAgent, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastTransitionTime: c.LastTransitionTime,
		}, links))
	}
	return object
}

func conditionsOf(kind string, all []metav1.Condition, links linker) []Condition {
	out := make([]Condition, 0, len(all))
	for _, c := range all {
		out = append(out, conditionOf(kind, c, links))
	}
	return out
}

func conditionOf(kind string, c metav1.Condition, links linker) Condition {
	return Condition{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: redact(c.Message), Since: c.LastTransitionTime.Time,
		Verdict: verdictOf(kind, c), URL: links.condition(kind, c.Type),
	}
}
