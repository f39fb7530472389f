// SPDX-License-Identifier: Apache-2.0

// Package indextest gives tests clients that find objects by the fields of package index, as the manager's cache does.
package indextest

import (
	"context"
	"fmt"
	"reflect"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Scheme has the kinds that are found by fields, and CustomResourceDefinitions.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{
		apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, assisted.AddToScheme, bmov1alpha1.AddToScheme,
	}
	if err := kinds.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

// Builder builds a fake client with all fields.
func Builder(objects ...client.Object) *fake.ClientBuilder {
	builder := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...)
	for _, field := range index.Fields() {
		builder = builder.WithIndex(field.Kind, field.Name, field.Values)
	}
	return builder
}

// Reader reads objects from memory, as quickly as the cache does, and counts those that it returns.
type Reader struct {
	// Returned is the number of objects that were returned.
	Returned int

	scheme  *runtime.Scheme
	objects map[schema.GroupVersionKind]map[client.ObjectKey]client.Object
	// found are the keys of the objects that have a value in a field.
	found map[place]sets.Set[client.ObjectKey]
}

// place is a value of a field, or an empty field for all objects of a kind, in a namespace.
type place struct {
	kind                    schema.GroupVersionKind
	field, namespace, value string
}

// NewReader reads these objects.
func NewReader(objects ...client.Object) *Reader {
	r := &Reader{
		scheme:  Scheme(),
		objects: map[schema.GroupVersionKind]map[client.ObjectKey]client.Object{},
		found:   map[place]sets.Set[client.ObjectKey]{},
	}
	for _, o := range objects {
		r.Put(o)
	}
	return r
}

// Put adds an object, or replaces the one of its name.
func (r *Reader) Put(o client.Object) {
	kind, key := r.kindOf(o), client.ObjectKeyFromObject(o)
	if r.objects[kind] == nil {
		r.objects[kind] = map[client.ObjectKey]client.Object{}
	}
	if before := r.objects[kind][key]; before != nil {
		for _, at := range r.placesOf(kind, before) {
			r.found[at].Delete(key)
		}
	}
	r.objects[kind][key] = o
	for _, at := range r.placesOf(kind, o) {
		if r.found[at] == nil {
			r.found[at] = sets.New[client.ObjectKey]()
		}
		r.found[at].Insert(key)
	}
}

func (r *Reader) placesOf(kind schema.GroupVersionKind, o client.Object) []place {
	places := []place{{kind: kind, namespace: o.GetNamespace()}}
	for _, field := range index.Fields() {
		if r.kindOf(field.Kind) != kind {
			continue
		}
		for _, value := range field.Values(o) {
			places = append(places, place{kind: kind, field: field.Name, namespace: o.GetNamespace(), value: value})
		}
	}
	return places
}

func (r *Reader) kindOf(o runtime.Object) schema.GroupVersionKind {
	kind, err := apiutil.GVKForObject(o, r.scheme)
	if err != nil {
		panic(err)
	}
	return kind
}

// Get implements client.Reader.
func (r *Reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := r.kindOf(into)
	o := r.objects[kind][key]
	if o == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	r.Returned++
	if metadata, ok := into.(*metav1.PartialObjectMetadata); ok {
		metadata.Name, metadata.Labels = o.GetName(), o.GetLabels()
		return nil
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader, for lists of one namespace by at most one field.
func (r *Reader) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	kind := r.kindOf(into)
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	at := place{kind: kind, namespace: options.Namespace}
	if options.FieldSelector != nil {
		requirement := options.FieldSelector.Requirements()[0]
		at.field, at.value = requirement.Field, requirement.Value
	}
	if options.LabelSelector != nil {
		return fmt.Errorf("%s are listed by labels, which reads the whole namespace", kind.Kind)
	}
	var items []runtime.Object
	for key := range r.found[at] {
		if options.Limit > 0 && int64(len(items)) >= options.Limit {
			break
		}
		items = append(items, r.objects[kind][key])
	}
	r.Returned += len(items)
	return meta.SetList(into, items)
}
