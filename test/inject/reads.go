// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// get answers as the fake client does, with a copy of the object that is stored. The fake client writes every object that is read as JSON
// and parses it again, which takes most of the time of a story of some thousand steps.
func (h *Hub) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	gvr, _ := meta.UnsafeGuessKindToResource(h.kindOf(o))
	stored, err := h.tracker.Get(gvr, key.Namespace, key.Name)
	if err != nil || reflect.TypeOf(stored) != reflect.TypeOf(o) {
		return c.Get(ctx, key, o, opts...)
	}
	assign(o, stored)
	return nil
}

// list does for lists what get does for objects.
func (h *Hub) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if _, ok := list.(runtime.Unstructured); ok {
		return c.List(ctx, list, opts...)
	}
	gvk := kindOfItems(h.kindOf(list))
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	stored, err := h.tracker.List(gvr, gvk, options.Namespace)
	if err != nil || reflect.TypeOf(stored) != reflect.TypeOf(list) {
		return c.List(ctx, list, opts...)
	}
	items, err := meta.ExtractList(stored)
	if err != nil {
		return err
	}
	return h.setItems(list, items, options)
}

// setItems fills a list with copies of the items that the options select.
func (h *Hub) setItems(list client.ObjectList, items []runtime.Object, options *client.ListOptions) error {
	var wanted []runtime.Object
	for _, item := range items {
		o, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		selected, err := h.selects(options, o)
		if err != nil {
			return err
		}
		if selected {
			wanted = append(wanted, item.DeepCopyObject())
		}
	}
	return meta.SetList(list, wanted)
}

// selects reports whether the options of a list select an object, by the indexes that the manager's cache has too.
func (h *Hub) selects(options *client.ListOptions, o client.Object) (bool, error) {
	if options.Namespace != "" && o.GetNamespace() != options.Namespace ||
		options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
		return false, nil
	}
	if options.FieldSelector == nil {
		return true, nil
	}
	if h.Values == nil {
		return false, fmt.Errorf("nothing is indexed, and %T is listed by %s", o, options.FieldSelector)
	}
	for _, wanted := range options.FieldSelector.Requirements() {
		values, err := h.Values(o, wanted.Field)
		if err != nil || !slices.Contains(values, wanted.Value) {
			return false, err
		}
	}
	return true, nil
}

// kindOfItems is the kind of the items of a list.
func kindOfItems(list schema.GroupVersionKind) schema.GroupVersionKind {
	list.Kind = strings.TrimSuffix(list.Kind, "List")
	return list
}

// assign makes into what from is. Objects that are read from an API server have no kind, but for those without a type.
func assign(into client.Object, from runtime.Object) {
	kind := into.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
	if _, ok := into.(runtime.Unstructured); !ok {
		kind = schema.GroupVersionKind{}
	}
	into.GetObjectKind().SetGroupVersionKind(kind)
}

// cachedGet reads from the cache, which does not know what a closed watch has not told.
func (h *Hub) cachedGet(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	items, closed := h.frozen[h.kindOf(o)]
	if _, metadata := o.(*metav1.PartialObjectMetadata); !closed || metadata { // Only CRDs are read so, which never change here.
		return h.Get(ctx, key, o, opts...)
	}
	for _, item := range items {
		if of, err := meta.Accessor(item); err == nil && of.GetName() == key.Name && of.GetNamespace() == key.Namespace {
			assign(o, item)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: h.kindOf(o).Kind}, key.Name)
}

// cachedList is cachedGet for lists.
func (h *Hub) cachedList(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	items, closed := h.frozen[kindOfItems(h.kindOf(list))]
	if !closed {
		return h.List(ctx, list, opts...)
	}
	return h.setItems(list, items, (&client.ListOptions{}).ApplyOptions(opts))
}

// all are the objects of the cluster, of all kinds.
func (h *Hub) all() []client.Object {
	var all []client.Object
	for gvk := range h.kinds {
		for _, item := range h.items(gvk) {
			if o, ok := item.(client.Object); ok {
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b client.Object) int { return strings.Compare(h.nameOf(a), h.nameOf(b)) })
	return all
}

// items are the objects of a kind.
func (h *Hub) items(gvk schema.GroupVersionKind) []runtime.Object {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	if listed := gvk.GroupVersion().WithKind(gvk.Kind + "List"); !h.Scheme().Recognizes(listed) {
		h.Scheme().AddKnownTypeWithName(listed, &unstructured.UnstructuredList{}) // As the fake client does when it lists such a kind.
	}
	list, err := h.tracker.List(gvr, gvk, metav1.NamespaceAll)
	if err != nil {
		panic(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		panic(err)
	}
	return items
}

// nameOf names an object by its kind too.
func (h *Hub) nameOf(o client.Object) string {
	return h.kindOf(o).Kind + " " + o.GetNamespace() + "/" + o.GetName()
}
