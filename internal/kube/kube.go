// SPDX-License-Identifier: Apache-2.0

// Package kube has the small things that every controller does with the API server, once: read an object that may not exist, delete the
// very object that was read, map an event to requests, and tell owners. Errors and log lines name the object, so callers need not; of
// a patch they say what it was for.
package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kind is what messages call the kind of an object. A typed object does not carry its kind once it was read; its Go type has that name.
func Kind(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

// Name is what messages call an object: its kind, namespace and name.
func Name(o client.Object) string { return fmt.Sprintf("%s %s", Kind(o), klog.KObj(o)) }

// Get reads an object and reports whether it exists.
func Get(ctx context.Context, reader client.Reader, key client.ObjectKey, o client.Object, opts ...client.GetOption) (bool, error) {
	kind := Kind(o)
	err := reader.Get(ctx, key, o, opts...)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %s %s: %w", kind, klog.KRef(key.Namespace, key.Name), err)
	}
	return err == nil, nil
}

// GetOrNil reads an object of a type, as in GetOrNil[clusterv1.Machine](…); it returns nil when the object does not exist.
func GetOrNil[T any, P interface {
	*T
	client.Object
}](ctx context.Context, reader client.Reader, key client.ObjectKey, opts ...client.GetOption) (P, error) {
	o := P(new(T))
	if exists, err := Get(ctx, reader, key, o, opts...); err != nil || !exists {
		return nil, err
	}
	return o, nil
}

// Delete deletes an object, unless that was asked for before. It deletes the very object that was read: a stale cache must not delete a
// successor of the same name. The reason is for the log.
func Delete(ctx context.Context, c client.Client, o client.Object, reason string) error {
	uid := o.GetUID()
	return remove(ctx, c, o, reason, client.Preconditions{UID: &uid})
}

// DeleteUnchanged deletes an object as Delete does, and fails with a conflict if it was changed after it was read.
func DeleteUnchanged(ctx context.Context, c client.Client, o client.Object, reason string) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return remove(ctx, c, o, reason, client.Preconditions{UID: &uid, ResourceVersion: &version})
}

func remove(ctx context.Context, c client.Client, o client.Object, reason string, preconditions client.Preconditions) error {
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Deleting object", "kind", Kind(o), "object", klog.KObj(o), "reason", reason)
	if err := c.Delete(ctx, o, preconditions); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", Name(o), err)
	}
	return nil
}

// Patch writes what change does to an object, of which the caller keeps what was read.
func Patch[T client.Object](ctx context.Context, c client.Client, o T, change func(T)) error {
	_, err := patch(ctx, c, o, change)
	return err
}

// PatchUnchanged patches as Patch does, and fails with a conflict if the object was changed after it was read.
func PatchUnchanged[T client.Object](ctx context.Context, c client.Client, o T, change func(T)) error {
	_, err := Rewrite(ctx, c, o, change)
	return err
}

// Rewrite patches as PatchUnchanged does, and returns what the API server made of the object.
func Rewrite[T client.Object](ctx context.Context, c client.Client, o T, change func(T)) (T, error) {
	return patch(ctx, c, o, change, client.MergeFromWithOptimisticLock{})
}

func patch[T client.Object](ctx context.Context, c client.Client, o T, change func(T), options ...client.MergeFromOption) (T, error) {
	changed, ok := o.DeepCopyObject().(T)
	if !ok {
		return changed, fmt.Errorf("the copy of %s is a %T", Name(o), changed)
	}
	change(changed)
	return changed, c.Patch(ctx, changed, client.MergeFromWithOptions(o, options...))
}

// Requests maps an event to the objects of a list that keep accepts, and must not change: they are those of the cache. An event has nobody
// to return an error to, so the log tells of it.
func Requests[T client.Object](
	ctx context.Context, reader client.Reader, list client.ObjectList, keep func(T) bool, opts ...client.ListOption,
) []reconcile.Request {
	var requests []reconcile.Request
	err := reader.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(T)
			if !ok {
				return fmt.Errorf("%T has an item %T", list, item)
			}
			if keep(o) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the objects that an event concerns", "kind", Kind(list))
	}
	return requests
}

// Every accepts every object, as in Requests(ctx, reader, &clusterv1.MachineList{}, Every[*clusterv1.Machine]).
func Every[T client.Object](T) bool { return true }

// OwnedBy reports whether the owner is among the owners of the object.
func OwnedBy(o, owner metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
}
