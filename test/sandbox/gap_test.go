// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestGap: a single question in vain counts, and so does the time between several. Time without a question does not.
func TestGap(t *testing.T) {
	g, measured, now := NewWithT(t), Gap{}, time.Now()
	measured.Note(now, true)
	g.Expect(measured.Longest).To(BeZero())
	measured.Note(now.Add(time.Hour), true)
	g.Expect(measured.Longest).To(BeZero())
	measured.Note(now.Add(time.Hour), false)
	g.Expect(measured.Longest).To(Equal(time.Millisecond))
	measured.Note(now.Add(time.Hour+time.Second), false)
	measured.Note(now.Add(time.Hour+time.Minute), true)
	measured.Note(now.Add(2*time.Hour), false)
	g.Expect(measured.Longest).To(Equal(time.Second + time.Millisecond))
}
