// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/sim/metal3/trace"
)

// world is the API server to which a replay writes the recorded inputs.
type world struct {
	client     client.Client
	namespace  string
	shape      shape
	kubeconfig []byte
	// uids maps recorded UIDs to real ones.
	uids map[string]string
}

func (w *world) gvk(kind string) (schema.GroupVersionKind, bool) {
	gvk, known := map[string]schema.GroupVersionKind{
		"Machine":       clusterv1.GroupVersion.WithKind("Machine"),
		"Cluster":       clusterv1.GroupVersion.WithKind("Cluster"),
		"BareMetalHost": bmov1alpha1.GroupVersion.WithKind("BareMetalHost"),
		"Node":          corev1.SchemeGroupVersion.WithKind("Node"),
		"Secret":        corev1.SchemeGroupVersion.WithKind("Secret"),
		kindMachine:     w.shape.gvk(kindMachine),
		kindCluster:     w.shape.gvk(kindCluster),
	}[kind]
	return gvk, known
}

// apply does to the API what a transition recorded. Kinds that CAPM3 and BMO do not read are left out.
func (w *world) apply(ctx context.Context, transition *trace.Transition) error {
	gvk, known := w.gvk(transition.Kind())
	if !known {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	object.SetName(transition.Name())
	if gvk.Kind != "Node" {
		object.SetNamespace(w.namespace)
	}
	core := gvk.Group == clusterv1.GroupVersion.Group
	_, deleted := transition.Set["metadata.deletionTimestamp"]
	switch {
	case transition.Op == trace.Added:
		return w.create(ctx, object, transition)
	case deleted && core:
		// Core holds the object by a finalizer, which nobody would take off here: it is deleted when the recording says so.
		return nil
	case deleted || transition.Op == trace.Deleted:
		return client.IgnoreNotFound(w.client.Delete(ctx, object))
	}
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	return w.modify(ctx, object, transition, core)
}

func (w *world) create(ctx context.Context, object *unstructured.Unstructured, transition *trace.Transition) error {
	for path, value := range transition.State {
		if strings.HasPrefix(path, "status.") || path == "metadata.uid" || path == "metadata.creationTimestamp" {
			continue
		}
		if path == "data.KEYS" {
			if err := w.setData(object, value); err != nil {
				return err
			}
			continue
		}
		if err := w.set(ctx, object, path, value); err != nil {
			return err
		}
	}
	if err := w.shape.completeImage(object); err != nil {
		return err
	}
	if err := w.client.Create(ctx, object); err != nil {
		return err
	}
	if uid, ok := transition.State["metadata.uid"].(string); ok {
		w.uids[uid] = string(object.GetUID())
	}
	return nil
}

// completeImage adds the checksum that the v1beta1 schema wants even where it means nothing.
func (s shape) completeImage(object *unstructured.Unstructured) error {
	image, found, err := unstructured.NestedMap(object.Object, "spec", "image")
	if err != nil || !found || s.version != "v1beta1" || object.GetKind() != kindMachine || image["checksum"] != nil {
		return err
	}
	return unstructured.SetNestedField(object.Object, "", "spec", "image", "checksum")
}

// setData gives a Secret its recorded keys. Of the values, which were not recorded, only that of a kubeconfig matters.
func (w *world) setData(object *unstructured.Unstructured, keys any) error {
	names, ok := keys.([]any)
	if !ok {
		return fmt.Errorf("data.KEYS of Secret %s is no list", object.GetName())
	}
	data := map[string]any{}
	for _, name := range names {
		data[fmt.Sprint(name)] = ""
	}
	if strings.HasSuffix(object.GetName(), "-kubeconfig") {
		data["value"] = string(w.kubeconfig)
	}
	return unstructured.SetNestedMap(object.Object, data, "stringData")
}

// modify patches metadata and spec, and status. Of what core writes to its own objects, CAPM3 reads the spec and the deprecated
// conditions only.
func (w *world) modify(ctx context.Context, object *unstructured.Unstructured, transition *trace.Transition, core bool) error {
	before := object.DeepCopy()
	for path, value := range transition.Set {
		if core && !strings.HasPrefix(path, "spec.") && !strings.HasPrefix(path, "status.deprecated.") {
			continue
		}
		if err := w.set(ctx, object, path, value); err != nil {
			return err
		}
	}
	for _, path := range transition.Unset {
		unstructured.RemoveNestedField(object.Object, w.path(object.GetKind(), path)...)
		removeEmptyParent(object, w.path(object.GetKind(), path))
	}
	if err := w.shape.completeImage(object); err != nil {
		return err
	}
	changed := object.DeepCopy()
	if err := w.client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return err
	}
	if object.GetKind() == "Secret" {
		return nil
	}
	return w.client.Status().Patch(ctx, changed, client.MergeFrom(before))
}

// removeEmptyParent removes a struct of the spec whose last field was unset: recordings show fields only.
func removeEmptyParent(object *unstructured.Unstructured, path []string) {
	parent := path[:len(path)-1]
	fields, found, err := unstructured.NestedMap(object.Object, parent...)
	if err == nil && found && len(fields) == 0 && len(parent) > 1 && parent[0] == "spec" {
		unstructured.RemoveNestedField(object.Object, parent...)
	}
}

func (w *world) path(kind, path string) []string {
	return trace.SplitPath(w.shape.translate(kind, path))
}

func (w *world) set(ctx context.Context, object *unstructured.Unstructured, path string, value any) error {
	if path == "metadata.ownerReferences" {
		return w.setOwners(ctx, object, value)
	}
	if text, ok := value.(string); ok {
		value = w.withRealUIDs(text)
	}
	if list, kind, found := strings.Cut(strings.TrimSuffix(path, "]"), "["); found {
		return setFolded(object, trace.SplitPath(list), kind, fmt.Sprint(value))
	}
	fields := w.path(object.GetKind(), path)
	if len(fields) == 1 && fields[0] == "" {
		return nil
	}
	return unstructured.SetNestedField(object.Object, value, fields...)
}

func setFolded(object *unstructured.Unstructured, path []string, kind, folded string) error {
	condition := trace.UnfoldCondition(kind, folded)
	condition["lastTransitionTime"] = metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
	list, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		return err
	}
	kept := []any{}
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); !ok || fields["type"] != kind {
			kept = append(kept, entry)
		}
	}
	return unstructured.SetNestedSlice(object.Object, append(kept, condition), path...)
}

// setOwners makes real references of the recorded ones. Owners that are not in this world are left out.
func (w *world) setOwners(ctx context.Context, object *unstructured.Unstructured, value any) error {
	list, ok := value.([]any)
	if !ok {
		return fmt.Errorf("the owners of %s are no list", object.GetName())
	}
	var owners []metav1.OwnerReference
	for _, entry := range list {
		words := strings.Fields(fmt.Sprint(entry))
		parts := strings.Split(words[0], "/")
		gvk, known := w.gvk(parts[2])
		if !known {
			continue
		}
		owner := &unstructured.Unstructured{}
		owner.SetGroupVersionKind(gvk)
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: parts[3]}, owner); err != nil {
			return fmt.Errorf("read an owner of %s: %w", object.GetName(), err)
		}
		controller := len(words) > 1
		owners = append(owners, metav1.OwnerReference{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
			Controller: &controller, BlockOwnerDeletion: &controller,
		})
	}
	object.SetOwnerReferences(owners)
	return nil
}

func (w *world) withRealUIDs(text string) string {
	for recorded, actual := range w.uids {
		text = strings.ReplaceAll(text, recorded, actual)
	}
	return text
}

func (w *world) withRecordedUIDs(text string) string {
	for recorded, actual := range w.uids {
		text = strings.ReplaceAll(text, actual, recorded)
	}
	return text
}

// translate puts a recorded path or line into the words of the installed API version by the table of M3-81. It is empty when the
// version has no such field.
func (s shape) translate(kind, line string) string {
	if s.version == "v1beta2" || !strings.HasPrefix(kind, "Metal3") {
		return strings.ReplaceAll(line, infrastructureGroup+"/v1beta2", infrastructureGroup+"/"+s.version)
	}
	prefix := ""
	if rest, removed := strings.CutPrefix(line, "- "); removed {
		prefix, line = "- ", rest
	}
	for _, rename := range []struct{ from, to string }{
		{"status.deprecated.v1beta1.conditions", "status.conditions"},
		{"status.conditions", strings.Join(s.conditions, ".")},
		{"status.initialization.provisioned", strings.Join(s.provisioned, ".")},
		{"spec.image.diskFormat", "spec.image." + s.diskFormat},
	} {
		rest, found := strings.CutPrefix(line, rename.from)
		if found && rename.to == "" {
			return ""
		}
		if found {
			return prefix + rename.to + rest
		}
	}
	return prefix + line
}
