// SPDX-License-Identifier: Apache-2.0

package light

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// What becomes of objects, as watches call it.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
	bookmark = "BOOKMARK"
)

// change is what has become of an object.
type change struct {
	version       int
	what          string
	namespace     string
	before, after map[string]any
}

// store notes what has become of an object, and tells the watches.
func (a *API) store(k key, what string, before, after map[string]any) {
	a.version++
	o := &unstructured.Unstructured{Object: after}
	o.SetResourceVersion(strconv.Itoa(a.version))
	a.objects[k] = after
	if what == deleted {
		delete(a.objects, k)
	}
	a.changes[k.resource] = append(a.changes[k.resource], change{a.version, what, k.namespace, before, after})
	close(a.changed)
	a.changed = make(chan struct{})
}

// selection is what a list or a watch wants of a kind.
type selection struct {
	target
	labels labels.Selector
	fields fields.Selector
}

func selectionOf(r *http.Request, t target) (selection, error) {
	s := selection{target: t}
	var err error
	if s.labels, err = labels.Parse(r.URL.Query().Get("labelSelector")); err != nil {
		return s, fmt.Errorf("read the labels: %w", err)
	}
	if s.fields, err = fields.ParseSelector(r.URL.Query().Get("fieldSelector")); err != nil {
		return s, fmt.Errorf("read the fields: %w", err)
	}
	return s, nil
}

// has reports whether an object is selected.
func (s selection) has(namespace string, object map[string]any) bool {
	if object == nil || s.key.namespace != "" && s.key.namespace != namespace {
		return false
	}
	o := &unstructured.Unstructured{Object: object}
	for _, requirement := range s.fields.Requirements() {
		value, _, _ := unstructured.NestedString(object, strings.Split(requirement.Field, ".")...)
		if !fields.OneTermEqualSelector(requirement.Field, requirement.Value).Matches(fields.Set{requirement.Field: value}) {
			return false
		}
	}
	return s.labels.Matches(labels.Set(o.GetLabels()))
}

// listOrWatch answers a request about many objects.
func (a *API) listOrWatch(w http.ResponseWriter, r *http.Request, t target) {
	s, err := selectionOf(r, t)
	if err != nil {
		refuse(w, err)
		return
	}
	if watches, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watches {
		a.watch(w, r, s)
		return
	}
	items, version := a.list(s)
	reply(w, http.StatusOK, map[string]any{
		"apiVersion": t.kind.GroupVersion().String(), "kind": t.kind.Kind + "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)}, "items": items,
	})
}

// list returns what is selected, in the order of names, and the version of the last change.
func (a *API) list(s selection) ([]map[string]any, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []map[string]any{}
	for k, object := range a.objects {
		if k.resource == s.key.resource && s.has(k.namespace, object) {
			items = append(items, object)
		}
	}
	name := func(object map[string]any) string {
		o := &unstructured.Unstructured{Object: object}
		return o.GetNamespace() + "/" + o.GetName()
	}
	slices.SortFunc(items, func(a, b map[string]any) int { return cmp.Compare(name(a), name(b)) })
	return items, a.version
}

// maxWatch is how long a watch lasts that does not say so.
const maxWatch = time.Hour

// watch tells what becomes of the selected objects: since a version, or from what there is.
func (a *API) watch(w http.ResponseWriter, r *http.Request, s selection) {
	query := r.URL.Query()
	timeout := maxWatch
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		timeout = time.Duration(seconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := stream{json.NewEncoder(w), http.NewResponseController(w)}
	version, err := strconv.Atoi(query.Get("resourceVersion"))
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	if initial || err != nil || version == 0 {
		var items []map[string]any
		items, version = a.list(s)
		for _, item := range items {
			out.send(added, item)
		}
	}
	if initial {
		out.send(bookmark, map[string]any{
			"apiVersion": s.kind.GroupVersion().String(), "kind": s.kind.Kind, "metadata": map[string]any{
				"resourceVersion": strconv.Itoa(version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
			},
		})
	}
	a.follow(ctx, out, s, version)
}

// stream is the answer to a watch.
type stream struct {
	*json.Encoder
	flusher *http.ResponseController
}

func (s stream) send(what string, object map[string]any) {
	if err := s.Encode(map[string]any{"type": what, "object": object}); err != nil {
		return // It is the end of the connection, by which the request ends too.
	}
	_ = s.flusher.Flush()
}

// follow tells of all changes after a version, until ctx ends.
func (a *API) follow(ctx context.Context, out stream, s selection, version int) {
	_ = out.flusher.Flush()
	for ctx.Err() == nil {
		a.mu.Lock()
		all, changed := a.changes[s.key.resource], a.changed
		a.mu.Unlock()
		from, _ := slices.BinarySearchFunc(all, version+1, func(c change, v int) int { return cmp.Compare(c.version, v) })
		for _, c := range all[from:] {
			version = c.version
			had, has := s.has(c.namespace, c.before), s.has(c.namespace, c.after)
			switch {
			case c.what == deleted && had, had && !has:
				out.send(deleted, c.after)
			case has && !had:
				out.send(added, c.after)
			case has:
				out.send(modified, c.after)
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}
