// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseIgnition(t *testing.T) {
	tests := map[string]struct{ text, problem string }{
		"version 3.2.0":     {`{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"a.service","enabled":true}]}}`, ""},
		"version 3.1.0":     {`{"ignition":{"version":"3.1.0"}}`, ""},
		"version 3.4.0":     {`{"ignition":{"version":"3.4.0"}}`, "3.1.0 or 3.2.0"},
		"version 3.0.0":     {`{"ignition":{"version":"3.0.0"}}`, "3.1.0 or 3.2.0"},
		"no version":        {`{"storage":{}}`, "3.1.0 or 3.2.0"},
		"no JSON":           {`ignition: {version: 3.2.0}`, "is no JSON"},
		"YAML of Butane":    {"variant: fcos\nversion: 1.4.0", "is no JSON"},
		"a list":            {`[]`, "is no JSON"},
		"an unknown key":    {`{"ignition":{"version":"3.2.0"},"storage":{"file":[]}}`, `unknown field "file"`},
		"two documents":     {`{"ignition":{"version":"3.2.0"}}{}`, "is no JSON"},
		"a relative path":   {`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"etc/motd"}]}}`, "path not absolute"},
		"key of a later":    {`{"ignition":{"version":"3.2.0"},"kernelArguments":{"shouldExist":["a"]}}`, `unknown field "kernelArguments"`},
		"a unit's bad name": {`{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"a"}]}}`, "invalid systemd unit extension"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, err := ParseIgnition(tt.text)
			if tt.problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(config.Ignition.Version).To(Equal("3.2.0"))
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.problem)))
		})
	}
}
