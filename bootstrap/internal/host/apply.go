// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// outcomes are what came of a decision or a departure, by subject. A subject whose outcome stops the pass leaves those after it untried.
type outcomes struct {
	hook, identity, joining, departure, record kube.Outcome
}

// err is what the workqueue has to know.
func (o outcomes) err() error {
	for _, outcome := range []kube.Outcome{o.hook, o.identity, o.joining, o.departure, o.record} {
		if err := outcome.Err(); err != nil {
			return err
		}
	}
	return nil
}

// apply carries the decision out. Each step is complete in itself: after a crash the next pass sees what was done and goes on from there.
// What the config records is written at the end of the pass, but for what has to be known before an Agent is claimed or bound.
func (r *Reconciler) apply(ctx context.Context, s *scope, d decision) outcomes {
	o := outcomes{}
	r.tellError(s, d)
	if d.hook {
		if o.hook = kube.OutcomeOf(r.setHook(ctx, s)); o.hook.Stops() {
			return o
		}
	}
	if d.forget { // Before the host is bound: a power cycle that nobody has carried out yet would cut its installation.
		if o.record = kube.OutcomeOf(r.forgetPowerCycle(ctx, s)); o.record.Stops() {
			return o
		}
	}
	if d.record != "" || d.bind != nil && d.disk != "" {
		if o.record = s.saveRecord(ctx, d); o.record.Stops() {
			return o
		}
	}
	r.tellDispute(s, d.recognition)
	r.tellNeverRegistered(s, d.recognition)
	if o.identity = r.applyIdentity(ctx, s, d.recognition); !o.identity.Stops() {
		o.joining = r.applyJoining(ctx, s, d.joining)
	}
	return o
}

// saveRecord records the Agent that is claimed or deleted next, and the disk of one that is bound next: root device hints may be changed
// until then (admission refuses it afterwards), and those of a config that has changed since it was read must not be passed over. While the
// host has the record of a power cycle for an Agent of this name, the next loss would be taken for that one: it was removed before.
func (s *scope) saveRecord(ctx context.Context, d decision) kube.Outcome {
	if d.record != "" {
		metav1.SetMetaDataAnnotation(&s.config.ObjectMeta, bootstrapv1.AgentAnnotation, d.record)
	}
	if d.bind != nil && d.disk != "" {
		metav1.SetMetaDataAnnotation(&s.config.ObjectMeta, bootstrapv1.InstallationDiskAnnotation, d.disk)
	}
	return s.save(ctx)
}

// tellError records an event when the BareMetalHost begins to report an error.
func (r *Reconciler) tellError(s *scope, d decision) {
	if d.healthy.Reason == bootstrapv1.HostErrorReason &&
		conditions.GetReason(s.config, bootstrapv1.HostHealthyCondition) != d.healthy.Reason {
		r.event(s, corev1.EventTypeWarning, bootstrapv1.EventHostError, "%s", d.healthy.Message)
	}
}

// tellNeverRegistered records an event when a host is given up that has not registered.
func (r *Reconciler) tellNeverRegistered(s *scope, d recognition) {
	if d.recognized.Reason == bootstrapv1.HostNeverRegisteredReason &&
		conditions.GetReason(s.config, bootstrapv1.HostRecognizedCondition) != d.recognized.Reason {
		r.event(s, corev1.EventTypeWarning, bootstrapv1.EventHostNeverRegistered, "%s", d.recognized.Message)
	}
}

func (r *Reconciler) setHook(ctx context.Context, s *scope) error {
	err := kube.Patch(ctx, r.Client, s.machine, func(m *clusterv1.Machine) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, bootstrapv1.AgentDeletionHook, bootstrapv1.AgentDeletionHookOwner)
	})
	if err != nil {
		return fmt.Errorf("set the pre-terminate hook on Machine %s: %w", s.machine.Name, err)
	}
	return nil
}
