// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// credentialChange is a pass in which <cluster>-kubeconfig gets another credential, and whether that is a token.
type credentialChange struct {
	begin func(*testing.T) *world
	token bool
}

var credentialChanges = map[string]credentialChange{
	"first": {func(t *testing.T) *world {
		w := newWorld(t, 1, 0)
		w.optOut()
		w.run(nil, w.available)
		w.optIn()
		return w
	}, true},
	"renewal": {func(t *testing.T) *world {
		w := tokenWorld(t)
		w.now = w.now.Add(4 * day)
		return w
	}, true},
	"too late": {func(t *testing.T) *world {
		w := tokenWorld(t)
		w.now = w.now.Add(8 * day)
		return w
	}, true},
	"imported": {func(t *testing.T) *world {
		w := importedWithoutToken(t)
		w.optIn()
		return w
	}, true},
	"opting out": {func(t *testing.T) *world {
		w := tokenWorld(t)
		w.optOut()
		return w
	}, false},
}

// TestManagerEndsWhileATokenIsRequested: at whatever call the manager ends, the next one goes on, and no credential is lost.
func TestManagerEndsWhileATokenIsRequested(t *testing.T) {
	for name, change := range credentialChanges {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the call takes effect %t", name, after), func(t *testing.T) {
				at := 1
				for change.endsAt(t, at, after) {
					at += stride(4)
				}
				NewWithT(t).Expect(at).To(BeNumerically(">", 2))
			})
		}
	}
}

// endsAt lets a manager end at one of its calls, and another go on. It reports whether there were so many calls.
func (c credentialChange) endsAt(t *testing.T, at int, after bool) bool {
	t.Helper()
	g, w := NewWithT(t), c.begin(t)
	end := &death{at: at, after: after}
	w.mortal(end)
	w.credentials.Around = end.around
	for range 3 {
		w.credentials.Lost = !w.credentials.Takes(w.kubeconfig().Data["value"])
		w.dying()
	}
	if !end.dead {
		return false
	}
	w.mortal(nil)
	w.credentials.Around = nil
	w.passes(3)
	w.checkWorks()
	holds := w.token() != ""
	g.Expect(holds).To(Equal(c.token), "call %d", at)
	g.Expect(string(w.installerCredentials().Data[assisted.KubeconfigKey])).To(ContainSubstring("installer"), "call %d", at)
	return true
}
