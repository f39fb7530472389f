// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// vanish deletes an object past the reconciler.
func (w *world) vanish(o client.Object) {
	w.t.Helper()
	w.must(w.client.Delete(context.Background(), o))
}

func (w *world) imageSets() []hivev1.ClusterImageSet {
	w.t.Helper()
	list := &hivev1.ClusterImageSetList{}
	w.must(w.client.List(context.Background(), list))
	return list.Items
}

// TestClusterImageSetIsMadeAnew: one that is deleted while the objects of the installation exist, at every stage of it.
func TestClusterImageSetIsMadeAnew(t *testing.T) {
	for stage := range 5 {
		t.Run(fmt.Sprintf("at stage %d", stage), func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 3, 0)
			w.run(nil, func() bool { return w.stage >= stage && w.install() != nil })
			former := w.imageSets()
			g.Expect(former).To(HaveLen(1))
			w.vanish(&former[0])
			w.reconcile()
			anew := w.imageSets()
			g.Expect(anew).To(HaveLen(1))
			g.Expect(anew[0].Spec).To(Equal(former[0].Spec))
			g.Expect(anew[0].UID).NotTo(Equal(former[0].UID))
			w.run(nil, w.available)
		})
	}
	t.Run("but none that the user has named", func(t *testing.T) {
		w := newWorld(t, 3, 0)
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.ImageSetRef.Name = "mine" })
		w.run(nil, w.available)
		w.reconcile()
		NewWithT(t).Expect(w.imageSets()).To(BeEmpty())
	})
}
