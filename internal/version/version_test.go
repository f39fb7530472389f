// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestOf(t *testing.T) {
	for name, test := range map[string]struct{ stamped, module, want string }{
		"an image":              {stamped: "v0.1.0", module: "(devel)", want: "v0.1.0"},
		"make build in a clone": {stamped: "v0.1.0-1-g0123456", module: "v0.1.1-0.20260101000000-0123456789ab", want: "v0.1.0-1-g0123456"},
		"go install of a tag":   {module: "v0.1.0", want: "v0.1.0"},
		"go install of changes": {module: "v0.0.0-20260101000000-0123456789ab+dirty", want: "v0.0.0-20260101000000-0123456789ab+dirty"},
		"no repository":         {module: "(devel)", want: "unknown"},
		"nothing at all":        {want: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(of(test.stamped, &debug.BuildInfo{Main: debug.Module{Version: test.module}})).To(Equal(test.want))
		})
	}
}

func TestUserAgent(t *testing.T) {
	NewWithT(t).Expect(UserAgent("openshift-assisted-bootstrap-manager")).
		To(MatchRegexp(`^openshift-assisted-bootstrap-manager/\S+ \(\w+/\w+\)$`))
}
