// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Mode is what happens to a call.
type Mode string

const (
	// Fails is a call that fails before its effect.
	Fails Mode = "fails before its effect"
	// Lost is a call that takes effect, and whose answer is lost.
	Lost Mode = "answer is lost"
	// Conflict is a write that is refused because somebody has just written to the object.
	Conflict Mode = "conflict"
	// Throttled is a call for which the API server has no time.
	Throttled Mode = "throttled"
	// TimesOut is a call that nobody answers in time.
	TimesOut Mode = "times out"
	// WatchCloses is a write of which the cache learns some passes later.
	WatchCloses Mode = "watch closes"
	// ManagerEnds is a call that takes effect before the manager ends.
	ManagerEnds Mode = "manager ends"
)

// Modes are all of them.
func Modes() []Mode {
	return []Mode{Fails, Lost, Conflict, Throttled, TimesOut, WatchCloses, ManagerEnds}
}

// touched is the annotation that somebody else writes in a conflict.
const touched = "test.example.com/touched"

// kind of a call: to which of them a fault may happen depends on it.
type kind int

const (
	read kind = iota
	write
	// remote is a call to another API server, that of an installed cluster.
	remote
)

// happensTo reports whether a mode makes sense for a kind of calls.
func (m Mode) happensTo(k kind) bool {
	switch m {
	case Fails, Throttled, TimesOut:
		return true
	case Lost, ManagerEnds:
		return k != read
	case Conflict, WatchCloses:
		return k == write
	default:
		return false
	}
}

// call is one call of the manager.
type call struct {
	kind kind
	name string
}

// Calls are the calls of a manager, one of which may fail.
type Calls struct {
	hub  *Hub
	mode Mode
	// at is the number of the call that fails, from 1; 0 is none.
	at  int
	log []call
	// dead: the manager has ended, and none of its calls arrives any more.
	dead bool
	// behind is how many passes are still made before a closed watch is open again.
	behind int
	// deferring are the kinds whose writes a controller waits for before its next pass, until its cache has seen them.
	deferring map[string]bool
	// effective counts the writes that have changed something, and created the objects that the manager has created, by kind.
	effective int
	created   map[string]int
}

// Defer is told that a controller waits until its cache has seen an object of a kind that it has written.
func (c *Calls) Defer(kind string) { c.deferring[kind] = true }

// waits reports whether a pass waits for a watch that is closed.
func (c *Calls) waits() bool {
	for gvk := range c.hub.frozen {
		if c.deferring[gvk.Kind] {
			return true
		}
	}
	return false
}

// Use says to which cluster the calls are made.
func (c *Calls) Use(hub *Hub) {
	c.hub = hub
	if c.created == nil {
		c.created, c.deferring = map[string]int{}, map[string]bool{}
	}
}

// Remote makes a call to an installed cluster.
func (c *Calls) Remote(name string, do func() error) error {
	return c.around(call{remote, name}, nil, func(client.Object) error { return do() })
}

// Writes counts the writes that were made, of whatever effect, by verb and kind: "create Machine", "patch status of Machine".
func (c *Calls) Writes() map[string]int {
	counts := map[string]int{}
	for _, made := range c.log {
		if made.kind == write {
			counts[made.name[:strings.LastIndex(made.name, " ")]]++
		}
	}
	return counts
}

// around makes a call, or lets it fail. o is what is written, nil when nothing is; a call whose answer is lost leaves it as it is.
func (c *Calls) around(this call, o client.Object, do func(client.Object) error) error {
	if c.dead {
		return errors.New("the manager has ended")
	}
	c.log = append(c.log, this)
	if len(c.log) != c.at {
		return do(o)
	}
	switch c.mode {
	case Lost:
		_ = do(copied(o))
		return &url.Error{Op: "Patch", URL: "https://hub.example.com", Err: io.EOF}
	case Conflict:
		return c.conflict(this, o)
	case Throttled:
		return apierrors.NewTooManyRequests("the server has received too many requests", 1)
	case TimesOut:
		return &url.Error{Op: "Get", URL: "https://hub.example.com", Err: context.DeadlineExceeded}
	case WatchCloses:
		c.hub.closeWatch(o)
		c.behind = passesBehind
		return do(o)
	case ManagerEnds:
		_ = do(copied(o))
		c.dead = true
		runtime.Goexit()
	}
	return apierrors.NewInternalError(fmt.Errorf("call %d fails", c.at))
}

// passesBehind is how many passes a manager makes before its cache knows what it has written.
const passesBehind = 3

func copied(o client.Object) client.Object {
	if o == nil {
		return nil
	}
	same, _ := o.DeepCopyObject().(client.Object)
	return same
}

// conflict lets somebody else write to an object, and refuses the write. An object that is created is refused because its quota was busy.
func (c *Calls) conflict(this call, o client.Object) error {
	stored := c.hub.stored(o)
	if stored == nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "quota", errors.New("it has changed"))
	}
	annotations := stored.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[touched] = "once"
	stored.SetAnnotations(annotations)
	if err := c.hub.Update(context.Background(), stored); err != nil {
		panic(fmt.Sprintf("%s: %v", this.name, err))
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: c.hub.kindOf(o).Kind}, o.GetName(), errors.New("the object has been modified"))
}

// Client is the manager's: it reads from the cache, and each write may fail.
func (c *Calls) Client() client.Client {
	return interceptor.NewClient(c.hub.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return c.hub.cachedGet(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return c.hub.cachedList(ctx, list, opts...)
		},
		Create: func(ctx context.Context, hub client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.write("create", o, func(o client.Object) error {
				err := hub.Create(ctx, o, opts...)
				if err == nil && o.GetResourceVersion() != "" { // A dry run gives it none.
					c.created[c.hub.kindOf(o).Kind]++
				}
				return err
			})
		},
		Update: func(ctx context.Context, hub client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return c.write("update", o, func(o client.Object) error { return hub.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, hub client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return c.write("delete", o, func(o client.Object) error { return hub.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, hub client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return c.write("patch", o, func(o client.Object) error { return hub.Patch(ctx, o, patch, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, hub client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return c.write("patch "+sub+" of", o, func(o client.Object) error { return hub.SubResource(sub).Patch(ctx, o, patch, opts...) })
		},
		SubResourceUpdate: func(
			ctx context.Context, hub client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			return c.write("update "+sub+" of", o, func(o client.Object) error { return hub.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
}

func (c *Calls) write(verb string, o client.Object, do func(client.Object) error) error {
	return c.around(call{write, verb + " " + c.hub.nameOf(o)}, o, func(o client.Object) error {
		before := c.hub.changes
		err := do(o)
		c.effective += c.hub.changes - before
		return err
	})
}

// Live reads past the cache, and each read may fail.
func (c *Calls) Live() client.Reader {
	return interceptor.NewClient(c.hub.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			this := call{read, "get " + c.hub.kindOf(o).Kind + " " + key.String()}
			return c.around(this, nil, func(client.Object) error { return hub.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			this := call{read, "list " + c.hub.kindOf(list).Kind}
			return c.around(this, nil, func(client.Object) error { return hub.List(ctx, list, opts...) })
		},
	})
}
