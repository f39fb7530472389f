// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// What stands for a value in a tree of objects, beside what YAML knows.
type (
	// text is an expression of the template, on the line of its key.
	text string
	// block is a value of the chart that is written below its key.
	block string
	// optional is the same, and without it the key is not there.
	optional string
	// further is a list in the chart's values that is added to the list that it is in.
	further string
	// guarded is only there on a condition.
	guarded struct {
		condition string
		value     any
	}
	// choice is one of two values.
	choice struct {
		condition      string
		yes, otherwise any
	}
)

// variant is a tree that is like the default one, but for what a condition of the chart's values changes.
type variant struct {
	condition string
	tree      any
}

func (v variant) not() string { return "not (" + v.condition + ")" }

// merge returns base with everything that the variants change on their conditions. The conditions are independent of each other, so two
// variants must not change the same value.
func merge(base any, variants []variant) (any, error) {
	changing := slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return reflect.DeepEqual(base, v.tree) })
	if len(changing) == 0 {
		return base, nil
	}
	if trees, ok := allOf[map[string]any](base, changing); ok {
		return mergeMaps(trees[0], trees[1:], changing)
	}
	if trees, ok := allOf[[]any](base, changing); ok && sameLength(trees) {
		return mergeItems(trees[0], trees[1:], changing)
	}
	if len(changing) > 1 {
		return nil, fmt.Errorf("%q and %q change the same value", changing[0].condition, changing[1].condition)
	}
	if list, ok := base.([]any); ok {
		if longer, ok := changing[0].tree.([]any); ok && len(longer) > len(list) {
			return insert(list, longer, changing[0].condition)
		}
	}
	return choice{changing[0].condition, changing[0].tree, base}, nil
}

// allOf returns the base and the trees of the variants, if all of them are of one type.
func allOf[T any](base any, variants []variant) ([]T, bool) {
	trees := make([]T, 0, len(variants)+1)
	for _, tree := range append([]variant{{tree: base}}, variants...) {
		typed, ok := tree.tree.(T)
		if !ok {
			return nil, false
		}
		trees = append(trees, typed)
	}
	return trees, true
}

func sameLength(lists [][]any) bool {
	return !slices.ContainsFunc(lists, func(list []any) bool { return len(list) != len(lists[0]) })
}

func mergeMaps(base map[string]any, trees []map[string]any, variants []variant) (any, error) {
	keys := map[string]bool{}
	for _, tree := range append(slices.Clone(trees), base) {
		for key := range tree {
			keys[key] = true
		}
	}
	merged := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var having, lacking []variant
		for i, tree := range trees {
			if value, ok := tree[key]; ok {
				having = append(having, variant{variants[i].condition, value})
			} else {
				lacking = append(lacking, variants[i])
			}
		}
		value, err := mergeKey(base, key, having, lacking)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		merged[key] = value
	}
	return merged, nil
}

func mergeKey(base map[string]any, key string, having, lacking []variant) (any, error) {
	value, ok := base[key]
	switch {
	case !ok && len(having) == 1:
		return guarded{having[0].condition, having[0].tree}, nil
	case !ok || len(lacking) > 1:
		return nil, fmt.Errorf("%d variants add it, and %d take it away", len(having), len(lacking))
	}
	merged, err := merge(value, having)
	if err != nil || len(lacking) == 0 {
		return merged, err
	}
	return guarded{lacking[0].not(), merged}, nil
}

func mergeItems(base []any, trees [][]any, variants []variant) (any, error) {
	merged := make([]any, len(base))
	for i := range base {
		items := make([]variant, len(trees))
		for v, tree := range trees {
			items[v] = variant{variants[v].condition, tree[i]}
		}
		var err error
		if merged[i], err = merge(base[i], items); err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return merged, nil
}

// insert returns a list with the items that the longer one has somewhere in one piece.
func insert(list, longer []any, condition string) (any, error) {
	at := 0
	for at < len(list) && reflect.DeepEqual(list[at], longer[at]) {
		at++
	}
	more := len(longer) - len(list)
	if !reflect.DeepEqual(list[at:], longer[at+more:]) {
		return choice{condition, longer, list}, nil
	}
	merged := slices.Clone(list[:at])
	for _, item := range longer[at : at+more] {
		merged = append(merged, guarded{condition, item})
	}
	return append(merged, list[at:]...), nil
}
