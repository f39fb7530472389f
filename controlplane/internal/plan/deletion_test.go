// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func testDeletion(t *testing.T) {
	all := plan.Leftovers{
		Workers: []string{"w2", "w1", "w4", "w3"}, Pools: []string{"p"}, Machines: []string{"cp-1", "cp-0"},
		Install: []string{"ClusterDeployment c", "AgentClusterInstall c"}, ImageSet: "ns.c",
	}
	noWorkers := all
	noWorkers.Workers, noWorkers.Pools = nil, nil
	tests := []struct {
		name            string
		in              plan.Leftovers
		step            plan.DeletionStep
		reason, message string
	}{
		{
			"workers first", all, plan.DeletionWaitForWorkers, controlplanev1.WaitingForWorkersDeletionReason,
			"Waiting for the deletion of workers: p, w1, w2 and 2 more",
		},
		{
			"then Machines", noWorkers, plan.DeletionMachines, controlplanev1.WaitingForMachineDeletionReason,
			"Waiting for the deletion of Machines: cp-0, cp-1",
		},
		{
			"whose hosts are not freed",
			plan.Leftovers{Machines: []string{"cp-0"}, Unfreed: []string{"Machine cp-0: BareMetalHost a", "b", "c", "d", "e"}},
			plan.DeletionMachines, controlplanev1.WaitingForMachineDeletionReason,
			"Waiting for the deletion of Machines: cp-0\n* Machine cp-0: BareMetalHost a\n* b\n* c\n* and 2 more",
		},
		{
			"but not before garbage collection has taken them away",
			plan.Leftovers{Orphaning: true, Machines: []string{"cp-0", "cp-1"}, Install: []string{"AgentClusterInstall c"}},
			plan.DeletionWaitForOrphaning,
			controlplanev1.WaitingForOrphaningReason,
			"The control plane was deleted without its Machines (--cascade=orphan). Waiting until garbage collection has removed their owner " +
				"references, and finalizer orphan of the control plane",
		},
		{
			"then what is left of the installation", plan.Leftovers{Install: []string{"AgentClusterInstall c"}, ImageSet: "ns.c"},
			plan.DeletionInstall, controlplanev1.WaitingForInstallDeletionReason, "Waiting for the deletion of AgentClusterInstall c",
		},
		{
			"but not from under Machines that were orphaned",
			plan.Leftovers{Orphans: []string{"cp-1", "cp-0"}, Install: []string{"AgentClusterInstall c"}},
			plan.DeletionWaitForHosts,
			controlplanev1.WaitingForOrphanedMachinesReason,
			"Machines that the control plane does not control run on hosts that are bound to its ClusterDeployment: cp-0, cp-1. " +
				"AgentClusterInstall c must stay until these Machines are deleted, because assisted-service would take the hosts from the cluster",
		},
		{"then the ClusterImageSet", plan.Leftovers{ImageSet: "ns.c"}, plan.DeletionImageSet,
			controlplanev1.WaitingForInstallDeletionReason, "Waiting for the deletion of ClusterImageSet ns.c"},
		{"then nothing", plan.Leftovers{}, plan.DeletionDone, controlplanev1.DeletionCompletedReason, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			step, reason, message := tt.in.Next()
			if step != tt.step || reason != tt.reason || message != tt.message {
				t.Errorf("got %s, %s, %q", step, reason, message)
			}
		})
	}
}
