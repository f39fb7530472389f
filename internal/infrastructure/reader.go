// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"

	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// RetryNotAllowed is how often an object of a kind that the manager may not read is tried again: roles are not watched.
const RetryNotAllowed = time.Minute

// NotAllowedError says that no role of the manager's allows it to read a kind.
type NotAllowedError struct {
	// Resource is the plural name and the group of the kind.
	Resource string
	// Label is the label of ClusterRoles by which a user extends the manager's role.
	Label string
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("the manager may not list %s: allow it in a ClusterRole with the label %s: \"true\"", e.Resource, e.Label)
}

// Reader reads infrastructure objects of kinds that users choose. They come from the cache, but only of kinds that the manager may list:
// for any other one, the cache would start an informer that is refused for ever, and a read from it would wait in vain.
type Reader struct {
	// Cached is the manager's client.
	Cached client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Namespace is the only namespace that the manager watches; empty is all.
	Namespace string
	// Label is the label of ClusterRoles by which a user extends the manager's role.
	Label string

	// allowed has the kinds that the API server let the manager list once. A role that is withdrawn later leaves a filled cache behind, from
	// which reads do not wait.
	allowed sync.Map
}

// Get reads the object, as the function Get does. The error is a *NotAllowedError when no role allows the manager to list its kind.
func (r *Reader) Get(
	ctx context.Context, ref clusterv1.ContractVersionedObjectReference, namespace string,
) (*unstructured.Unstructured, error) {
	return Get(ctx, guarded{Reader: r.Cached, r: r}, ref, namespace)
}

// guarded asks for the permission before it reads an object of a provider from the cache.
type guarded struct {
	client.Reader
	r *Reader
}

// Get reads from the cache.
func (g guarded) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		if err := g.r.mayList(ctx, u.GroupVersionKind()); err != nil {
			return err
		}
	}
	return g.Reader.Get(ctx, key, o, opts...)
}

// mayList asks the API server for one object of the kind, once for each kind that is allowed. The manager's own role names Metal3's.
func (r *Reader) mayList(ctx context.Context, gvk schema.GroupVersionKind) error {
	if metal3.IsMachineOrTemplate(gvk.GroupKind()) {
		return nil
	}
	if _, known := r.allowed.Load(gvk); known {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := r.Live.List(ctx, list, client.InNamespace(r.Namespace), client.Limit(1))
	if apierrors.IsForbidden(err) {
		return &NotAllowedError{Resource: contract.CalculateCRDName(gvk.Group, gvk.Kind), Label: r.Label}
	}
	if err != nil {
		return fmt.Errorf("find out whether the manager may list %s: %w", gvk.GroupKind(), err)
	}
	r.allowed.Store(gvk, true)
	return nil
}
