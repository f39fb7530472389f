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
	tooLong := MatchError(ContainSubstring("the answer is too large: it has more than"))
	g.Expect(workload.Cached{}.Ask(t.Context(), cluster, data, []string{publicName})).Error().To(tooLong)
	g.Expect(workload.Cached{}.RequestToken(t.Context(), cluster, data, time.Hour)).Error().To(tooLong)
}

// TestEndlessRefusal: of what a server says instead of a stream, no more is read than has a bound. client-go does not tell which error it
// had when it read that.
func TestEndlessRefusal(t *testing.T) {
	g := NewWithT(t)
	up, _ := serving(t, overSPDY, func(string) said { return said{instead: refusesOnAndOn} }, etcdPod("m-0"))
	_, err := up.Members(t.Context(), cluster, "m-1")
	g.Expect(err).To(MatchError(ContainSubstring("unable to read error from server response")))
}

// writeOn ends when the reader has gone, or has read far more than any reader should.
func writeOn(w io.Writer) {
	values := bytes.Repeat([]byte("{},"), 1<<18)
	for range 256 {
		if _, err := w.Write(values); err != nil {
			return
		}
	}
}
