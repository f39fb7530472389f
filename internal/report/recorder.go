// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// Recorder keeps the faults that conditions tell of and that pass: an object has only what is so now. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	faults map[recordedCondition]*recordedFault
}

// recordedCondition is a condition of an object with one of its reasons.
type recordedCondition struct{ kind, name, condition, reason string }

type recordedFault struct {
	PastFault
	open bool
}

// NewRecorder returns a Recorder that has seen nothing yet.
func NewRecorder() *Recorder { return &Recorder{faults: map[recordedCondition]*recordedFault{}} }

// Observe is told of every change of an object, and when it was seen.
func (r *Recorder) Observe(object client.Object, at time.Time) {
	kind, conditions := "", []metav1.Condition(nil)
	switch o := object.(type) {
	case *clusterv1.Machine:
		kind, conditions = kindMachine, o.Status.Conditions
	case *bootstrapv1.OpenshiftAssistedConfig:
		kind, conditions = kindConfig, o.Status.Conditions
	case *controlplanev1.OpenshiftAssistedControlPlane:
		kind, conditions = kindControlPlane, o.Status.Conditions
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := map[recordedCondition]bool{}
	for _, c := range conditions {
		if isFault(kind, c) {
			key := recordedCondition{kind, object.GetName(), c.Type, c.Reason}
			now[key] = true
			r.begin(key, c.Message, at)
		}
	}
	for key, fault := range r.faults {
		if key.kind == kind && key.name == object.GetName() && fault.open && !now[key] {
			fault.open, fault.To = false, at
		}
	}
}

func (r *Recorder) begin(key recordedCondition, message string, at time.Time) {
	fault := r.faults[key]
	if fault == nil {
		fault = &recordedFault{PastFault: PastFault{Kind: key.kind, Name: key.name, Condition: key.condition, Reason: key.reason, From: at}}
		r.faults[key] = fault
	}
	if !fault.open {
		fault.open = true
		fault.Count++
	}
	fault.Message = message
}

// Faults returns all that was seen, the oldest first. What is so still lasts until now.
func (r *Recorder) Faults(now time.Time) []PastFault {
	r.mu.Lock()
	defer r.mu.Unlock()
	faults := make([]PastFault, 0, len(r.faults))
	for _, fault := range r.faults {
		past := fault.PastFault
		if fault.open {
			past.To = now
		}
		faults = append(faults, past)
	}
	slices.SortFunc(faults, func(a, b PastFault) int {
		return cmp.Or(a.From.Compare(b.From), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Condition, b.Condition), strings.Compare(a.Reason, b.Reason))
	})
	return faults
}
