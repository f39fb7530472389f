// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

// TestMemory: a text is worked on once while it is remembered, the one asked for longest ago is forgotten, and so is every error.
func TestMemory(t *testing.T) {
	g := NewWithT(t)
	worked := 0
	problem := errors.New("no text")
	length := func(text []byte) (int, error) {
		worked++
		if len(text) == 0 {
			return 0, problem
		}
		return len(text), nil
	}
	lengths := newMemory[int](2)
	for _, step := range []struct {
		text   string
		worked int
	}{{"a", 1}, {"a", 1}, {"bb", 2}, {"a", 2}, {"ccc", 3}, {"a", 3}, {"bb", 4}} {
		g.Expect(lengths.of([]byte(step.text), length)).To(Equal(len(step.text)))
		g.Expect(worked).To(Equal(step.worked), step.text)
	}
	for range 2 {
		_, err := lengths.of(nil, length)
		g.Expect(err).To(MatchError(problem))
	}
	g.Expect(worked).To(Equal(6), "what failed is tried again")
}
