// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/event"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestWatches: of a control plane only its end triggers a pass, of an Agent only that it is no longer bound: their status changes often.
func TestWatches(t *testing.T) {
	g := NewWithT(t)
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	g.Expect(ends.Create(event.CreateEvent{Object: cp})).To(BeFalse())
	g.Expect(ends.Update(event.UpdateEvent{ObjectOld: cp, ObjectNew: cp})).To(BeFalse())
	g.Expect(ends.Delete(event.DeleteEvent{Object: cp})).To(BeTrue())

	free, bound := &assisted.Agent{}, &assisted.Agent{}
	bound.Spec.ClusterDeploymentName = &assisted.ClusterReference{Namespace: "ns", Name: "cp"}
	g.Expect(releases.Create(event.CreateEvent{Object: bound})).To(BeFalse())
	g.Expect(releases.Update(event.UpdateEvent{ObjectOld: bound, ObjectNew: bound})).To(BeFalse())
	g.Expect(releases.Update(event.UpdateEvent{ObjectOld: free, ObjectNew: bound})).To(BeFalse())
	g.Expect(releases.Update(event.UpdateEvent{ObjectOld: bound, ObjectNew: free})).To(BeTrue())
	g.Expect(releases.Delete(event.DeleteEvent{Object: bound})).To(BeTrue())
}
