// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// TestSinceWhenAHostWaits: a host waits for its Agent from its boot, and from the loss of its Agent, so that no alert takes the time that
// it was recognised for a wait.
func TestSinceWhenAHostWaits(t *testing.T) {
	at := func(hour int) metav1.Time { return metav1.Time{Time: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)} }
	for name, test := range map[string]struct{ condition, boot, want metav1.Time }{
		"booted after its config was made": {condition: at(9), boot: at(10), want: at(10)},
		"its Agent is lost":                {condition: at(12), boot: at(10), want: at(12)},
		"nobody knows when it was booted":  {condition: at(9), want: at(9)},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.OpenshiftAssistedConfig{}
			c.Status.Conditions = []metav1.Condition{{
				Type: bootstrapv1.HostRecognizedCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.AgentLostReason,
				LastTransitionTime: test.condition,
			}}
			NewWithT(t).Expect(since(c, State(c), func() metav1.Time { return test.boot })).To(Equal(test.want))
			NewWithT(t).Expect(State(c)).To(Equal(metrics.StateWaitingForAgent))
		})
	}
}
