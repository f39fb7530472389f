// SPDX-License-Identifier: Apache-2.0

package manager

import "k8s.io/apimachinery/pkg/fields"

// inNamespace makes informers of namespaced kinds ask for the objects of one namespace only, and those of other kinds for all objects:
// controller-runtime looks in the field selector for a namespace to ask in, and the API server is sent the selector's text, which is empty.
//
// cache.Options.DefaultNamespaces would do the same, but its informers are made for several namespaces, and Cluster API's guard against
// stale caches (capicontrollerutil.Controller.DeferNextReconcileUntilCacheUpToDate) cannot look into those: every pass that follows a write
// fails with "failed to cast … informer to SharedIndexInformer".
type inNamespace struct {
	fields.Selector
	namespace string
}

func newInNamespace(namespace string) fields.Selector {
	return inNamespace{Selector: fields.Everything(), namespace: namespace}
}

// Empty reports that something is selected, without which nobody asks RequiresExactMatch.
func (s inNamespace) Empty() bool { return false }

// RequiresExactMatch returns the namespace.
func (s inNamespace) RequiresExactMatch(field string) (string, bool) {
	return s.namespace, field == "metadata.namespace"
}

// DeepCopySelector returns itself: it never changes.
func (s inNamespace) DeepCopySelector() fields.Selector { return s }
