// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRedact(t *testing.T) {
	for name, test := range map[string]struct{ text, urls, images string }{
		"no URL":         {"Machine m-0: it has no host", "Machine m-0: it has no host", "Machine m-0: it has no host"},
		"a server alone": {"https://api:6443 is gone", "https://api:6443 is gone", "https://api:6443 is gone"},
		"a page":         {"read https://a/x", "read https://a/[redacted]", "read https://a/x"},
		"a user":         {"https://user:pass@a.example.com", "https://[redacted]@a.example.com", "https://user:pass@a.example.com"},
		"an image with a token": {
			"Validation of image href http://images:8080/byapikey/eyJx.y/4.20/x86_64/minimal.iso failed",
			"Validation of image href http://images:8080/[redacted] failed", "Validation of image href http://images:8080/[redacted] failed",
		},
		"an image with another token": {
			`"https://images/x/bytoken/t/minimal.iso"`, `"https://images/[redacted]"`, `"https://images/[redacted]"`,
		},
		"an image without a token": {"http://images/byid/4f2/minimal.iso", "http://images/[redacted]", "http://images/[redacted]"},
		"an artifact": {
			"http://service/api/assisted-install/v2/infra-envs/4f2/downloads/files?api_key=k&file_name=discovery.ign: 404",
			"http://service/[redacted] 404", "http://service/[redacted] 404",
		},
		"two": {
			"https://docs/x, http://images/byapikey/a/b.iso https://docs/y",
			"https://docs/[redacted] http://images/[redacted] https://docs/[redacted]",
			"https://docs/x, http://images/[redacted] https://docs/y",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(URLs(test.text)).To(Equal(test.urls))
			g.Expect(ImageURLs(test.text)).To(Equal(test.images))
		})
	}
}
