// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// answeredStep is a step of an installation that begins with a write of somebody else and ends with a write of ours, each the first one of
// its kind in the namespace of the cluster. Between them are the watch, Cluster API's limit of one pass a second, the wait for a worker,
// and what the pass does before it writes.
type answeredStep struct {
	name string
	// manager is whose write the answer is.
	manager string
	// cause and answer are verbs and resources.
	cause, answer string
}

// installSteps are those that every single-node installation has once.
var installSteps = []answeredStep{
	{
		"control plane has its Cluster, to its first write", controlPlaneName,
		"patch openshiftassistedcontrolplanes", "patch openshiftassistedcontrolplanes",
	},
	{"config has its Machine, to InfraEnv", bootstrapName, "patch openshiftassistedconfigs", "create infraenvs"},
	{"InfraEnv has its image, to boot medium", bootstrapName, "patch infraenvs/status", "patch metal3machines"},
	{"Agent, to claim", bootstrapName, "create agents", "patch agents"},
}

// stepTimes are the seconds from causes to answers, sorted, by the name of the step. A step that has no answer in a namespace has no time.
type stepTimes map[string][]float64

// occurrence is a step in a namespace.
type occurrence struct{ namespace, step string }

// readSteps reads an audit log, in which users are those of managers.
func readSteps(path string, offset int64, steps []answeredStep, users map[string]string) (stepTimes, error) {
	causes, answers := map[occurrence]time.Time{}, map[occurrence][]time.Time{}
	err := sandbox.ReadAuditFrom(path, offset, func(event *auditv1.Event) {
		if event.ObjectRef == nil || refused(event) {
			return
		}
		what := event.Verb + " " + strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")
		for _, step := range steps {
			at, ours := occurrence{event.ObjectRef.Namespace, step.name}, event.User.Username == users[step.manager]
			if ours && what == step.answer {
				answers[at] = append(answers[at], event.RequestReceivedTimestamp.Time)
			}
			if end := event.StageTimestamp.Time; !ours && what == step.cause && (causes[at].IsZero() || end.Before(causes[at])) {
				causes[at] = end
			}
		}
	})
	times := stepTimes{}
	for at, cause := range causes {
		if took, ok := firstAfter(cause, answers[at]); ok {
			times[at.step] = append(times[at.step], took)
		}
	}
	for _, took := range times {
		slices.Sort(took)
	}
	return times, err
}

// firstAfter is after how many seconds the first answer began that came after its cause.
func firstAfter(cause time.Time, answers []time.Time) (float64, bool) {
	first, ok := 0.0, false
	for _, at := range answers {
		if took := at.Sub(cause).Seconds(); took >= 0 && (!ok || took < first) {
			first, ok = took, true
		}
	}
	return first, ok
}
