// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

func at(hour int) metav1.Time {
	return metav1.Time{Time: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)}
}

// recognition is a config whose host was recognised, or lost, at a time.
func recognition(status metav1.ConditionStatus, reason string, since metav1.Time) *bootstrapv1.OpenshiftAssistedConfig {
	c := &bootstrapv1.OpenshiftAssistedConfig{}
	c.Status.Conditions = []metav1.Condition{{
		Type: bootstrapv1.HostRecognizedCondition, Status: status, Reason: reason, LastTransitionTime: since,
	}}
	return c
}

// TestSinceWhenAHostWaits: a host waits for its Agent from its boot, and from the loss of its Agent, so that no alert takes the time that
// it was recognised for a wait.
func TestSinceWhenAHostWaits(t *testing.T) {
	for name, test := range map[string]struct{ condition, boot, want metav1.Time }{
		"booted after its config was made": {condition: at(9), boot: at(10), want: at(10)},
		"its Agent is lost":                {condition: at(12), boot: at(10), want: at(12)},
		"nobody knows when it was booted":  {condition: at(9), want: at(9)},
	} {
		t.Run(name, func(t *testing.T) {
			c := recognition(metav1.ConditionFalse, bootstrapv1.AgentLostReason, test.condition)
			w := waiting{config: c, state: State(c), boot: func() metav1.Time { return test.boot }}
			NewWithT(t).Expect(w.since()).To(Equal(test.want))
			NewWithT(t).Expect(State(c)).To(Equal(metrics.StateWaitingForAgent))
		})
	}
}

// TestSinceWhenAHostIsReadyUnclaimed: a host that was recognised and is not claimed yet counts since it was seen so.
func TestSinceWhenAHostIsReadyUnclaimed(t *testing.T) {
	g := NewWithT(t)
	c := recognition(metav1.ConditionFalse, bootstrapv1.ClaimingAgentReason, at(9))
	g.Expect(State(c)).To(Equal(metrics.StateReady))
	g.Expect(waiting{config: c, state: State(c), seen: at(15)}.since()).To(Equal(at(15)))
	g.Expect(waiting{config: c, state: State(c)}.since()).To(Equal(at(9)), "it was so before this manager began")
}

// TestSinceWhenAHostIsInItsState: what the Agent tells counts, or else what this manager has seen, and neither when it is about another
// Machine: of before the host was recognised.
func TestSinceWhenAHostIsInItsState(t *testing.T) {
	agent := func(stage, validated, connected int) *assisted.Agent {
		a := &assisted.Agent{}
		a.Status.Progress.StageStartTime = at(stage)
		a.Status.Conditions = []assisted.Condition{
			{Type: assisted.ConditionValidated, Status: corev1.ConditionFalse, LastTransitionTime: at(validated)},
			{Type: assisted.ConditionConnected, Status: corev1.ConditionFalse, LastTransitionTime: at(connected)},
		}
		return a
	}
	passing := agent(12, 13, 14)
	for i := range passing.Status.Conditions {
		passing.Status.Conditions[i].Status = corev1.ConditionTrue
	}
	for name, test := range map[string]struct {
		state string
		agent *assisted.Agent
		seen  metav1.Time
		want  metav1.Time
	}{
		"in a stage of its installation":  {metrics.StateInstalling, agent(12, 13, 14), at(11), at(12)},
		"in no stage yet":                 {metrics.StateInstalling, &assisted.Agent{}, at(11), at(11)},
		"in no stage, and nobody saw it":  {metrics.StateInstalling, &assisted.Agent{}, metav1.Time{}, at(10)},
		"a stage of an earlier Machine":   {metrics.StateInstalling, agent(2, 3, 4), at(11), at(11)},
		"with failing checks":             {metrics.StateValidationsFailing, agent(12, 13, 14), at(11), at(13)},
		"with checks that do not stop it": {metrics.StateValidationsFailing, passing, at(11), at(11)},
		"silent":                          {metrics.StateDisconnected, agent(12, 13, 14), at(11), at(14)},
		"failed":                          {metrics.StateFailed, agent(12, 13, 14), at(15), at(15)},
		"failed before the manager began": {metrics.StateFailed, agent(12, 13, 14), metav1.Time{}, at(10)},
		"in need of somebody":             {metrics.StateNeedsAttention, nil, at(11), at(11)},
		"ready, whatever was in between":  {metrics.StateReady, agent(12, 13, 14), at(15), at(10)},
	} {
		t.Run(name, func(t *testing.T) {
			c := recognition(metav1.ConditionTrue, bootstrapv1.HostRecognizedReason, at(10))
			w := waiting{config: c, state: test.state, agent: test.agent, seen: test.seen}
			NewWithT(t).Expect(w.since()).To(Equal(test.want))
		})
	}
}
