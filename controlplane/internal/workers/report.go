// SPDX-License-Identifier: Apache-2.0

package workers

import (
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// report tells of each MachineSet that has followed, in an event of its MachineDeployment. Events that differ in their text only are one to
// the recorder: the related MachineSet keeps them apart.
func (r *Reconciler) report(followed []setVersion) {
	for _, f := range followed {
		r.Recorder.Eventf(
			f.deployment, f.set, corev1.EventTypeNormal, controlplanev1.EventWorkersFollowed, "FollowUpgrade",
			"MachineSet %s has version %s now, which all its Nodes run; nothing was reinstalled", f.set.Name, f.version,
		)
	}
}
