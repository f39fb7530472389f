// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// TestRetries: each try is twice as long after the one before, for each Machine alone, until one succeeds.
func TestRetries(t *testing.T) {
	g := NewWithT(t)
	r, now := &retries{}, born.Time
	failed, conflict := kube.OutcomeOf(errors.New("no answer")), kube.OutcomeOf(apierrors.NewConflict(schema.GroupResource{}, "a-0", nil))
	g.Expect(r.left("a", now)).To(BeZero())
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 64, 120, 120} {
		want := time.Duration(seconds) * time.Second
		r.note("a", now, failed)
		g.Expect(r.left("a", now)).To(Equal(want))
		g.Expect(r.left("b", now)).To(BeZero())
		g.Expect(r.left("a", now.Add(-time.Hour))).To(Equal(want), "the clock was put back")
		now = now.Add(want)
		g.Expect(r.left("a", now)).To(BeZero())
	}
	r.note("b", now, failed)
	r.note("a", now, conflict)
	g.Expect(r.left("a", now)).To(BeZero(), "the change that was in the way brings the next pass")
	r.note("a", now, failed)
	g.Expect(r.left("a", now)).To(Equal(firstRetry))
	r.note("a", now, kube.OutcomeOf(nil))
	g.Expect(r.left("a", now)).To(BeZero())
	g.Expect(r.next).To(HaveLen(1))
	r.note("a", now.Add(time.Hour), kube.OutcomeOf(nil))
	g.Expect(r.next).To(BeEmpty(), "nobody has asked for that Machine any more")
}

// TestABindThatIsHeld: nothing of a bind is done before its time, and the conditions go on to say what came of the last one.
func TestABindThatIsHeld(t *testing.T) {
	for name, claimed := range map[string]bool{"claimed before": true, "claimed with the bind": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			if !claimed {
				unclaimed(s)
			}
			tries := 0
			c := patching(t, s, func() error { tries++; return kube.Refusal("a policy says no") })
			r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10), controller: capicontrollerutil.NewFakeController()}
			pass := func() decision {
				s.held = r.binds.left(s.machine.UID, s.now)
				d := decide(s)
				setStatus(s.config, result{decision: &d, outcomes: r.apply(t.Context(), s, d)})
				return d
			}
			pass()
			g.Expect(tries).To(Equal(1))
			before := s.config.DeepCopy()
			g.Expect(conditions.GetReason(before, bootstrapv1.AgentInstalledCondition)).To(Equal(bootstrapv1.AgentNeedsAttentionReason))
			g.Expect(conditions.IsTrue(before, bootstrapv1.HostRecognizedCondition)).To(Equal(claimed))

			d := pass()
			g.Expect(tries).To(Equal(1))
			g.Expect(d.lookAgain).To(Equal(firstRetry))
			g.Expect(s.config).To(Equal(before))

			s.now = s.now.Add(firstRetry)
			pass()
			g.Expect(tries).To(Equal(2))
			g.Expect(s.config).To(Equal(before))
		})
	}
}
