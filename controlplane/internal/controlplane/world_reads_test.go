// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// reads answers as the fake client does, with copies of the objects that are stored. The fake client writes every object that is read as
// JSON and parses it again, which takes most of the time of a story of some thousand steps.
type reads struct {
	tracker clienttesting.ObjectTracker
	scheme  *runtime.Scheme
}

func (r reads) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(runtime.Unstructured); ok {
		return c.Get(ctx, key, o, opts...)
	}
	gvk, err := apiutil.GVKForObject(o, r.scheme)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	stored, err := r.tracker.Get(gvr, key.Namespace, key.Name)
	if err != nil || reflect.TypeOf(stored) != reflect.TypeOf(o) {
		return c.Get(ctx, key, o, opts...)
	}
	assign(o, stored.DeepCopyObject())
	return nil
}

func (r reads) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if _, ok := list.(runtime.Unstructured); ok || options.FieldSelector != nil {
		return c.List(ctx, list, opts...)
	}
	gvk, err := apiutil.GVKForObject(list, r.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	stored, err := r.tracker.List(gvr, gvk, options.Namespace)
	if err != nil || reflect.TypeOf(stored) != reflect.TypeOf(list) {
		return c.List(ctx, list, opts...)
	}
	items, err := meta.ExtractList(stored)
	if err != nil {
		return err
	}
	var wanted []runtime.Object
	for _, item := range items {
		o, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		if options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
			wanted = append(wanted, item.DeepCopyObject())
		}
	}
	return meta.SetList(list, wanted)
}

// assign makes into what from is. Objects that are read from an API server have no kind.
func assign(into client.Object, from runtime.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem())
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
}
