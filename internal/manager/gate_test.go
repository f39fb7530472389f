// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watches counts the sources that were started.
type watches int

func (w *watches) Watch(source.TypedSource[reconcile.Request]) error {
	*w++
	return nil
}

// TestGate: a CRD appears, disappears and appears again; its kind is watched once, and every change wakes the controllers.
func TestGate(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	woken := make(chan event.GenericEvent, 1)
	gate := &Gate{client: c, served: map[string]bool{}, pending: map[string][]func() error{}, resync: []chan event.GenericEvent{woken}}
	var started watches
	before := -1
	g.Expect(gate.When("a", func() error { before = int(started); return nil })).To(Succeed())
	g.Expect(gate.Watch(&started, "a", nil)).To(Succeed())
	pass := func() {
		_, err := gate.reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
		g.Expect(err).NotTo(HaveOccurred())
	}
	crd := func() *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{
				Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
					{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
				},
			},
		}
	}

	pass()
	g.Expect(gate.Missing("a", "b")).To(Equal([]string{"a", "b"}))
	g.Expect(woken).NotTo(Receive())
	for range 2 {
		g.Expect(c.Create(context.Background(), crd())).To(Succeed())
		pass()
		g.Expect(gate.Missing("a")).To(BeEmpty())
		g.Expect(woken).To(Receive())
		pass()
		g.Expect(woken).NotTo(Receive())
		g.Expect(c.Delete(context.Background(), crd())).To(Succeed())
		pass()
		g.Expect(gate.Missing("a")).To(Equal([]string{"a"}))
		g.Expect(woken).To(Receive())
	}
	g.Expect(int(started)).To(Equal(1))
	g.Expect(before).To(Equal(0), "what was to be done first was")
}
