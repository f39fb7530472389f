// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// report tells, in an event of the Machine, of a Node that Cluster API cannot find.
func (r *Reconciler) report(s *scope, d decision) {
	if d.mismatch == "" {
		return
	}
	r.Recorder.Eventf(
		s.machine, nil, corev1.EventTypeWarning, controlplanev1.EventProviderIDMismatch, "SetProviderID",
		"Node %s in the installed cluster has spec.providerID %s and Machine %s has %s, so Cluster API does not find the Node: delete the "+
			"Machine",
		s.node.Name, d.mismatch, s.machine.Name, s.machine.Spec.ProviderID,
	)
}
