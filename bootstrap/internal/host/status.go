// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fact"
)

// result says how a pass ended. decision is nil when the pass decided nothing, because it could not read something or because the Machine
// is being deleted; departure is nil unless the Machine is being deleted.
type result struct {
	decision  *decision
	departure *departure
	outcomes  outcomes
	// unread is what could not be read; nil when a decision was made.
	unread error
}

// setStatus writes to the config what the pass came to: records and every condition of the host. It is called once, on every
// way out of a pass. What was not decided keeps what an earlier pass has said.
func setStatus(config *bootstrapv1.OpenshiftAssistedConfig, r result) {
	if r.unread != nil {
		tellUnread(config, r.unread)
	}
	if r.departure != nil {
		r.departure.healthy.Set(config, bootstrapv1.HostHealthyCondition)
		r.departure.recognized.Set(config, bootstrapv1.HostRecognizedCondition)
	}
	if r.decision == nil {
		return
	}
	setRecords(config, r.decision, r.outcomes)
	r.decision.healthy.Set(config, bootstrapv1.HostHealthyCondition)
	if recognized := recognizedFact(r.decision, r.outcomes); recognized.Reason != "" {
		// Together: a host that waits for its Agent without a time is one that is never power-cycled.
		config.Status.HostRegistration = r.decision.wait.status()
		recognized.Set(config, bootstrapv1.HostRecognizedCondition)
	}
	installedFact(r.decision, r.outcomes).Set(config, bootstrapv1.AgentInstalledCondition)
}

// tellUnread says that not all that is needed can be read, which is why nothing was decided. AgentInstalled goes on to say that an
// installation has begun: nothing else does when the Agent is gone by the time at which everything can be read again.
func tellUnread(config *bootstrapv1.OpenshiftAssistedConfig, err error) {
	conditionType, unread := bootstrapv1.HostRecognizedCondition, fact.Fact{
		Status: metav1.ConditionUnknown, Reason: bootstrapv1.ReadFailedReason,
	}
	if conditions.IsTrue(config, conditionType) {
		conditionType = bootstrapv1.AgentInstalledCondition
		if known := conditions.Get(config, conditionType); known != nil && slices.Contains(begunReasons, known.Reason) {
			unread = fact.Fact{Status: known.Status, Reason: known.Reason}
		}
	}
	fact.TellUnread(config, conditionType, unread, err,
		bootstrapv1.AgentPreparationFailedReason, bootstrapv1.SeveralAgentsReason, bootstrapv1.DuplicateSerialNumberReason,
		bootstrapv1.AgentNotRecognizedReason)
}

// setRecords notes on the config what later passes have to know and no other object tells. saveRecord has saved the name of the Agent, and
// the disk of one that was bound, before.
func setRecords(config *bootstrapv1.OpenshiftAssistedConfig, d *decision, o outcomes) {
	if d.rebooted || d.reboot && o.identity.Done() {
		delete(config.Annotations, bootstrapv1.AgentAnnotation)
	}
	switch {
	case d.disk == "":
	case d.bind == nil || o.joining.Done(): // What the Agent says of its disk exists by now.
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.InstallationDiskAnnotation, d.disk)
	default: // The host was not bound, so the user may choose other hints.
		delete(config.Annotations, bootstrapv1.InstallationDiskAnnotation)
	}
}

// recognizedFact returns what the condition HostRecognized says: what the pass has decided, unless a write failed. If an Agent could not be
// claimed, the condition stays as it is; if an approval could not be withdrawn, the condition says that the Agent still has it.
func recognizedFact(d *decision, o outcomes) fact.Fact {
	switch {
	case d.bind != nil && d.bind.claim != "" && !o.joining.Done():
		return fact.Fact{} // As one that could not be claimed.
	case !o.identity.Stops():
		return d.recognized
	case d.claim != nil:
		return fact.Fact{}
	case d.withdraw == nil:
		return d.recognized
	}
	why := "it is tried again"
	if refusal := o.identity.Refusal(); refusal != nil {
		why = refusal.Error()
	}
	return fact.Waiting(d.recognized.Reason, "Agent %s may be another host, and has still what it was given: %s", d.withdraw.Name, why)
}

// installedFact is what was decided, unless the API server refuses what the host is given: only its refusal says why nothing goes on. Of an
// Agent that could not be claimed because it has changed, the next pass tells: here it would be a write for nothing.
func installedFact(d *decision, o outcomes) fact.Fact {
	if o.identity.Outdated() || d.bind != nil && d.bind.claim != "" && o.joining.Outdated() {
		return fact.Fact{}
	}
	if refusal := o.joining.Refusal(); refusal != nil {
		return fact.Waiting(bootstrapv1.AgentNeedsAttentionReason, "The API server refuses to let the host in: %v", refusal)
	}
	return d.installed
}
