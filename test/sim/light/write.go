// SPDX-License-Identifier: Apache-2.0

package light

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/transport"
)

// single answers a request about one object.
func (a *API) single(r *http.Request, t target) (any, int, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, 0, fmt.Errorf("read the request: %w", err)
	}
	patch := types.PatchType("")
	if r.Method == http.MethodPatch {
		patch = types.PatchType(r.Header.Get("Content-Type"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, exists := a.objects[t.key]
	switch {
	case r.Method == http.MethodPost && t.subresource == "", !exists && patch == types.ApplyPatchType:
		object, err := decode(body)
		if err != nil {
			return nil, 0, err
		}
		return a.create(r, t, object)
	case !exists:
		return nil, 0, apierrors.NewNotFound(t.key.resource, t.key.name)
	case r.Method == http.MethodPost && t.subresource == "token":
		return token(body)
	}
	return a.existing(r.Method, t, stored, patch, body)
}

// existing answers a request about an object that there is.
func (a *API) existing(method string, t target, stored map[string]any, patch types.PatchType, body []byte) (any, int, error) {
	var changed map[string]any
	var err error
	switch method {
	case http.MethodGet:
		return stored, http.StatusOK, nil
	case http.MethodDelete:
		return a.remove(t, stored), http.StatusOK, nil
	case http.MethodPut:
		changed, err = decode(body)
	case http.MethodPatch:
		changed, err = patched(t, stored, patch, body)
	default:
		err = apierrors.NewMethodNotSupported(t.key.resource, method)
	}
	if err != nil {
		return nil, 0, err
	}
	return a.update(t, stored, changed)
}

// decode reads an object in the formats that clients send: JSON, and protobuf for the kinds of Kubernetes.
func decode(body []byte) (map[string]any, error) {
	object := map[string]any{}
	if utiljson.Unmarshal(body, &object) == nil { // Whole numbers are whole numbers, as those of a typed object.
		return object, nil
	}
	typed, gvk, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	if object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
		return nil, fmt.Errorf("convert the object: %w", err)
	}
	object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return object, nil
}

// create stores a new object. The caller has the lock, as of all that writes.
func (a *API) create(r *http.Request, t target, object map[string]any) (any, int, error) {
	o := &unstructured.Unstructured{Object: object}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + rand.String(5))
	}
	t.key.name = o.GetName()
	if _, exists := a.objects[t.key]; exists {
		return nil, 0, apierrors.NewAlreadyExists(t.key.resource, t.key.name)
	}
	o.SetGroupVersionKind(t.kind.GroupVersionKind)
	if t.kind.namespaced {
		o.SetNamespace(t.key.namespace)
	}
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.Now())
	o.SetGeneration(1)
	switch t.kind.Kind {
	case "Secret":
		encodeSecret(object)
	case "CertificateSigningRequest":
		tellRequester(r, object)
	case crds.Kind:
		a.kinds = append(a.kinds, kindsOf(object)...)
		establish(object)
	}
	a.store(t.key, added, nil, object)
	return object, http.StatusCreated, nil
}

// encodeSecret moves what is readable to where it is stored.
func encodeSecret(object map[string]any) {
	text, _, _ := unstructured.NestedStringMap(object, "stringData")
	delete(object, "stringData")
	for name, value := range text {
		_ = unstructured.SetNestedField(object, base64.StdEncoding.EncodeToString([]byte(value)), "data", name)
	}
}

// tellRequester notes who asks for a certificate.
func tellRequester(r *http.Request, object map[string]any) {
	var groups []any
	for _, group := range r.Header.Values(transport.ImpersonateGroupHeader) {
		groups = append(groups, group)
	}
	_ = unstructured.SetNestedField(object, r.Header.Get(transport.ImpersonateUserHeader), "spec", "username")
	_ = unstructured.SetNestedSlice(object, groups, "spec", "groups")
}

// establish says that the kinds of a CustomResourceDefinition are served.
func establish(object map[string]any) {
	conditions := []any{}
	for _, condition := range []string{"NamesAccepted", "Established"} {
		conditions = append(conditions, map[string]any{
			"type": condition, "status": "True", "reason": condition, "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	}
	names, _, _ := unstructured.NestedMap(object, "spec", "names")
	object["status"] = map[string]any{"conditions": conditions, "acceptedNames": names, "storedVersions": []any{}}
}

// update stores a change. A subresource changes the status and nothing else, and everybody else anything but the status.
func (a *API) update(t target, stored, changed map[string]any) (any, int, error) {
	before := &unstructured.Unstructured{Object: stored}
	after := &unstructured.Unstructured{Object: changed}
	if v := after.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
		return nil, 0, apierrors.NewConflict(t.key.resource, t.key.name, fmt.Errorf("the version is %s", before.GetResourceVersion()))
	}
	status, has := changed["status"]
	if t.subresource != "" {
		after = before.DeepCopy()
	} else {
		status, has = stored["status"]
	}
	delete(after.Object, "status")
	if has {
		after.Object["status"] = status
	}
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetResourceVersion(before.GetResourceVersion())
	after.SetManagedFields(nil)
	after.SetGeneration(before.GetGeneration())
	after.SetGroupVersionKind(before.GroupVersionKind())
	if equality.Semantic.DeepEqual(before.Object, after.Object) {
		return stored, http.StatusOK, nil
	}
	if !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		a.store(t.key, deleted, stored, after.Object)
	} else {
		a.store(t.key, modified, stored, after.Object)
	}
	return after.Object, http.StatusOK, nil
}

// remove deletes an object, at once unless somebody holds it.
func (a *API) remove(t target, stored map[string]any) any {
	o := (&unstructured.Unstructured{Object: stored}).DeepCopy()
	if len(o.GetFinalizers()) == 0 {
		a.store(t.key, deleted, stored, o.Object)
		return o.Object
	}
	if now := metav1.Now(); o.GetDeletionTimestamp() == nil {
		o.SetDeletionTimestamp(&now)
		a.store(t.key, modified, stored, o.Object)
	}
	return o.Object
}

// patched is what a patch makes of an object. Applying is merging: nobody here gives up a field.
func patched(t target, stored map[string]any, by types.PatchType, body []byte) (map[string]any, error) {
	switch by {
	case types.StrategicMergePatchType:
		typed, err := clientgoscheme.Scheme.New(t.kind.GroupVersionKind)
		if err != nil {
			return nil, fmt.Errorf("patch %s: %w", t.kind.Kind, err)
		}
		before, err := json.Marshal(stored)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", t.kind.Kind, err)
		}
		after, err := strategicpatch.StrategicMergePatch(before, body, typed)
		if err != nil {
			return nil, fmt.Errorf("patch %s: %w", t.kind.Kind, err)
		}
		return decode(after)
	case types.MergePatchType, types.ApplyPatchType:
		patch, err := decode(body)
		if err != nil {
			return nil, err
		}
		return merged(runtime.DeepCopyJSON(stored), patch), nil
	case types.JSONPatchType, types.ApplyCBORPatchType:
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", t.key.resource, t.key.name, string(by), 0, true)
}

// merged is RFC 7396: null removes a field.
func merged(into, patch map[string]any) map[string]any {
	for field, value := range patch {
		nested, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, field)
		case isMap:
			former, _ := into[field].(map[string]any)
			if former == nil {
				former = map[string]any{}
			}
			into[field] = merged(former, nested)
		default:
			into[field] = value
		}
	}
	return into
}

// token grants a token for as long as was asked for. Nobody looks at it.
func token(body []byte) (any, int, error) {
	request, err := decode(body)
	if err != nil {
		return nil, 0, err
	}
	seconds, _, _ := unstructured.NestedFieldNoCopy(request, "spec", "expirationSeconds")
	lifetime, err := strconv.ParseFloat(fmt.Sprint(seconds), 64)
	if err != nil {
		return nil, 0, fmt.Errorf("read for how long a token is wanted: %w", err)
	}
	granted := maps.Clone(request)
	granted["apiVersion"], granted["kind"] = "authentication.k8s.io/v1", "TokenRequest"
	expires := time.Now().Add(time.Duration(lifetime) * time.Second)
	granted["status"] = map[string]any{
		"token": "light-" + rand.String(32), "expirationTimestamp": expires.UTC().Format(time.RFC3339),
	}
	return granted, http.StatusCreated, nil
}
