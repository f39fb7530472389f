// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// completed is a world whose installation is complete and recorded, and whose API has not answered.
func completed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1, 0)
	w.run(nil, func() bool {
		w.api.ID = ""
		return w.controlPlane().Annotations[controlplanev1.InstalledClusterAnnotation] != ""
	})
	w.api.ID, w.api.Last, w.api.Reported = "", time.Time{}, nil
	return w
}

// TestVanishedAfterTheInstallation: an AgentClusterInstall that is deleted once the installed cluster is recorded starts no installation.
// The cluster is imported, whether its API has answered before or not (DESIGN D22).
func TestVanishedAfterTheInstallation(t *testing.T) {
	imported := func(g *WithT, w *world, before map[string]types.UID) {
		for range 4 {
			w.importService()
			w.reconcile()
		}
		g.Expect(w.initialized()).To(BeTrue())
		g.Expect(w.deployment().Spec.Installed && w.deployment().Spec.PreserveOnDelete).To(BeTrue())
		g.Expect(w.deployment().Spec.ClusterMetadata.ClusterID).To(Equal(clusterID))
		g.Expect(w.install().Spec.ClusterMetadata).To(Equal(w.deployment().Spec.ClusterMetadata))
		g.Expect(w.install().Spec.HoldInstallation).To(BeTrue(), "as every imported one")
		g.Expect(w.attempt()).To(Equal("1"))
		g.Expect(w.uidsOfMachines()).To(Equal(before))
	}

	t.Run("before its API has answered", func(t *testing.T) {
		g := NewWithT(t)
		w := completed(t)
		before := w.uidsOfMachines()
		w.vanish(w.install())
		w.vanish(w.kubeconfig())
		for range 3 {
			w.reconcile()
		}
		g.Expect(w.install()).To(BeNil(), "nothing may be installed")
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.ImportingReason))
		g.Expect(w.deployment().Spec.Installed).To(BeFalse(), "the API has not confirmed it")
		g.Expect(w.published()).To(ContainSubstring("installer-completed"), "it is published from the installer's Secret")
		w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
		imported(g, w, before)
	})

	t.Run("together with its ClusterDeployment", func(t *testing.T) {
		g := NewWithT(t)
		w := completed(t)
		before := w.uidsOfMachines()
		w.vanish(w.install())
		w.vanish(w.deployment())
		w.vanish(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-admin-kubeconfig"}}) // As garbage collection does.
		w.reconcile()
		w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
		imported(g, w, before)
	})

	t.Run("of a running cluster", func(t *testing.T) {
		w := installedWorld(t)
		before := w.uidsOfMachines()
		w.vanish(w.install())
		imported(NewWithT(t), w, before)
	})

	t.Run("the API is that of another cluster", func(t *testing.T) {
		g := NewWithT(t)
		w := completed(t)
		w.vanish(w.install())
		w.api.ID = "another"
		for range 3 {
			w.reconcile()
		}
		g.Expect(w.install()).To(BeNil())
		g.Expect(w.deployment().Spec.Installed).To(BeFalse())
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.ClusterMismatchReason))
	})
}
