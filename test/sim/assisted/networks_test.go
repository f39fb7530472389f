// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

func TestCheckNetwork(t *testing.T) {
	const device = `{"name":"eno1","macAddress":"00:00:5e:00:53:01"}`
	for name, tt := range map[string]struct{ spec, err string }{
		"a device":                 {`{"interfaces":[` + device + `],"config":{"interfaces":[{"name":"eno1","type":"ethernet"},{"name":"bond0","type":"bond"}]}}`, ""},
		"a device twice":           {`{"interfaces":[` + device + `,` + device + `]}`, "must be unique"},
		"a device without address": {`{"interfaces":[` + device + `],"config":{"interfaces":[{"name":"eno2","type":"ethernet"}]}}`, "mapping for interface eno2 is missing"},
		"nothing":                  {`null`, ""},
		"another form":             {`{"interfaces":"eno1"}`, "failed to parse"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config := &aiv1.NMStateConfig{Spec: &apiextensionsv1.JSON{Raw: []byte(tt.spec)}}
			if tt.err == "" {
				g.Expect(checkNetwork(config)).To(Succeed())
				return
			}
			g.Expect(checkNetwork(config)).To(MatchError(ContainSubstring(tt.err)))
		})
	}
}
