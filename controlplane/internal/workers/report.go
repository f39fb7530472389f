// SPDX-License-Identifier: Apache-2.0

package workers

import (
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// followAction is the action that the events name.
const followAction = "FollowUpgrade"

// report tells of each MachineDeployment and MachineSet that has followed, in an event of the MachineDeployment. Events that differ in
// their text only are one to the recorder: the related MachineSet keeps them apart.
func (r *Reconciler) report(followed decision) {
	for _, f := range followed.deployments {
		r.Recorder.Eventf(
			f.deployment, nil, corev1.EventTypeNormal, controlplanev1.EventWorkersFollowed, followAction,
			"MachineDeployment %s has version %s now, which all its Nodes run; nothing was reinstalled", f.deployment.Name, f.version,
		)
	}
	for _, f := range followed.sets {
		r.Recorder.Eventf(
			f.deployment, f.set, corev1.EventTypeNormal, controlplanev1.EventWorkersFollowed, followAction,
			"MachineSet %s has version %s now, which all its Nodes run; nothing was reinstalled", f.set.Name, f.version,
		)
	}
}
