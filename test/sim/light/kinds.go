// SPDX-License-Identifier: Apache-2.0

package light

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind that the API serves, in one version.
type kind struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
}

// crds are the kind by which others are made known.
var crds = kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	resource:         "customresourcedefinitions",
}

// builtIn are the kinds of Kubernetes that somebody here asks an installed cluster for.
func builtIn() []kind {
	kinds := []kind{crds}
	add := func(group string, namespaced bool, names ...string) {
		for _, name := range names {
			gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}
			kinds = append(kinds, kind{gvk, strings.ToLower(name) + "s", namespaced})
		}
	}
	add("", false, "Node", "Namespace")
	add("", true, "Pod", "ConfigMap", "Secret", "ServiceAccount")
	add("apps", true, "DaemonSet")
	add("certificates.k8s.io", false, "CertificateSigningRequest")
	add("policy", true, "PodDisruptionBudget")
	add("rbac.authorization.k8s.io", false, "ClusterRole", "ClusterRoleBinding")
	add("storage.k8s.io", false, "VolumeAttachment")
	return kinds
}

// kindsOf are those of a CustomResourceDefinition.
func kindsOf(crd map[string]any) []kind {
	group, _, _ := unstructured.NestedString(crd, "spec", "group")
	scope, _, _ := unstructured.NestedString(crd, "spec", "scope")
	name, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
	resource, _, _ := unstructured.NestedString(crd, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	var kinds []kind
	for _, v := range versions {
		version, _ := v.(map[string]any)["name"].(string)
		gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: name}
		kinds = append(kinds, kind{gvk, resource, scope == "Namespaced"})
	}
	return kinds
}

// discover answers who asks which kinds there are; false for other paths.
func (a *API) discover(w http.ResponseWriter, path []string) bool {
	a.mu.Lock()
	kinds := slices.Clone(a.kinds)
	a.mu.Unlock()
	switch {
	case len(path) == 1 && path[0] == "api":
		reply(w, http.StatusOK, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
	case len(path) == 1 && path[0] == "apis":
		reply(w, http.StatusOK, groupsOf(kinds))
	case len(path) == 2 && path[0] == "api":
		reply(w, http.StatusOK, resourcesOf(kinds, schema.GroupVersion{Version: path[1]}))
	case len(path) == 3 && path[0] == "apis":
		reply(w, http.StatusOK, resourcesOf(kinds, schema.GroupVersion{Group: path[1], Version: path[2]}))
	default:
		return false
	}
	return true
}

func groupsOf(kinds []kind) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Compare(a.GroupVersion().String(), b.GroupVersion().String()) })
	for _, k := range kinds {
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		last := len(list.Groups) - 1
		switch {
		case k.Group == "":
		case last < 0 || list.Groups[last].Name != k.Group:
			list.Groups = append(list.Groups, metav1.APIGroup{
				Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
			})
		case !slices.Contains(list.Groups[last].Versions, version):
			list.Groups[last].Versions = append(list.Groups[last].Versions, version)
		}
	}
	return list
}

func resourcesOf(kinds []kind, version schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.String()}
	verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	for _, k := range kinds {
		if k.GroupVersion() == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.resource, SingularName: strings.ToLower(k.Kind), Namespaced: k.namespaced, Kind: k.Kind, Verbs: verbs,
			})
		}
	}
	return list
}
