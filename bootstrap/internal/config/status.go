// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/discovery"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// ownedConditions are the conditions that nobody else writes: the config's own, and those of its host, which package host sets.
var ownedConditions = []string{
	clusterv1.ReadyCondition,
	clusterv1.PausedCondition,
	bootstrapv1.DiscoveryImageReadyCondition,
	bootstrapv1.DataSecretAvailableCondition,
	bootstrapv1.DeletingCondition,
	bootstrapv1.HostHealthyCondition,
	bootstrapv1.HostRecognizedCondition,
	bootstrapv1.AgentInstalledCondition,
}

// result says how a pass ended. decision is nil when the pass decided nothing, because it could not read something or because the config is
// being deleted; deletion is nil unless the config is being deleted.
type result struct {
	decision *decision
	deletion *deletion
	outcomes outcomes
	// unread is what could not be read; nil when a decision was made.
	unread error
}

// decided reports whether the pass came to a decision about the config's generation.
func (r result) decided() bool { return r.decision != nil || r.deletion != nil }

// lookAgain is when the pass is repeated; 0 is when something changes.
func (r result) lookAgain() time.Duration {
	if r.decision == nil {
		return 0
	}
	return r.decision.retryAfter
}

const (
	// firstStatusWithin is how old a config without a status may be before a pass writes its status, whatever it says.
	firstStatusWithin = 5 * time.Second
	// clocksDiffer is by how much the API server's clock may be ahead of the manager's: the creation timestamp is the API server's time.
	clocksDiffer = 2 * time.Second
)

// saidLater reports whether this pass leaves the first status of a config to a later pass (DESIGN D37). It does when it has taken the
// config up, or when the config is young, and when the status would only say that the image is being made and that the host is waited for.
// Mostly assisted-service makes the image within seconds, which triggers the later pass; otherwise the pass that firstStatusWithin asks
// for writes the status. A crash in between loses nothing: the manager starts with a pass for every config.
func saidLater(s *scope, r result) bool {
	recorded := controllerutil.ContainsFinalizer(s.read, bootstrapv1.ConfigFinalizer)
	if !recorded || len(s.first.Status.Conditions) > 0 || r.decision == nil || r.outcomes.err() != nil {
		return false
	}
	takenUp := !controllerutil.ContainsFinalizer(s.first, bootstrapv1.ConfigFinalizer)
	age := s.now.Sub(s.config.CreationTimestamp.Time)
	if !takenUp && (age <= -clocksDiffer || age >= firstStatusWithin) {
		return false
	}
	if !conditions.IsTrue(s.config, bootstrapv1.HostHealthyCondition) ||
		conditions.GetReason(s.config, bootstrapv1.HostRecognizedCondition) != bootstrapv1.WaitingForHostReason {
		return false
	}
	image := r.decision.image
	return image.Reason == bootstrapv1.InfraEnvPendingReason && // With another message, the API server has refused something.
		image.Message == conditions.GetMessage(s.config, bootstrapv1.DiscoveryImageReadyCondition)
}

// setStatus sets on the config what the pass came to: what is published, and every condition but those of the host, which are in
// the summary. It is called once, on every way out of a pass. What was not decided keeps what an earlier pass has said.
func setStatus(s *scope, r result) {
	switch {
	case s.config.DeletionTimestamp.IsZero():
		fact.Waiting(bootstrapv1.NotDeletingReason, "").Set(s.config, bootstrapv1.DeletingCondition)
	case r.deletion != nil:
		r.deletion.deleting.Set(s.config, bootstrapv1.DeletingCondition)
		if r.deletion.finish {
			controllerutil.RemoveFinalizer(s.config, bootstrapv1.ConfigFinalizer)
		}
	}
	if r.unread != nil {
		tellUnread(s.config, r.unread)
	}
	if r.decision != nil {
		image, dataSecret := imageOutcome(r.decision, r.outcomes), dataSecretOutcome(s, r.decision, r.outcomes)
		publish(s, r.decision, r.outcomes)
		image.Set(s.config, bootstrapv1.DiscoveryImageReadyCondition)
		dataSecret.Set(s.config, bootstrapv1.DataSecretAvailableCondition)
	}
	setReady(s)
}

// tellUnread says that not all that is needed can be read, which is why nothing was decided.
func tellUnread(config *bootstrapv1.OpenshiftAssistedConfig, err error) {
	conditionType, unread := bootstrapv1.DataSecretAvailableCondition, metav1.ConditionUnknown
	if !config.DeletionTimestamp.IsZero() {
		conditionType, unread = bootstrapv1.DeletingCondition, metav1.ConditionTrue
	}
	fact.TellUnread(config, conditionType, fact.Fact{Status: unread, Reason: bootstrapv1.ReadFailedReason}, err)
}

// publish publishes the data Secret. Its name and the flag go out in one patch, after the Secret exists (CONTRACT BOOT-25).
func publish(s *scope, d *decision, o outcomes) {
	if d.publish && made(d, o) {
		s.config.Status.DataSecretName = ptr.Deref(s.machine.Spec.Bootstrap.DataSecretName, s.config.Name)
		s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
	}
}

// made reports whether the data Secret is as it should be.
func made(d *decision, o outcomes) bool { return !d.secret || o.secret.Done() }

// told returns the API server's refusal in words that a condition may show: its own words may quote network data or the URL of the image.
func told(o kube.Outcome) kube.Refusal {
	var refusal kube.Refusal
	_ = errors.As(o.Refusal(), &refusal)
	return refusal
}

// imageOutcome is what was decided about the image, unless the API server refuses what it is made of.
func imageOutcome(d *decision, o outcomes) fact.Fact {
	if refusal := told(o.networks); refusal != "" {
		return fact.Waiting(bootstrapv1.NetworkDataInvalidReason, "%s", refusal)
	}
	if refusal := told(o.infraEnv); refusal != "" && d.image.Status != metav1.ConditionTrue {
		return fact.Waiting(bootstrapv1.InfraEnvFailedReason, "%s", refusal)
	}
	return d.image
}

// dataSecretOutcome is what was decided about the data Secret, unless something else came of it.
func dataSecretOutcome(s *scope, d *decision, o outcomes) fact.Fact {
	refusal := cmp.Or(told(o.networks), told(o.infraEnv), told(o.media))
	var problem *discovery.Error
	switch {
	case refusal != "" && d.dataSecret.Status != metav1.ConditionTrue:
		return fact.Waiting(bootstrapv1.WaitingForDiscoveryImageReason, "no discovery image yet: %s", refusal)
	case !d.publish:
		return d.dataSecret
	case made(d, o):
		return fact.Done(bootstrapv1.DataSecretAvailableReason)
	case told(o.secret) != "":
		return fact.Waiting(bootstrapv1.DataSecretRefusedReason, "%s", told(o.secret))
	case !errors.As(o.secret.Err(), &problem) && d.dataSecret.Status == metav1.ConditionTrue:
		return fact.Fact{}
	case o.secret.Waits() && conditions.Has(s.config, bootstrapv1.DataSecretAvailableCondition):
		return fact.Fact{} // Servers answer soon, or something is said about them: that one is asked is no news.
	case problem == nil:
		return d.dataSecret
	case problem.Invalid:
		return fact.Waiting(bootstrapv1.DiscoveryIgnitionInvalidReason, "discovery ignition of InfraEnv %s: %s", s.infraEnvName, problem.Message)
	default:
		return fact.Waiting(
			bootstrapv1.DiscoveryIgnitionUnreachableReason, "discovery ignition of InfraEnv %s: %s", s.infraEnvName, problem.Message,
		)
	}
}

// setReady summarises what stands in the host's way. Once the Machine has a Node, the host's own conditions leave the summary: a hiccup of
// its BMC must not make a running Node's Machine not ready (DESIGN D21). When that Machine is deleted, a failing BMC keeps it from going.
func setReady(s *scope) {
	types := conditions.ForConditionTypes{bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DeletingCondition}
	if s.machine != nil && !s.machine.Status.NodeRef.IsDefined() {
		types = append(types, bootstrapv1.HostHealthyCondition, bootstrapv1.HostRecognizedCondition, bootstrapv1.AgentInstalledCondition)
	} else if s.machine != nil && !s.machine.DeletionTimestamp.IsZero() {
		types = append(types, bootstrapv1.HostHealthyCondition)
	}
	err := conditions.SetSummaryCondition(
		s.config,
		s.config,
		clusterv1.ReadyCondition,
		types,
		conditions.NegativePolarityConditionTypes{bootstrapv1.DeletingCondition},
		conditions.IgnoreTypesIfMissing{
			bootstrapv1.HostHealthyCondition, bootstrapv1.HostRecognizedCondition, bootstrapv1.AgentInstalledCondition,
			bootstrapv1.DataSecretAvailableCondition,
		},
	)
	if err != nil {
		fact.Fact{
			Status: metav1.ConditionUnknown, Reason: clusterv1.InternalErrorReason, Message: err.Error(),
		}.Set(s.config, clusterv1.ReadyCondition)
	}
}
