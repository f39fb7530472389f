// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
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
	if _, ok := list.(runtime.Unstructured); ok {
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
		o, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		if selected, err := inIndex(o, options.FieldSelector); err != nil || !selected {
			if err != nil {
				return err
			}
			continue
		}
		wanted = append(wanted, item.DeepCopyObject())
	}
	return meta.SetList(list, wanted)
}

// inIndex reports whether the manager's cache would find an object by a field; without that index it would fail.
func inIndex(o client.Object, selector fields.Selector) (bool, error) {
	if selector == nil {
		return true, nil
	}
	for _, wanted := range selector.Requirements() {
		i := slices.IndexFunc(indexes, func(i index.Index) bool {
			return reflect.TypeOf(i.Kind) == reflect.TypeOf(o) && i.Field == wanted.Field
		})
		if i < 0 {
			return false, fmt.Errorf("the cache has no index of %T by %s", o, wanted.Field)
		}
		if !slices.Contains(indexes[i].Values(o), wanted.Value) {
			return false, nil
		}
	}
	return true, nil
}

// indexes are those of the manager's cache.
var indexes = append(index.All(), index.Agents())

// assign makes into what from is. Objects that are read from an API server have no kind.
func assign(into client.Object, from runtime.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem())
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
}
