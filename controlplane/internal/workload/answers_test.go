// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// TestEndlessAnswers: of an answer no more is read than has a bound.
func TestEndlessAnswers(t *testing.T) {
	g, s := NewWithT(t), newAPIServer(t)
	s.endless = true
	data := s.kubeconfig(t, goodToken)
	tooLong := MatchError(ContainSubstring("the answer is too long: no more than 67108864 bytes are read"))
	g.Expect(workload.Cached{}.Ask(t.Context(), cluster, data, []string{publicName})).Error().To(tooLong)
	g.Expect(workload.Cached{}.RequestToken(t.Context(), cluster, data, time.Hour)).Error().To(tooLong)
}

// writeOn ends when the reader has gone, or has read far more than any reader should.
func writeOn(w io.Writer) {
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range 256 {
		if _, err := w.Write(spaces); err != nil {
			return
		}
	}
}
