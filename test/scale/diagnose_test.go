// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestEnd: the state of a hub is kept before the hub is stopped, if the run fails by it.
func TestEnd(t *testing.T) {
	wrong := Result{Profile: profileBurst, Problems: []string{"1 host is not bound"}}
	growing := func(size int) Result {
		return Result{Profile: profileInstall, Size: size, Costs: map[string]Cost{bootstrapName: {Passes: size * size}}}
	}
	for name, tt := range map[string]struct {
		results   []Result
		err, stop error
		hub       string
		kept      bool
	}{
		"nothing is wrong":                   {results: []Result{{Profile: profileBurst}}, hub: hubName},
		"a profile that did not end":         {err: errors.New("no time is left"), hub: hubName, kept: true},
		"a problem":                          {results: []Result{{Profile: profileBurst}, wrong}, hub: hubName, kept: true},
		"a problem of the hub before":        {results: []Result{wrong, growing(10)}, hub: "install-10"},
		"a cost that grows fast":             {results: []Result{growing(10), growing(20), growing(40)}, hub: "install-40", kept: true},
		"a hub that cannot be stopped":       {stop: errors.New("it hangs"), hub: hubName},
		"one that failed and cannot be, too": {err: errors.New("no time is left"), stop: errors.New("it hangs"), hub: hubName, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Chdir(t.TempDir()) // Where a control plane that was never started has its logs.
			g.Expect(os.Mkdir("logs", 0o700)).To(Succeed())
			g.Expect(os.WriteFile("logs/etcd.log", []byte("ready"), 0o600)).To(Succeed())
			m := &measurement{opts: Options{Out: "out"}, results: tt.results}
			kept, stopped := filepath.Join("out", logsFolder, tt.hub, "etcd.log"), false
			err := m.end(t.Context(), &hub{cp: &localcontrolplane.ControlPlane{}}, tt.hub, func() error {
				stopped = true
				if tt.kept {
					g.Expect(os.ReadFile(kept)).To(Equal([]byte("ready")))
				}
				return tt.stop
			}, tt.err)
			g.Expect(stopped).To(BeTrue())
			for _, cause := range []error{tt.err, tt.stop} {
				g.Expect(cause == nil || errors.Is(err, cause)).To(BeTrue())
			}
			g.Expect(err == nil).To(Equal(tt.err == nil && tt.stop == nil), "end returns no error for a problem of a profile: the report does")
			if !tt.kept {
				g.Expect("out").NotTo(BeADirectory())
				return
			}
			g.Expect(m.dropState()).To(Succeed())
			g.Expect(kept).NotTo(BeAnExistingFile())
		})
	}
}
