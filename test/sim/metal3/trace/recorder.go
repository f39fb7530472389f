// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Recorder watches kinds and keeps every write to them in the order in which the watches bring them. Watches are raw, so no
// write is merged into another.
type Recorder struct {
	mu          sync.Mutex
	transitions []Transition
	last        map[string]map[string]any
	changed     chan struct{}
}

// NewRecorder starts to watch. It ends with the context.
func NewRecorder(ctx context.Context, c client.WithWatch, namespace string, kinds ...schema.GroupVersionKind) (*Recorder, error) {
	r := &Recorder{last: map[string]map[string]any{}, changed: make(chan struct{})}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		watcher, err := c.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind, err)
		}
		go func() {
			<-ctx.Done()
			watcher.Stop()
		}()
		go func() {
			for event := range watcher.ResultChan() {
				r.observe(event)
			}
		}()
	}
	return r, nil
}

// Transitions returns all that was seen so far, and a channel that is closed when there is more.
func (r *Recorder) Transitions() ([]Transition, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Transition(nil), r.transitions...), r.changed
}

func (r *Recorder) observe(event watch.Event) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	transition := Transition{Object: object.GetKind() + "/" + object.GetName()}
	flat := Flatten(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch event.Type {
	case watch.Added:
		transition.Op, transition.State = Added, flat
	case watch.Deleted:
		transition.Op = Deleted
	default:
		transition.Set, transition.Unset = diff(r.last[transition.Object], flat)
	}
	r.last[transition.Object] = flat
	r.transitions = append(r.transitions, transition)
	close(r.changed)
	r.changed = make(chan struct{})
}

func diff(before, after map[string]any) (set map[string]any, unset []string) {
	set = map[string]any{}
	for path, value := range after {
		if old, found := before[path]; !found || !reflect.DeepEqual(old, value) {
			set[path] = value
		}
	}
	for path := range before {
		if _, found := after[path]; !found {
			unset = append(unset, path)
		}
	}
	return set, unset
}
