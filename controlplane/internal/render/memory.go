// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"

	"k8s.io/utils/lru"
)

// memory remembers what was made of texts, by the digest of each. Nobody may change what it returns.
type memory[T any] struct{ made *lru.Cache }

// newMemory remembers so many texts, and forgets the one that was asked for longest ago for a new one.
func newMemory[T any](size int) memory[T] { return memory[T]{lru.New(size)} }

// of returns what is made of a text; an error is not remembered.
func (m memory[T]) of(text []byte, from func([]byte) (T, error)) (T, error) {
	digest := sha256.Sum256(text)
	if known, ok := m.made.Get(digest); ok {
		if made, ok := known.(T); ok {
			return made, nil
		}
	}
	made, err := from(text)
	if err == nil {
		m.made.Add(digest, made)
	}
	return made, err
}
