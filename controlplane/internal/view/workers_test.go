// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// TestArbitersAreNoWorkers: the installation does not wait for more workers because of them.
func TestArbitersAreNoWorkers(t *testing.T) {
	labels := map[string]string{bootstrapv1.ArbiterLabel: ""}
	deployment := clusterv1.MachineDeployment{}
	deployment.Spec.Replicas, deployment.Spec.Template.Labels = ptr.To[int32](1), labels
	set := clusterv1.MachineSet{}
	set.Spec.Replicas, set.Spec.Template.Labels = ptr.To[int32](1), labels
	machine := &clusterv1.Machine{}
	machine.Labels = labels
	got := view.WantedWorkers([]clusterv1.MachineDeployment{deployment}, []clusterv1.MachineSet{set}, []*clusterv1.Machine{machine})
	NewWithT(t).Expect(got).To(BeZero())
}
