// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestUnpaused: of the changes of a control plane, those by which it is no longer paused trigger a pass, and none of its status.
func TestUnpaused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*controlplanev1.OpenshiftAssistedControlPlane)
		want   bool
	}{
		"its status": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.ReadyReplicas = ptr.To[int32](2) }, false},
		"its replicas": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Replicas, cp.Generation = ptr.To[int32](3), 2
		}, false},
		"its annotation": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Annotations = nil }, true},
		"its label": {func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Labels = map[string]string{clusterv1.WatchLabel: "other"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &controlplanev1.OpenshiftAssistedControlPlane{}
			before.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			after := before.DeepCopy()
			tt.change(after)
			NewWithT(t).Expect(unpaused.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tt.want))
		})
	}
}
