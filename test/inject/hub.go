// SPDX-License-Identifier: Apache-2.0

// Package inject has a management cluster in memory, and makes every call of a manager to it fail once. A test tells a story: what happens
// to a manager and the controllers around it. Every tells it without a fault, counts the calls, and tells it again and again, each time
// with another call that fails, or after which the manager ends. In the end everything has to be as it is without a fault.
package inject

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Hub is a management cluster in memory. Everybody but the manager of a story uses it as a client; the manager uses the one that Calls
// makes.
type Hub struct {
	client.WithWatch
	// Now is its clock.
	Now func() time.Time
	// Refuse makes it refuse to create an object; nil is never.
	Refuse func(client.Object) error
	// Values are those by which an index of the manager's cache finds an object; nil without indexes. It fails when there is no such index.
	Values func(o client.Object, field string) ([]string, error)
	// Changed is told of each object that is created, changed or deleted, as a watch is; nil when nobody watches.
	Changed func(client.Object)

	tracker clienttesting.ObjectTracker
	// withStatus are the types with a status of their own.
	withStatus map[reflect.Type]bool
	uids       int
	// changes counts the writes that have changed something.
	changes int
	// kinds are those of which there was ever an object.
	kinds map[schema.GroupVersionKind]bool
	// frozen are the kinds whose watch is closed, with their objects as the cache knows them; unseen has those that have changed since.
	frozen map[schema.GroupVersionKind][]runtime.Object
	unseen []client.Object
	// late: no watch tells anything.
	late bool
}

// NewHub returns a cluster with some objects. Those of the kinds of withStatus have a status of their own.
func NewHub(scheme *runtime.Scheme, now func() time.Time, withStatus, objects []client.Object) *Hub {
	// The default tracker keeps managed fields, which nothing here needs, and makes a REST mapper of the whole scheme for every write.
	h := &Hub{
		Now: now, tracker: clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()),
		kinds: map[schema.GroupVersionKind]bool{}, frozen: map[schema.GroupVersionKind][]runtime.Object{}, withStatus: map[reflect.Type]bool{},
	}
	for _, o := range withStatus {
		h.withStatus[reflect.TypeOf(o)] = true
	}
	h.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(h.tracker).WithStatusSubresource(withStatus...).
		WithInterceptorFuncs(h.calls()).WithObjects(objects...).Build()
	for _, o := range objects {
		h.kinds[h.kindOf(o)] = true
		var uid int
		if n, _ := fmt.Sscanf(string(o.GetUID()), "uid-%d", &uid); n == 1 {
			h.uids = max(h.uids, uid) // It is from another hub.
		}
	}
	return h
}

// calls are those that the fake client does otherwise than it would.
func (h *Hub) calls() interceptor.Funcs {
	return interceptor.Funcs{
		Create: h.create, Get: h.get, List: h.list, Delete: h.remove,
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return h.write(o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return h.write(o, func() error {
				return h.patch(o, patch, false, func() error { return c.Patch(ctx, o, patch, opts...) })
			})
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			return h.write(o, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return h.write(o, func() error {
				return h.patch(o, patch, true, func() error { return c.SubResource(sub).Patch(ctx, o, patch, opts...) })
			})
		},
	}
}

// create gives objects a UID and a time as an API server does.
func (h *Hub) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	if h.Refuse != nil {
		if err := h.Refuse(o); err != nil {
			return err
		}
	}
	if o.GetUID() == "" {
		h.uids++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", h.uids)))
		o.SetCreationTimestamp(metav1.NewTime(h.Now()))
	}
	if gvk := h.kindOf(o); !h.kinds[gvk] {
		h.kinds[gvk] = true
		if h.late {
			h.frozen[gvk] = nil
		}
	}
	return h.write(o, func() error { return c.Create(ctx, o, opts...) })
}

// remove heeds the UID of a precondition, which the fake client does not.
func (h *Hub) remove(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if p := options.Preconditions; p != nil && p.UID != nil {
		if stored := h.stored(o); stored != nil && stored.GetUID() != *p.UID {
			return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), fmt.Errorf("the UID is %s", stored.GetUID()))
		}
	}
	return h.write(o, func() error { return c.Delete(ctx, o, opts...) })
}

// write makes a write, and tells the watches if it has changed anything.
func (h *Hub) write(o client.Object, do func() error) error {
	if h.Changed == nil {
		return do()
	}
	before := h.stored(o)
	err := do()
	if after := h.stored(o); differ(before, after) {
		if after == nil {
			after = before
		}
		h.changes++
		h.tell(after)
	}
	return err
}

// differ compares two objects without their versions.
func differ(before, after client.Object) bool {
	if before == nil || after == nil {
		return before != after
	}
	if before.GetUID() != after.GetUID() {
		return true
	}
	version := after.GetResourceVersion()
	after.SetResourceVersion(before.GetResourceVersion())
	defer after.SetResourceVersion(version)
	return !equality.Semantic.DeepEqual(before, after)
}

// tell tells the watches of an object that has changed, later if the watch of its kind is closed.
func (h *Hub) tell(o client.Object) {
	if _, closed := h.frozen[h.kindOf(o)]; closed {
		h.unseen = append(h.unseen, o)
		return
	}
	h.Changed(o)
}

// stored is the object as it is in the cluster, nil when it does not exist.
func (h *Hub) stored(o client.Object) client.Object {
	gvr, _ := meta.UnsafeGuessKindToResource(h.kindOf(o))
	found, err := h.tracker.Get(gvr, o.GetNamespace(), o.GetName())
	if err != nil {
		return nil
	}
	object, _ := found.(client.Object)
	return object
}

func (h *Hub) kindOf(o runtime.Object) schema.GroupVersionKind {
	gvk, err := apiutil.GVKForObject(o, h.Scheme())
	if err != nil {
		panic(err)
	}
	return gvk
}

// closeWatch makes the cache show the objects of a kind as they are now, until openWatches.
func (h *Hub) closeWatch(o client.Object) {
	h.frozen[h.kindOf(o)] = h.items(h.kindOf(o))
}

// Objects are all objects, from which another hub can be made.
func (h *Hub) Objects() []client.Object { return h.all() }

// Delay makes the cache show all objects as they are now, until CatchUp.
func (h *Hub) Delay() {
	h.late = true
	for gvk := range h.kinds {
		h.frozen[gvk] = h.items(gvk)
	}
}

// CatchUp tells the watches of all that has changed since Delay.
func (h *Hub) CatchUp() {
	h.late = false
	h.openWatches()
}

// openWatches tells of all that has changed while a watch was closed.
func (h *Hub) openWatches() {
	clear(h.frozen)
	unseen := h.unseen
	h.unseen = nil
	for _, o := range unseen {
		h.Changed(o)
	}
}

// Collect is garbage collection: it deletes the objects all of whose owners are gone. Owners of the kinds of assumed are never gone.
func (h *Hub) Collect(t *testing.T, assumed ...string) {
	t.Helper()
	uids := map[types.UID]bool{}
	all := h.all()
	for _, o := range all {
		uids[o.GetUID()] = true
	}
	for _, o := range all {
		if o.GetDeletionTimestamp().IsZero() && orphaned(o, uids, assumed) {
			if err := client.IgnoreNotFound(h.Delete(t.Context(), o)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func orphaned(o client.Object, uids map[types.UID]bool, assumed []string) bool {
	owners := o.GetOwnerReferences()
	for _, owner := range owners {
		if uids[owner.UID] {
			return false
		}
		for _, kind := range assumed {
			if owner.Kind == kind {
				return false
			}
		}
	}
	return len(owners) > 0
}
