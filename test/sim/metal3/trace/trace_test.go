// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFlattenFoldsWhatRecordingsFold(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Machine",
		"metadata": map[string]any{
			"resourceVersion": "7",
			"labels":          map[string]any{"cluster.x-k8s.io/cluster-name": "c"},
			"ownerReferences": []any{map[string]any{"apiVersion": "g/v1", "kind": "K", "name": "n", "controller": true, "uid": "u"}},
		},
		"status": map[string]any{
			"empty":      map[string]any{},
			"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "R", "severity": "Info", "message": "m: x"}},
		},
	}}
	want := map[string]any{
		"metadata.labels.cluster.x-k8s.io/cluster-name": "c",
		"metadata.ownerReferences":                      []any{"g/v1/K/n controller"},
		"status.empty":                                  map[string]any{},
		"status.conditions[Ready]":                      "False/R (Info): m: x",
	}
	if diff := cmp.Diff(want, Flatten(object)); diff != "" {
		t.Error(diff)
	}
}

func TestUnfoldConditionIsTheOppositeOfFolding(t *testing.T) {
	for _, folded := range []string{"True", "True/Ready", "False/R: a message: with a colon", "False/R (Info)", "False/R (Error): why (not)"} {
		kind, again := foldCondition(UnfoldCondition("Ready", folded))
		if kind != "Ready" || again != folded {
			t.Errorf("%q became %s %q", folded, kind, again)
		}
	}
}

func TestCompareKeepsWhatIsCommon(t *testing.T) {
	got := Compare([]string{"a", "b", "c", "d"}, []string{"a", "c", "x", "d"})
	want := []Difference{{Recorded: true, Line: "b"}, {Line: "x"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLinesAreSortedFields(t *testing.T) {
	transition := &Transition{Object: "Machine/m0", Set: map[string]any{"b": 1.0, "a": "x"}, Unset: []string{"c"}}
	if diff := cmp.Diff([]string{"- c", `a = "x"`, "b = 1"}, transition.Lines()); diff != "" {
		t.Error(diff)
	}
	if transition.Kind() != "Machine" || transition.Name() != "m0" {
		t.Errorf("kind %q, name %q", transition.Kind(), transition.Name())
	}
}
