// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var errDown = errors.New("the API server is down")

// down is a client whose API server answers nothing.
func down() client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errDown
		},
		List:   func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errDown },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errDown },
	})
}

// strict is a client that refuses to delete an object of another UID, as API servers do and the fake client does not.
func strict(objects ...client.Object) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			current, ok := o.DeepCopyObject().(client.Object)
			if !ok {
				return errDown
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
				return err
			}
			asked := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
			if asked == nil || asked.UID == nil || *asked.UID != current.GetUID() {
				return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, o.GetName(), errors.New("the UID differs"))
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
}

func TestName(t *testing.T) {
	g := NewWithT(t)
	typeless := &unstructured.Unstructured{}
	typeless.SetGroupVersionKind(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Metal3Machine"})
	typeless.SetNamespace("ns")
	typeless.SetName("m-0")
	g.Expect(Name(typeless)).To(Equal("Metal3Machine ns/m-0"))
	g.Expect(Name(configMap("a"))).To(Equal("ConfigMap ns/a"))
	g.Expect(Name(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n-0"}})).To(Equal("Node n-0"), "a Node has no namespace")
}

func TestGet(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithObjects(configMap("a")).Build()

	o, err := GetOrNil[corev1.ConfigMap](t.Context(), c, client.ObjectKey{Namespace: "ns", Name: "a"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Name).To(Equal("a"))

	o, err = GetOrNil[corev1.ConfigMap](t.Context(), c, client.ObjectKey{Namespace: "ns", Name: "b"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o).To(BeNil())

	o, err = GetOrNil[corev1.ConfigMap](t.Context(), down(), client.ObjectKey{Namespace: "ns", Name: "a"})
	g.Expect(err).To(And(MatchError("read ConfigMap ns/a: the API server is down"), MatchError(errDown)))
	g.Expect(o).To(BeNil())

	exists, err := Get(t.Context(), c, client.ObjectKey{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{})
	g.Expect(exists, err).To(BeTrue())
}

func TestDelete(t *testing.T) {
	stored := configMap("a")
	successor := configMap("a")
	successor.UID = "uid-of-another"
	leaving := configMap("a")
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Now()), []string{"example.com/held"}
	older := configMap("a")
	older.ResourceVersion = "1"
	for name, test := range map[string]struct {
		client client.Client
		delete func(context.Context, client.Client, client.Object, string) error
		object *corev1.ConfigMap
		fails  func(error) bool
		stays  bool
	}{
		"exists":                           {delete: Delete, object: stored},
		"of the same name":                 {delete: Delete, object: successor, fails: apierrors.IsConflict, stays: true},
		"gone":                             {delete: Delete, object: configMap("b"), stays: true},
		"was deleted before":               {client: down(), delete: Delete, object: leaving, stays: true},
		"no answer":                        {client: down(), delete: Delete, object: stored, fails: isDown, stays: true},
		"changed":                          {delete: Delete, object: older},
		"changed, and it matters":          {delete: DeleteUnchanged, object: older, fails: apierrors.IsConflict, stays: true},
		"of the same name, and it matters": {delete: DeleteUnchanged, object: successor, fails: apierrors.IsConflict, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := strict(configMap("a"))
			key := client.ObjectKeyFromObject(stored)
			if test.object.ResourceVersion == "" {
				current := &corev1.ConfigMap{}
				g.Expect(c.Get(t.Context(), key, current)).To(Succeed())
				test.object.ResourceVersion = current.ResourceVersion
			}
			used := test.client
			if used == nil {
				used = c
			}
			err := test.delete(t.Context(), used, test.object, "nobody needs it")
			if test.fails == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring("delete ConfigMap ns/a: ")))
				g.Expect(test.fails(err)).To(BeTrue(), "%v", err)
			}
			exists, err := Get(t.Context(), c, key, &corev1.ConfigMap{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(exists).To(Equal(test.stays))
		})
	}
}

func isDown(err error) bool { return errors.Is(err, errDown) }

func TestPatch(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithObjects(configMap("a")).Build()
	read, err := GetOrNil[corev1.ConfigMap](t.Context(), c, client.ObjectKey{Namespace: "ns", Name: "a"})
	g.Expect(err).NotTo(HaveOccurred())
	set := func(value string) func(*corev1.ConfigMap) {
		return func(o *corev1.ConfigMap) { o.Data = map[string]string{"key": value} }
	}
	stored := func() string {
		o, err := GetOrNil[corev1.ConfigMap](t.Context(), c, client.ObjectKeyFromObject(read))
		g.Expect(err).NotTo(HaveOccurred())
		return o.Data["key"]
	}
	g.Expect(PatchUnchanged(t.Context(), c, read, set("first"))).To(Succeed())
	g.Expect(stored()).To(Equal("first"))
	g.Expect(read.Data).To(BeEmpty(), "what was read stays as it was read")
	g.Expect(apierrors.IsConflict(PatchUnchanged(t.Context(), c, read, set("second")))).To(BeTrue())
	g.Expect(stored()).To(Equal("first"))
	g.Expect(Patch(t.Context(), c, read, set("third"))).To(Succeed())
	g.Expect(stored()).To(Equal("third"))
}

func TestRequests(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithObjects(configMap("a"), configMap("b")).Build()
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
	}
	isB := func(o *corev1.ConfigMap) bool { return o.Name == "b" }
	g.Expect(Requests(t.Context(), c, &corev1.ConfigMapList{}, Every[*corev1.ConfigMap])).To(ConsistOf(request("a"), request("b")))
	g.Expect(Requests(t.Context(), c, &corev1.ConfigMapList{}, isB)).To(ConsistOf(request("b")))
	g.Expect(Requests(t.Context(), c, &corev1.ConfigMapList{}, isB, client.InNamespace("other"))).To(BeEmpty())
	g.Expect(Requests(t.Context(), down(), &corev1.ConfigMapList{}, isB)).To(BeEmpty())
	g.Expect(Requests(t.Context(), c, &corev1.ConfigMapList{}, Every[*corev1.Secret])).To(BeEmpty(), "a list of another kind")
}

func TestOwnedBy(t *testing.T) {
	g := NewWithT(t)
	owned := configMap("a")
	owned.OwnerReferences = []metav1.OwnerReference{{UID: "uid-x"}, {UID: "uid-b"}}
	g.Expect(OwnedBy(owned, configMap("b"))).To(BeTrue())
	g.Expect(OwnedBy(owned, configMap("c"))).To(BeFalse())
}
