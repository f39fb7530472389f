// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func arbiter(name string) plan.Host {
	return plan.Host{Name: name, Role: assisted.RoleArbiter, Ready: true}
}

// TestArbiterOnDayOne: nothing is installed without the arbiter, and with no more than one.
func TestArbiterOnDayOne(t *testing.T) {
	masters := []plan.Host{master("a"), master("b")}
	tests := []struct {
		name   string
		hosts  []plan.Host
		set    []string
		action plan.DayOneAction
		agents []string
	}{
		{name: "the arbiter is waited for", hosts: masters, action: plan.DayOneNothing},
		{name: "one that is not ready is waited for", hosts: append(masters, unready(arbiter("x"))), action: plan.DayOneNothing},
		{name: "ready", hosts: append(masters, arbiter("x")), action: plan.DayOneClose, agents: []string{"a", "b", "x"}},
		{name: "one of two", hosts: append(masters, arbiter("y"), arbiter("x")), action: plan.DayOneClose, agents: []string{"a", "b", "x"}},
		{
			name: "a surplus one is unbound", hosts: append(masters, arbiter("x"), arbiter("y")), set: []string{"a", "b", "x"},
			action: plan.DayOneUnbind, agents: []string{"y"},
		},
		{name: "started", hosts: append(masters, arbiter("x")), set: []string{"a", "b", "x"}, action: plan.DayOneStart},
		{name: "gone", hosts: masters, set: []string{"a", "b", "x"}, action: plan.DayOneReopen},
		{name: "lost", hosts: append(masters, lost(arbiter("x"))), set: []string{"a", "b", "x"}, action: plan.DayOneReopen},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			step := plan.DayOne{
				Phase: assisted.PhaseWaiting, Replicas: 2, Arbiters: 1, Hold: true, Requirements: counts(2, 0), Hosts: tt.hosts,
				Closed: tt.set != nil, Set: tt.set, Now: now,
			}.Next()
			g.Expect(step.Action).To(Equal(tt.action), step.Note)
			g.Expect(step.Agents).To(ConsistOf(tt.agents), step.Note)
		})
	}
}

func TestReadyNoteNamesArbiters(t *testing.T) {
	step := plan.DayOne{Phase: assisted.PhaseWaiting, Replicas: 2, Arbiters: 1, Hold: true, Requirements: counts(2, 0)}.Next()
	NewWithT(t).Expect(step.Note).To(Equal("0 of 2 control-plane hosts, 0 of 1 arbiters and 0 of 0 workers are ready"))
}

// TestTwoNodeObjects: what the service reads of two-node clusters, and what the bootstrap provider does.
func TestTwoNodeObjects(t *testing.T) {
	g := NewWithT(t)
	arbitrated, err := installOf(func(i *controlplanev1.InstallSpec) {
		i.TwoNode, i.Hyperthreading.Arbiter = controlplanev1.TwoNodeArbiter, controlplanev1.HyperthreadingDisabled
	}).Object()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(arbitrated.GetAnnotations()).To(HaveKeyWithValue(assisted.TwoNodeAnnotation, assisted.TwoNodeArbiter))
	spec := arbitrated.Object["spec"].(map[string]any)
	g.Expect(spec["provisionRequirements"]).To(HaveKeyWithValue("arbiterAgents", int64(1)))
	g.Expect(spec["arbiter"]).To(Equal(map[string]any{"name": "arbiter", "hyperthreading": "Disabled"}))
	g.Expect(spec["controlPlane"]).To(HaveKeyWithValue("hyperthreading", "Enabled"), "pools that are missing beside another count as disabled")

	fenced, err := installOf(func(i *controlplanev1.InstallSpec) { i.TwoNode = controlplanev1.TwoNodeFencing }).Object()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fenced.GetAnnotations()).To(HaveKeyWithValue(assisted.TwoNodeAnnotation, assisted.TwoNodeFencing))
	spec = fenced.Object["spec"].(map[string]any)
	g.Expect(spec["provisionRequirements"]).NotTo(HaveKey("arbiterAgents"), "older releases of the service do not know it")
	g.Expect(spec).NotTo(HaveKey("arbiter"))
}

func TestEncryptedRolesOfTwoNodes(t *testing.T) {
	const master, third, worker = controlplanev1.HostRoleControlPlane, controlplanev1.HostRoleArbiter, controlplanev1.HostRoleWorker
	for want, roles := range map[string][]controlplanev1.HostRole{
		"all": {worker, master, third}, "masters,arbiters": {third, master}, "masters,workers": {worker, master}, "arbiters": {third},
	} {
		install, err := installOf(func(i *controlplanev1.InstallSpec) {
			i.TwoNode = controlplanev1.TwoNodeArbiter
			i.DiskEncryption = controlplanev1.DiskEncryptionSpec{Mode: controlplanev1.DiskEncryptionTPM2, Roles: roles}
		}).AgentClusterInstall()
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(*install.Spec.DiskEncryption.EnableOn).To(Equal(want))
	}
}

// TestArbitersAreNoWorkers: the installation does not wait for more workers because of them.
func TestArbitersAreNoWorkers(t *testing.T) {
	labels := map[string]string{bootstrapv1.ArbiterLabel: ""}
	deployment := clusterv1.MachineDeployment{}
	deployment.Spec.Replicas, deployment.Spec.Template.Labels = ptr.To[int32](1), labels
	set := clusterv1.MachineSet{}
	set.Spec.Replicas, set.Spec.Template.Labels = ptr.To[int32](1), labels
	machine := &clusterv1.Machine{}
	machine.Labels = labels
	got := plan.WantedWorkers([]clusterv1.MachineDeployment{deployment}, []clusterv1.MachineSet{set}, []*clusterv1.Machine{machine})
	NewWithT(t).Expect(got).To(BeZero())
}
