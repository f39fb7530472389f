// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// deleteTimeout is for the deletion of a whole cluster.
const deleteTimeout = 2 * time.Minute

func (l *lab) delete(t *testing.T, object client.Object) {
	t.Helper()
	NewWithT(t).Expect(l.Client.Delete(t.Context(), object)).To(Succeed())
}

// removeByForce removes an object whatever it still has to do, as clusterctl move does on the cluster that it leaves.
func (l *lab) removeByForce(t *testing.T, object client.Object) {
	t.Helper()
	NewWithT(t).Expect(client.IgnoreNotFound(l.Client.Delete(t.Context(), object))).To(Succeed())
	l.change(t, object, func() { object.SetFinalizers(nil) })
	l.expectGone(t, object)
}

// expectGone waits until an object does not exist.
func (l *lab) expectGone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, func(g Gomega) {
		err := l.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%T %s: %v %v", object, object.GetName(), err, object.GetFinalizers())
	})
}

// expectNothingLeft waits until neither config nor Secret nor InfraEnv of a Machine is left.
func (l *lab) expectNothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, func(g Gomega) {
		g.Expect(l.configs(t.Context(), g, l.namespace)).To(BeEmpty())
		g.Expect(l.dataSecrets(t.Context(), g)).To(BeEmpty())
		g.Expect(l.infraEnvs(t.Context(), g)).To(BeEmpty())
	})
}

func TestContractDeletion(t *testing.T) {
	t.Run(
		"BOOT-35 BOOT-28 BOOT-50 a config stays for as long as its Machine needs it, then goes with its Secret and InfraEnv",
		func(t *testing.T) {
			t.Parallel()
			l := newPublishedLab(t, "outlived")
			ctx := t.Context()
			l.delete(t, l.config(ctx, NewWithT(t), "m-0"))
			l.expectReason(t, bootstrapv1.DeletingCondition, bootstrapv1.WaitingForMachineReason)
			eventually(t, func(g Gomega) {
				g.Expect(conditions.IsFalse(l.config(ctx, g, "m-0"), clusterv1.ReadyCondition)).To(BeTrue())
			})
			consistently(t, func(g Gomega) {
				g.Expect(l.dataSecrets(ctx, g)).To(HaveLen(1))
				g.Expect(l.infraEnvs(ctx, g)).To(HaveLen(1))
			})
			machine := l.machine(ctx, NewWithT(t), "m-0")
			l.delete(t, machine)
			l.expectGone(t, machine)
			l.expectNothingLeft(t)
		},
	)
	t.Run("BOOT-35 a config goes although Machine and Cluster have vanished", func(t *testing.T) {
		t.Parallel()
		l := newPublishedLab(t, "vanished")
		// Pausing keeps core from deleting them in order.
		cluster := l.cluster(t.Context(), NewWithT(t))
		l.change(t, cluster, func() { metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1.PausedAnnotation, "") })
		l.removeByForce(t, cluster)
		l.removeByForce(t, l.machine(t.Context(), NewWithT(t), "m-0"))
		l.expectNothingLeft(t)
	})
	t.Run("BOOT-35 a paused config does nothing about its deletion, and lets itself be removed by force", func(t *testing.T) {
		t.Parallel()
		l := newPublishedLab(t, "forced")
		g, ctx := NewWithT(t), t.Context()
		l.pause(t, true)
		l.expectReason(t, clusterv1.PausedCondition, clusterv1.PausedReason)
		config := l.config(ctx, g, "m-0")
		l.delete(t, config)
		eventually(t, func(g Gomega) { // The condition follows the generation, which a deletion raises.
			config = l.config(ctx, g, "m-0")
			g.Expect(conditions.Get(config, clusterv1.PausedCondition).ObservedGeneration).To(Equal(config.Generation))
		})
		infraEnvs := l.infraEnvs(ctx, g)
		g.Expect(infraEnvs).To(HaveLen(1))
		consistently(t, func(g Gomega) {
			g.Expect(l.config(ctx, g, "m-0").ResourceVersion).To(Equal(config.ResourceVersion))
			g.Expect(l.infraEnvs(ctx, g)).To(Equal(infraEnvs))
		})
		l.removeByForce(t, config)
		l.pause(t, false)
		machine := l.machine(ctx, g, "m-0")
		l.delete(t, machine)
		l.expectGone(t, machine)
		l.expectNothingLeft(t)
	})
	t.Run("BOOT-36 nothing waits for an installed cluster whose API is dead", func(t *testing.T) {
		t.Parallel()
		s := shared
		g, ctx := NewWithT(t), t.Context()
		g.Expect(s.Workload.Down(sandbox.InstallKey(s.doomed), 0)).To(Succeed())
		g.Expect(s.DeleteCluster(ctx, s.doomed, deleteTimeout)).To(Succeed())
		l := &lab{scene: s, namespace: s.doomed.Namespace}
		l.expectNothingLeft(t)
	})
}
