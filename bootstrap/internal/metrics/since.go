// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// waiting is a host in a state, with what tells since when it is in it.
type waiting struct {
	config *bootstrapv1.OpenshiftAssistedConfig
	state  string
	// agent is the host's Agent; nil when it has none.
	agent *assisted.Agent
	// boot returns when the host's BareMetalHost was provisioned, or zero when that is not known. It reads an object, so that it is called
	// only for states whose age is counted from that time.
	boot func() metav1.Time
	// seen is when this manager saw the host change to its state; zero when it was in it before.
	seen metav1.Time
}

// since is when a host came into its state. Where no object tells, it is when this manager saw it, or else the last milestone before.
func (w waiting) since() metav1.Time {
	recognized := ptr.Deref(conditions.GetLastTransitionTime(w.config, bootstrapv1.HostRecognizedCondition), metav1.Time{})
	switch w.state {
	case metrics.StateWaitingForHost:
		return w.config.CreationTimestamp
	case metrics.StateWaitingForAgent, metrics.StateNotRecognised, metrics.StateSeveralMatch, metrics.StateDuplicate:
		// A host that was recognised, and whose Agent is lost, waits since then.
		if at := w.boot(); recognized.Before(&at) {
			return at
		}
	case metrics.StateReady:
		// One that is not claimed yet is so since it was seen recognised: HostRecognized is False since the config was made.
		if !conditions.IsTrue(w.config, bootstrapv1.HostRecognizedCondition) && recognized.Before(&w.seen) {
			return w.seen
		}
	case metrics.StateInstalled:
		if at := conditions.GetLastTransitionTime(w.config, bootstrapv1.AgentInstalledCondition); at != nil {
			return *at
		}
	default:
		// What the Agent tells of before was about another Machine.
		if at := w.told(); recognized.Before(&at) {
			return at
		}
		if recognized.Before(&w.seen) {
			return w.seen
		}
	}
	if !recognized.IsZero() {
		return recognized
	}
	return w.config.CreationTimestamp
}

// told is since when the Agent says that its host is in the state; zero when it does not say. An installation counts from the begin of its
// stage, so that one that goes on slowly is not taken for one that hangs.
func (w waiting) told() metav1.Time {
	if w.agent == nil {
		return metav1.Time{}
	}
	switch w.state {
	case metrics.StateInstalling:
		return w.agent.Status.Progress.StageStartTime
	case metrics.StateValidationsFailing:
		return sinceFalse(w.agent.Condition(assisted.ConditionValidated))
	case metrics.StateDisconnected:
		return sinceFalse(w.agent.Condition(assisted.ConditionConnected))
	}
	return metav1.Time{}
}

func sinceFalse(c *assisted.Condition) metav1.Time {
	if !c.Is(corev1.ConditionFalse) {
		return metav1.Time{}
	}
	return c.LastTransitionTime
}

// sightings are the states in which this manager saw hosts at a scrape, by the UID of the config.
type sightings map[types.UID]sighting

type sighting struct {
	state string
	// since is when the host was seen to change to the state; zero when it was seen in no other one.
	since metav1.Time
}

// add notes the state of a host, and returns since when the host is seen in it. before are the sightings of the scrape before.
func (s sightings) add(before sightings, config types.UID, state string, now time.Time) metav1.Time {
	last, known := before[config]
	if known && last.state != state {
		last.since = metav1.NewTime(now)
	}
	s[config] = sighting{state, last.since}
	return last.since
}
