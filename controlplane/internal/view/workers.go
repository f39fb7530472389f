// SPDX-License-Identifier: Apache-2.0

package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// WantedWorkers is the number of workers that Cluster API asks for: MachineDeployments, MachineSets without a MachineDeployment, and
// standalone Machines. The lists hold the objects of one Cluster; what is being deleted does not count, and a missing replicas field is 1,
// as Cluster API defaults it. Arbiters are no workers: there is one or none, whatever is asked for.
func WantedWorkers(deployments []clusterv1.MachineDeployment, sets []clusterv1.MachineSet, machines []*clusterv1.Machine) int {
	n := 0
	for i := range deployments {
		if deployments[i].DeletionTimestamp.IsZero() && !arbiter(deployments[i].Spec.Template.Labels) {
			n += int(ptr.Deref(deployments[i].Spec.Replicas, 1))
		}
	}
	for i := range sets {
		if sets[i].DeletionTimestamp.IsZero() && !ownedByKind(&sets[i], "MachineDeployment") && !arbiter(sets[i].Spec.Template.Labels) {
			n += int(ptr.Deref(sets[i].Spec.Replicas, 1))
		}
	}
	for _, m := range machines {
		if m.DeletionTimestamp.IsZero() && !util.IsControlPlaneMachine(m) && !ownedByKind(m, "MachineSet") && !arbiter(m.Labels) {
			n++
		}
	}
	return n
}

// IsArbiter reports whether a Machine is an arbiter.
func IsArbiter(m *clusterv1.Machine) bool { return arbiter(m.Labels) }

// arbiter reports whether a Machine with these labels is an arbiter.
func arbiter(labels map[string]string) bool {
	_, found := labels[bootstrapv1.ArbiterLabel]
	return found
}

func ownedByKind(o metav1.Object, kind string) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == kind
}

// FirstWorkers is how many of the wanted workers take part in the first installation: a single-node cluster refuses any (DESIGN D8).
func FirstWorkers(replicas, wanted int) int {
	if replicas == 1 {
		return 0
	}
	return wanted
}
