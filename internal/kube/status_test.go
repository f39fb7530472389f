// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/internal/bounded"
)

// patchedMachine is a client with a Machine, and a count of the patches of its status that the API server took.
func patchedMachine(t *testing.T) (client.Client, *clusterv1.Machine, *int) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m-0", Generation: 3}}
	taken := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine).WithStatusSubresource(machine).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			err := c.SubResource(sub).Patch(ctx, o, p, opts...)
			if err == nil {
				taken++
			}
			return err
		},
	}).Build()
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(machine), machine)).To(Succeed())
	return c, machine, &taken
}

// TestPatchStatus: a status and its conditions are one patch, and a condition that somebody else has set meanwhile survives.
func TestPatchStatus(t *testing.T) {
	for name, meanwhile := range map[string]bool{"nobody has changed it": false, "somebody has changed it": true} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			c, machine, taken := patchedMachine(t)
			before := machine.DeepCopy()
			if meanwhile {
				other := machine.DeepCopy()
				bounded.SetCondition(other, metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "Set"})
				g.Expect(c.Status().Update(ctx, other)).To(Succeed())
			}
			bounded.SetCondition(machine, metav1.Condition{Type: "Ours", Status: metav1.ConditionTrue, Reason: "Set"})
			machine.Status.Phase = "Running"
			alone, err := PatchStatus(ctx, c, before, machine, []string{"Ours"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(alone).To(Equal(!meanwhile))

			live := &clusterv1.Machine{}
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(machine), live)).To(Succeed())
			g.Expect(live.Status.Phase).To(Equal("Running"))
			g.Expect(conditions.IsTrue(live, "Ours")).To(BeTrue())
			g.Expect(conditions.IsTrue(live, "Other")).To(Equal(meanwhile))
			if !meanwhile {
				g.Expect(*taken).To(Equal(1))
			}
		})
	}
}

// TestHoldPaused: an object that is paused, or whose Cluster is, says so at once; of another one the condition is set, and nothing written.
func TestHoldPaused(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster   *clusterv1.Cluster
		annotated bool
		want      metav1.ConditionStatus
	}{
		"nothing is":           {cluster: &clusterv1.Cluster{}, want: metav1.ConditionFalse},
		"the Cluster is gone":  {want: metav1.ConditionFalse},
		"the Cluster is":       {cluster: &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}, want: metav1.ConditionTrue},
		"the object itself is": {annotated: true, want: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			c, machine, taken := patchedMachine(t)
			if tt.annotated {
				machine.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
			}
			held, err := HoldPaused(ctx, c, tt.cluster, machine)
			g.Expect(err).NotTo(HaveOccurred())
			paused := tt.want == metav1.ConditionTrue
			g.Expect(held).To(Equal(paused))
			if !paused {
				g.Expect(*taken).To(BeZero())
			}
			if paused {
				g.Expect(c.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
			}
			g.Expect(conditions.Get(machine, clusterv1.PausedCondition)).
				To(HaveValue(And(HaveField("Status", tt.want), HaveField("ObservedGeneration", machine.Generation))))
		})
	}
}
