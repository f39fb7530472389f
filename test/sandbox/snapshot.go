// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// churning are resources that Kubernetes or leader election write by themselves.
var churning = []string{"events", "leases"}

// pullSecretLabels are what assisted-service puts on a pull secret that it reads, and leaves there (ASSISTED 1.1).
var pullSecretLabels = []string{"agent-install.openshift.io/watch", "cluster.open-cluster-management.io/backup"}

// blockMoveAnnotation stays on a BareMetalHost that CAPM3 has released (METAL3 M3-50).
const blockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"

// concurrentLists is how many resources are listed at once. The API server waits up to a tenth of a second for etcd before it lists
// anything, so that one after the other takes long.
const concurrentLists = 16

// objectKey identifies an object. The UID tells a recreated object from the one before.
type objectKey struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
	uid       string
}

func (k objectKey) String() string {
	return strings.Trim(fmt.Sprintf("%s %s/%s", k.resource.GroupResource(), k.namespace, k.name), "/")
}

// Snapshot is every object of a cluster or of a namespace, but for Events and Leases.
type Snapshot struct {
	objects map[objectKey]*unstructured.Unstructured
}

// TakeSnapshot lists all resources of a cluster.
func TakeSnapshot(ctx context.Context, config *rest.Config) (*Snapshot, error) {
	config = unlimited(config)
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the snapshot: %w", err)
	}
	return takeSnapshot(config, func(resource listableResource) (*unstructured.UnstructuredList, error) {
		return objects.Resource(resource.GroupVersionResource).List(ctx, metav1.ListOptions{})
	})
}

// TakeSnapshotOf lists what a namespace holds, and the cluster-scoped objects that are named after it (DESIGN D13), of those the metadata
// only: the definitions of all kinds are among them.
func TakeSnapshotOf(ctx context.Context, config *rest.Config, namespace string) (*Snapshot, error) {
	config = unlimited(config)
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the snapshot: %w", err)
	}
	names, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the snapshot: %w", err)
	}
	return takeSnapshot(config, func(resource listableResource) (*unstructured.UnstructuredList, error) {
		if resource.namespaced {
			return objects.Resource(resource.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		}
		list, err := names.Resource(resource.GroupVersionResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		named := &unstructured.UnstructuredList{}
		for i := range list.Items {
			item := &list.Items[i]
			if item.Name == namespace || strings.HasPrefix(item.Name, namespace+".") {
				object := unstructured.Unstructured{Object: map[string]any{}}
				object.SetName(item.Name)
				object.SetUID(item.UID)
				named.Items = append(named.Items, object)
			}
		}
		return named, nil
	})
}

func takeSnapshot(config *rest.Config, list func(listableResource) (*unstructured.UnstructuredList, error)) (*Snapshot, error) {
	resources, err := listable(config)
	if err != nil {
		return nil, err
	}
	found := make([]*unstructured.UnstructuredList, len(resources))
	var lists errgroup.Group
	lists.SetLimit(concurrentLists)
	for i, resource := range resources {
		lists.Go(func() error {
			items, err := list(resource)
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				items, err = &unstructured.UnstructuredList{}, nil
			}
			if err != nil {
				return fmt.Errorf("cannot list %s: %w", resource, err)
			}
			found[i] = items
			return nil
		})
	}
	if err := lists.Wait(); err != nil {
		return nil, err
	}
	snapshot := &Snapshot{objects: map[objectKey]*unstructured.Unstructured{}}
	for i, resource := range resources {
		for j := range found[i].Items {
			item := &found[i].Items[j]
			snapshot.objects[objectKey{resource.GroupVersionResource, item.GetNamespace(), item.GetName(), string(item.GetUID())}] = item
		}
	}
	return snapshot, nil
}

// listableResource is a resource that can be listed.
type listableResource struct {
	schema.GroupVersionResource
	namespaced bool
}

// listable returns the resources that can be listed, each in its preferred version, without those that churn.
func listable(config *rest.Config) ([]listableResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a discovery client: %w", err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("cannot discover the resources of the cluster: %w", err)
	}
	var out []listableResource
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("the cluster has a bad API group %q: %w", list.GroupVersion, err)
		}
		for i := range list.APIResources {
			if name := list.APIResources[i].Name; !slices.Contains(churning, name) {
				out = append(out, listableResource{group.WithResource(name), list.APIResources[i].Namespaced})
			}
		}
	}
	return out, nil
}

// Compare returns an error that lists every object that is there now and was not, that was there and is not any more,
// and that has changed otherwise than by its status and by what other services are known to leave on a user's objects:
// two labels on the pull secret and CAPM3's block-move annotation on a BareMetalHost.
func (s *Snapshot) Compare(now *Snapshot) error {
	var problems []error
	for _, key := range sortedKeys(now.objects) {
		if s.objects[key] == nil {
			problems = append(problems, fmt.Errorf("left behind: %s", key))
		}
	}
	for _, key := range sortedKeys(s.objects) {
		after := now.objects[key]
		if after == nil {
			problems = append(problems, fmt.Errorf("lost: %s", key))
			continue
		}
		if diff := cmp.Diff(essence(s.objects[key]), essence(after)); diff != "" && !isSecret(key) {
			problems = append(problems, fmt.Errorf("changed: %s:\n%s", key, diff))
		} else if diff != "" {
			problems = append(problems, fmt.Errorf("changed: %s (its data is not shown)", key))
		}
	}
	return errors.Join(problems...)
}

func isSecret(key objectKey) bool { return key.resource.Resource == "secrets" }

func sortedKeys(objects map[objectKey]*unstructured.Unstructured) []objectKey {
	return slices.SortedFunc(maps.Keys(objects), func(a, b objectKey) int { return strings.Compare(a.String(), b.String()) })
}

// essence is an object without its status, without what the apiserver counts, and without known leftovers.
func essence(object *unstructured.Unstructured) map[string]any {
	o := object.DeepCopy()
	delete(o.Object, "status")
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if o.GetKind() == "Secret" {
		for _, label := range pullSecretLabels {
			delete(labels, label)
		}
	}
	if o.GetKind() == "BareMetalHost" {
		delete(annotations, blockMoveAnnotation)
	}
	setOrRemove(o, "labels", labels)
	setOrRemove(o, "annotations", annotations)
	return o.Object
}

// setOrRemove makes an empty map and no map the same.
func setOrRemove(o *unstructured.Unstructured, field string, values map[string]string) {
	if len(values) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
		return
	}
	copied := make(map[string]any, len(values))
	for key, value := range values {
		copied[key] = value
	}
	// It fails only when metadata is no map.
	_ = unstructured.SetNestedMap(o.Object, copied, "metadata", field)
}
