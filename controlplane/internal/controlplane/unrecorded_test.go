// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestUnrecordedCluster: a control plane that was deleted without its Machines, and made anew from a manifest, installs nothing on the
// hosts of the cluster that runs, and looks after that cluster again once its record is restored.
func TestUnrecordedCluster(t *testing.T) {
	g := NewWithT(t)
	source := installedWorld(t)
	w := source.moved()
	status := map[string]clusterv1.MachineStatus{}
	for _, m := range source.machines() {
		status[m.Name] = m.Status
	}
	for _, m := range w.machines() { // They have stayed where they were.
		m.Status = status[m.Name]
		w.must(w.client.Status().Update(context.Background(), &m))
	}
	before := w.machines()
	cp := w.controlPlane()
	cp.Annotations = nil
	w.must(w.client.Update(context.Background(), cp))
	for range 3 {
		w.reconcile()
	}
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.UnrecordedClusterReason))
	g.Expect(w.message(controlplanev1.AvailableCondition)).To(And(
		ContainSubstring("cp-0, cp-1, cp-2"), ContainSubstring(controlplanev1.InstalledClusterAnnotation)))
	g.Expect(w.install()).To(BeNil())
	g.Expect(w.deployment()).To(BeNil())
	g.Expect(w.machines()).To(Equal(before))

	cp = w.controlPlane()
	cp.Annotations = source.controlPlane().Annotations
	w.must(w.client.Update(context.Background(), cp))
	w.finishImport()
}
