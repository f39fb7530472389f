// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

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
