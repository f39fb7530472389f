// SPDX-License-Identifier: Apache-2.0

// Package light is the API of an installed cluster in memory: enough of a kube-apiserver for Cluster API, for our managers and for the
// simulator of installed clusters, at a small part of its memory, so that one machine has a hundred installed clusters. It stores what it
// is given: nothing is validated or defaulted, nobody is refused, and no program is run in a container.
package light

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// API is a cluster's. It is an http.Handler.
type API struct {
	mu    sync.Mutex
	kinds []kind
	// objects are those that there are, changes all that has become of them, by kind. Neither is changed once it is stored.
	objects map[key]map[string]any
	changes map[schema.GroupResource][]change
	// version is the resourceVersion of the last change.
	version int
	// changed is closed at the next change.
	changed chan struct{}
}

// key is what an object is known by.
type key struct {
	resource        schema.GroupResource
	namespace, name string
}

// New returns an API without objects.
func New() *API {
	return &API{
		kinds: builtIn(), objects: map[key]map[string]any{}, changes: map[schema.GroupResource][]change{}, changed: make(chan struct{}),
	}
}

// target is what a request is about.
type target struct {
	kind        kind
	key         key
	subresource string
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' })
	switch {
	case len(path) == 0 || slices.Contains([]string{"healthz", "livez", "readyz"}, path[0]):
		_, _ = w.Write([]byte("ok"))
		return
	case path[0] == "version":
		reply(w, http.StatusOK, version.Info{Major: "1", Minor: "33", GitVersion: "v1.33.4"})
		return
	case a.discover(w, path):
		return
	}
	t, ok := a.target(path)
	if !ok {
		refuse(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
		return
	}
	if r.Method == http.MethodGet && t.key.name == "" {
		a.listOrWatch(w, r, t)
		return
	}
	object, status, err := a.single(r, t)
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, status, object)
}

// target reads a path: /api/v1 or /apis/<group>/<version>, then namespaces/<namespace>, unless the resource has none or all are meant, then
// the resource, and the name and the subresource, if there are any.
func (a *API) target(path []string) (target, bool) {
	var gv schema.GroupVersion
	switch {
	case path[0] == "api" && len(path) > 2:
		gv, path = schema.GroupVersion{Version: path[1]}, path[2:]
	case path[0] == "apis" && len(path) > 3:
		gv, path = schema.GroupVersion{Group: path[1], Version: path[2]}, path[3:]
	default:
		return target{}, false
	}
	var t target
	if path[0] == "namespaces" && len(path) > 2 {
		t.key.namespace, path = path[1], path[2:]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.kinds, func(k kind) bool { return k.GroupVersion() == gv && k.resource == path[0] })
	if at < 0 {
		return target{}, false
	}
	t.kind = a.kinds[at]
	t.key.resource = schema.GroupResource{Group: gv.Group, Resource: path[0]}
	for i, part := range []*string{&t.key.name, &t.subresource} {
		if len(path) > i+1 {
			*part = path[i+1]
		}
	}
	return t, true
}

// reply sends an object as JSON.
func reply(w http.ResponseWriter, status int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		return // Who has gone does not miss the rest.
	}
}

// refuse sends an error as a kube-apiserver does.
func refuse(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewBadRequest(err.Error())
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	reply(w, int(status.Code), &status)
}
