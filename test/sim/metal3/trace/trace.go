// SPDX-License-Identifier: Apache-2.0

// Package trace reads recordings of Kubernetes objects, records the same from a running API server, and compares the two.
//
// A recording is a YAML file with a list of transitions. One transition is a change of one object (ADDED, DELETED, or
// modified when op is empty), an action of the driver, or a Kubernetes Event. Fields are flattened to dotted paths, maps of labels
// and annotations end in the whole key, conditions are keyed by type and folded to "status/reason (severity): message", and
// owner references to "apiVersion/Kind/name controller blockOwnerDeletion".
package trace

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"
)

// Operations of a transition; a modification has none.
const (
	Added   = "ADDED"
	Deleted = "DELETED"
)

// Recording is a file.
type Recording struct {
	Scenario    string       `json:"scenario"`
	Description string       `json:"description"`
	Namespace   string       `json:"namespace"`
	Transitions []Transition `json:"transitions"`
}

// Transition is an entry of a recording.
type Transition struct {
	// T is the time in seconds since the start of the recording.
	T float64 `json:"t"`
	// Object is "Kind/name"; empty for an action or an Event.
	Object string `json:"obj"`
	Op     string `json:"op"`
	// By holds the field managers whose entries changed, comma-separated, "/status" appended for the status subresource. It is
	// empty when a manager writes again within the same second.
	By string `json:"by"`
	// State is the whole object when it was added, Set and Unset what a modification changed.
	State map[string]any `json:"state"`
	Set   map[string]any `json:"set"`
	Unset []string       `json:"unset"`
	// Action is what the driver of the recording did, at the end of doing it.
	Action string `json:"ACTION"`
	Event  string `json:"event"`
}

// Read reads a recording.
func Read(path string) (*Recording, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	recording := &Recording{}
	if err := yaml.Unmarshal(data, recording); err != nil {
		return nil, fmt.Errorf("read recording %s: %w", path, err)
	}
	return recording, nil
}

// Kind returns the kind of the transition's object.
func (t *Transition) Kind() string {
	kind, _, _ := strings.Cut(t.Object, "/")
	return kind
}

// Name returns the name of the transition's object.
func (t *Transition) Name() string {
	_, name, _ := strings.Cut(t.Object, "/")
	return name
}

// Lines returns what a transition shows, one line for a field, sorted: "path = value", "- path" for a removed field. A deletion is
// the line "DELETED". The order of fields within one write means nothing.
func (t *Transition) Lines() []string {
	if t.Op == Deleted {
		return []string{Deleted}
	}
	fields := t.Set
	if t.Op == Added {
		fields = t.State
	}
	lines := make([]string, 0, len(fields)+len(t.Unset))
	for path, value := range fields {
		lines = append(lines, path+" = "+text(value))
	}
	for _, path := range t.Unset {
		lines = append(lines, "- "+path)
	}
	sort.Strings(lines)
	return lines
}

// text prints a value so that equal values of either source are equal text.
func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
