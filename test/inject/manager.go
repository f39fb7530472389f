// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Controller is one of a manager's.
type Controller struct {
	// Reconcile makes a pass.
	Reconcile func(context.Context, ctrl.Request) (ctrl.Result, error)
	// Wakes are the objects whose pass begins because one has changed: the watches.
	Wakes func(client.Object) []ctrl.Request
}

// Manager runs the passes of controllers that are due, and no other: those of which a watch has told, those that are tried again, and those
// whose time has come. What nothing wakes is never looked at again.
type Manager struct {
	// Start makes the controllers of a manager that has just been started.
	Start func() []Controller
	// Calls are those that the manager makes.
	Calls *Calls
	// Now is the clock.
	Now func() time.Time

	controllers []Controller
	due         map[item]time.Time
	// Ended counts how often it has ended.
	Ended int
}

// item is an object of a controller.
type item struct {
	controller int
	request    ctrl.Request
}

// Run starts the manager, and again each time it has ended. It looks at every object first.
func (m *Manager) Run() {
	m.controllers, m.due = m.Start(), map[item]time.Time{}
	for _, o := range m.Calls.hub.all() {
		m.wake(o)
	}
	m.Calls.hub.Changed = m.wake
}

func (m *Manager) wake(o client.Object) {
	for i, c := range m.controllers {
		for _, request := range c.Wakes(o) {
			m.due[item{i, request}] = time.Time{}
		}
	}
}

// Wake makes a pass of each object due that is known, as something beside the management cluster may.
func (m *Manager) Wake(requests ...ctrl.Request) {
	for i := range m.controllers {
		for _, request := range requests {
			m.due[item{i, request}] = time.Time{}
		}
	}
}

// maxPasses is far more than anything in a story needs at once.
const maxPasses = 100

// Work makes all passes that are due, and reports whether there were any.
func (m *Manager) Work(t *testing.T) bool {
	t.Helper()
	for passes := 0; ; passes++ {
		next, found := m.next()
		if !found {
			return passes > 0
		}
		if passes > maxPasses {
			t.Fatalf("a pass of %s follows the other", next.request)
		}
		m.pass(next)
	}
}

// next is the object whose pass is due, and the first by name of several.
func (m *Manager) next() (item, bool) {
	var due []item
	for i, at := range m.due {
		if !at.After(m.Now()) {
			due = append(due, i)
		}
	}
	if len(due) == 0 {
		return item{}, false
	}
	return slices.MinFunc(due, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.controller, b.controller), cmp.Compare(a.request.String(), b.request.String()))
	}), true
}

// Soon reports whether a pass is due within some time.
func (m *Manager) Soon(within time.Duration) bool {
	for _, at := range m.due {
		if !at.After(m.Now().Add(within)) {
			return true
		}
	}
	return false
}

// pass makes one pass. One that fails is tried again a moment later, and that of a manager that ends in it by the next manager.
func (m *Manager) pass(of item) {
	delete(m.due, of)
	if m.Calls.waits() {
		m.due[of] = time.Time{}
		if m.Calls.behind == 0 {
			m.due[of] = m.Now().Add(time.Second) // All watches are late.
		}
		m.catchUp(of)
		return
	}
	clear(m.Calls.deferring)
	var result ctrl.Result
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = m.controllers[of.controller].Reconcile(context.Background(), of.request)
	}()
	<-ended
	if m.Calls.dead {
		m.Calls.dead = false
		m.Ended++
		m.Run()
		return
	}
	_, already := m.due[of]
	switch {
	case already:
	case err != nil:
		m.due[of] = m.Now().Add(time.Second)
	case result.RequeueAfter > 0:
		m.due[of] = m.Now().Add(result.RequeueAfter)
	}
	m.catchUp(of)
}

// catchUp opens a watch again that was closed some passes ago. Until then something else wakes the object.
func (m *Manager) catchUp(of item) {
	if m.Calls.behind == 0 {
		return
	}
	if m.Calls.behind--; m.Calls.behind > 0 {
		m.due[of] = time.Time{}
		return
	}
	m.Calls.hub.openWatches()
}
