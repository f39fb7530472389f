// SPDX-License-Identifier: Apache-2.0

package fair

import "slices"

// line has keys that wait: those of a namespace in their order, and the namespaces by turns.
type line[K comparable] struct {
	// turns are the namespaces that have keys.
	turns []string
	keys  map[string][]K
}

func newLine[K comparable]() *line[K] { return &line[K]{keys: map[string][]K{}} }

func (l *line[K]) push(namespace string, key K) {
	if len(l.keys[namespace]) == 0 {
		l.turns = append(l.turns, namespace)
	}
	l.keys[namespace] = append(l.keys[namespace], key)
}

// pop takes the first key of the first namespace that may have one. The next turn of that namespace is after all others.
func (l *line[K]) pop(may func(namespace string) bool) (key K, ok bool) {
	at := slices.IndexFunc(l.turns, may)
	if at < 0 {
		return key, false
	}
	namespace := l.turns[at]
	l.turns = slices.Delete(l.turns, at, at+1)
	keys := l.keys[namespace]
	delete(l.keys, namespace)
	if len(keys) > 1 {
		l.keys[namespace] = keys[1:]
		l.turns = append(l.turns, namespace)
	}
	return keys[0], true
}
