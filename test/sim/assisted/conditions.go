// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// conditionFields are what assisted-service's condition types have in common, by reference.
type conditionFields[T ~string] struct {
	kind            *T
	status          *corev1.ConditionStatus
	reason, message *string
	probed, changed *metav1.Time
}

// setCondition replaces one condition of a list. Times change only with the status, except for the probe time when rewrites are asked for
// (see Durations.Churn).
func setCondition[C any, T ~string](s *Simulator, list *[]C, c condition, fields func(*C) conditionFields[T]) {
	now := metav1.NewTime(s.backend.opts.Clock.Now().Truncate(time.Second))
	for i := range *list {
		old := fields(&(*list)[i])
		if *old.kind != T(c.kind) {
			continue
		}
		if *old.status == c.status && *old.reason == c.reason && *old.message == c.message {
			if s.probeDue(old.probed.Time) {
				*old.probed = now
			}
			return
		}
		if *old.status != c.status {
			*old.changed = now
		}
		*old.status, *old.reason, *old.message, *old.probed = c.status, c.reason, c.message, now
		return
	}
	added := new(C)
	f := fields(added)
	*f.kind, *f.status, *f.reason, *f.message, *f.probed, *f.changed = T(c.kind), c.status, c.reason, c.message, now, now
	*list = append(*list, *added)
}

// setAgentCondition sets one condition of an InfraEnv or Agent.
func (s *Simulator) setAgentCondition(conditions *[]aiv1.Condition, c condition) {
	setCondition(s, conditions, c, func(o *aiv1.Condition) conditionFields[string] {
		return conditionFields[string]{&o.Type, &o.Status, &o.Reason, &o.Message, &o.LastHeartbeatTime, &o.LastTransitionTime}
	})
}

// probeDue says whether a probe time is old enough to be rewritten: the service changes Agents several times a minute for nothing (ASSISTED
// 1.2).
func (s *Simulator) probeDue(last time.Time) bool {
	churn := s.backend.opts.Durations.Churn
	return churn > 0 && s.backend.opts.Clock.Now().Sub(last) >= churn
}
