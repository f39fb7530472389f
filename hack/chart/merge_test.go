// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

// object, list and when make trees that can be read.
type (
	object = map[string]any
	list   = []any
)

func when(condition string, tree any) variant { return variant{condition, tree} }

func TestMerge(t *testing.T) {
	for name, tt := range map[string]struct {
		base     any
		variants []variant
		want     any
		problem  string
	}{
		"no variant":       {base: object{"a": "1"}, want: object{"a": "1"}},
		"variants like it": {base: object{"a": "1"}, variants: []variant{when("x", object{"a": "1"})}, want: object{"a": "1"}},
		"another value": {
			base: object{"a": "1"}, variants: []variant{when("x", object{"a": "2"})}, want: object{"a": choice{"x", "2", "1"}},
		},
		"a value more": {
			base: object{"a": "1"}, variants: []variant{when("x", object{"a": "1", "b": "2"})},
			want: object{"a": "1", "b": guarded{"x", "2"}},
		},
		"a value less": {base: object{"a": "1"}, variants: []variant{when("x", object{})}, want: object{"a": guarded{"not (x)", "1"}}},
		"a value of its type": {
			base: object{"a": "1"}, variants: []variant{when("x", object{"a": list{"1"}})}, want: object{"a": choice{"x", list{"1"}, "1"}},
		},
		"deep inside": {
			base: object{"a": list{object{"b": "1"}}}, variants: []variant{when("x", object{"a": list{object{"b": "2"}}})},
			want: object{"a": list{object{"b": choice{"x", "2", "1"}}}},
		},
		"an item more at the end": {base: list{"1"}, variants: []variant{when("x", list{"1", "2"})}, want: list{"1", guarded{"x", "2"}}},
		"an item more between": {
			base: list{"1", "3"}, variants: []variant{when("x", list{"1", "2", "3"})}, want: list{"1", guarded{"x", "2"}, "3"},
		},
		"an item less": {
			base: list{"1", "2"}, variants: []variant{when("x", list{"1"})}, want: choice{"x", list{"1"}, list{"1", "2"}},
		},
		"items more, one other": {
			base: list{"1", "2"}, variants: []variant{when("x", list{"0", "1", "3"})}, want: choice{"x", list{"0", "1", "3"}, list{"1", "2"}},
		},
		"two variants, each its own value": {
			base:     object{"a": "1", "b": "1"},
			variants: []variant{when("x", object{"a": "2", "b": "1"}), when("y", object{"a": "1", "b": "2"})},
			want:     object{"a": choice{"x", "2", "1"}, "b": choice{"y", "2", "1"}},
		},
		"one variant removes what another changes": {
			base: object{"a": "1"}, variants: []variant{when("x", object{"a": "2"}), when("y", object{})},
			want: object{"a": guarded{"not (y)", choice{"x", "2", "1"}}},
		},
		"two variants of one value": {
			base: object{"a": "1"}, variants: []variant{when("x", object{"a": "2"}), when("y", object{"a": "3"})},
			problem: `a: "x" and "y" change the same value`,
		},
		"two variants of one item": {
			base: list{"1"}, variants: []variant{when("x", list{"2"}), when("y", list{"3"})}, problem: `0: "x" and "y" change the same value`,
		},
		"two variants add a value": {
			base: object{}, variants: []variant{when("x", object{"a": "1"}), when("y", object{"a": "1"})},
			problem: "a: 2 variants add it, and 0 take it away",
		},
		"two variants remove a value": {
			base: object{"a": "1"}, variants: []variant{when("x", object{}), when("y", object{})},
			problem: "a: 0 variants add it, and 2 take it away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			merged, err := merge(tt.base, tt.variants)
			if tt.problem != "" {
				g.Expect(err).To(MatchError(tt.problem))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(merged).To(Equal(tt.want))
		})
	}
}
