// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestVersionIsCorrectedBeforeThereIsANode: otherwise Cluster API takes the control plane for upgrading, and creates no workers.
func TestVersionIsCorrectedBeforeThereIsANode(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 1)
	w.run(nil, func() bool { return len(w.machines()) == 4 })
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Version = "v1.33.5" })
	for range 3 {
		w.reconcile()
	}
	g.Expect(w.controlPlane().Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: "v1.33.5", Replicas: 3}}))
	g.Expect(w.reason(controlplanev1.MachinesUpToDateCondition)).To(Equal(controlplanev1.MachinesUpToDateReason))
}

// TestRefusedTaintBlocksNothingElse: labels and time-outs reach a Machine whose taints core, or a policy, refuses.
func TestRefusedTaintBlocksNothingElse(t *testing.T) {
	resource, kind := clusterv1.GroupVersion.WithResource("machines").GroupResource(), clusterv1.GroupVersion.WithKind("Machine").GroupKind()
	t.Run("by core", func(t *testing.T) {
		refusedTaint(t, apierrors.NewInvalid(kind, "m", nil), false)
	})
	const denied = `ValidatingAdmissionPolicy "taints" with binding "taints" denied request: no taints`
	t.Run("by a policy", func(t *testing.T) {
		refusal := apierrors.NewInvalid(kind, "m", nil) // The code of a policy that names no reason.
		refusal.ErrStatus.Message = denied
		refusedTaint(t, refusal, true)
	})
	t.Run("by a policy that forbids it", func(t *testing.T) {
		refusedTaint(t, apierrors.NewForbidden(resource, "m", errors.New(denied)), true)
	})
}

// refusedTaint changes taints together with labels and a time-out, and answers the patch of the taints with an error, for which the pass is
// tried again or not.
func refusedTaint(t *testing.T, refusal error, again bool) {
	t.Helper()
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.run(nil, w.available)
	w.r.Client = w.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			data, _ := patch.Data(o)
			if _, machine := o.(*clusterv1.Machine); machine && strings.Contains(string(data), "taints") {
				return refusal
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{
			Key: "a", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways,
		}}
		s.MachineTemplate.ObjectMeta.Labels = map[string]string{"team": "blue"}
		s.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(60))
	})
	for range 3 {
		g.Expect(w.try() != nil).To(Equal(again))
	}
	g.Expect(w.machines()[0].Labels).To(HaveKeyWithValue("team", "blue"))
	g.Expect(w.machines()[0].Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(60)))
	g.Expect(conditions.GetMessage(&w.machines()[0], clusterv1.MachineUpToDateCondition)).To(ContainSubstring("is refused"))
}
