// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"maps"
	"slices"
)

// Tally counts the API writes of both managers for one namespace, by manager, verb and resource, as "bootstrap patch agents". Refused ones
// and events count too.
type Tally map[string]int

// Tally counts the writes up to now.
func (w *World) Tally(namespace string) (Tally, error) {
	tally := Tally{}
	for manager, user := range map[string]string{"bootstrap": w.Bootstrap.User, "controlplane": w.ControlPlane.User} {
		writes, err := WritesFor(w.Management.AuditLog(), user, namespace)
		if err != nil {
			return nil, err
		}
		for _, write := range writes {
			tally[manager+" "+write.Name()] = write.Count
		}
	}
	return tally, nil
}

// Since is what was written after an earlier tally.
func (t Tally) Since(earlier Tally) Tally {
	since := Tally{}
	for name, count := range t {
		if count > earlier[name] {
			since[name] = count - earlier[name]
		}
	}
	return since
}

// Sum is the number of all writes, and of those that are no events.
func (t Tally) Sum() (all, withoutEvents int) {
	for name, count := range t {
		all += count
		if !isEvent(name) {
			withoutEvents += count
		}
	}
	return all, withoutEvents
}

func isEvent(name string) bool {
	return slices.Contains([]string{"bootstrap create events", "controlplane create events"}, name)
}

// Allowance is how many writes of one kind are planned: Cluster of them once, and Machine of them for each Machine.
type Allowance struct{ Cluster, Machine int }

// Budget is what is planned to be written, by the names of Tally.
type Budget map[string]Allowance

// Exceeded says which writes of a tally exceed the budget for a number of Machines; a kind that is not in it is not planned at all.
func (b Budget) Exceeded(tally Tally, machines int) []string {
	var exceeded []string
	for _, name := range slices.Sorted(maps.Keys(tally)) {
		if limit := b[name].Cluster + b[name].Machine*machines; tally[name] > limit {
			exceeded = append(exceeded, fmt.Sprintf("%s: %d, planned are %d", name, tally[name], limit))
		}
	}
	return exceeded
}
