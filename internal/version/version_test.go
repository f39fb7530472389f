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

func TestRevisionOf(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123"}, {Key: "vcs.modified", Value: modified}}
	}
	for name, test := range map[string]struct {
		stamped  string
		settings []debug.BuildSetting
		want     string
	}{
		"an image":              {stamped: "4567", want: "4567"},
		"make build in a clone": {stamped: "4567-dirty", settings: vcs("false"), want: "4567-dirty"},
		"go install of a tag":   {settings: vcs("false"), want: "0123"},
		"go install of changes": {settings: vcs("true"), want: "0123-dirty"},
		"no repository":         {settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}, want: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(revisionOf(test.stamped, &debug.BuildInfo{Settings: test.settings})).To(Equal(test.want))
		})
	}
}

func TestDescribe(t *testing.T) {
	NewWithT(t).Expect(Describe()).To(MatchRegexp(`^\S+ \(revision \S+, go1\.\S+, \w+/\w+(, FIPS 140-3 module \S+)?\)$`))
}

func TestUserAgent(t *testing.T) {
	NewWithT(t).Expect(UserAgent("openshift-assisted-bootstrap-manager")).
		To(MatchRegexp(`^openshift-assisted-bootstrap-manager/\S+ \(\w+/\w+\)$`))
}
