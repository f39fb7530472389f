// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/fact"
)

// ownedConditions are the conditions that this controller writes; the host controller writes the others (CONTRACT BOOT-52).
var ownedConditions = []string{
	clusterv1.ReadyCondition,
	clusterv1.PausedCondition,
	bootstrapv1.DiscoveryImageReadyCondition,
	bootstrapv1.DataSecretAvailableCondition,
	bootstrapv1.DeletingCondition,
}

// setStatus computes every condition that this controller owns. What a failed pass could not decide keeps what the last one said.
func setStatus(s *scope) {
	if s.config.DeletionTimestamp.IsZero() {
		s.deletion.deleting = fact.Waiting(bootstrapv1.NotDeletingReason, "")
	}
	s.deletion.deleting.Set(s.config, bootstrapv1.DeletingCondition)
	s.decision.image.Set(s.config, bootstrapv1.DiscoveryImageReadyCondition)
	s.decision.dataSecret.Set(s.config, bootstrapv1.DataSecretAvailableCondition)
	setReady(s)
}

// setReady summarises what stands in the host's way. Once the Machine has a Node, the host's own conditions leave the summary: a hiccup of
// its BMC must not make a running Node's Machine not ready (DESIGN D21).
func setReady(s *scope) {
	types := conditions.ForConditionTypes{bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DeletingCondition}
	if s.machine != nil && !s.machine.Status.NodeRef.IsDefined() {
		types = append(types, bootstrapv1.HostHealthyCondition, bootstrapv1.HostRecognizedCondition, bootstrapv1.AgentInstalledCondition)
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
		}.Set(
			s.config, clusterv1.ReadyCondition,
		)
	}
}
