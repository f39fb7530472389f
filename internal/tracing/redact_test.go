// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"Machine ns/m-0: it has no host":  "Machine ns/m-0: it has no host",
		`secrets "pull-secret" not found`: `secrets "pull-secret" not found`,
		"the token is declined":           "the token is declined",
		"dial tcp 192.0.2.1:6443: connect: connection refused":                    "dial tcp 192.0.2.1:6443: connect: connection refused",
		"quay.io/openshift-release-dev/ocp-release@sha256:0123":                   "quay.io/openshift-release-dev/ocp-release@sha256:0123",
		"https://api.example.com:6443":                                            "https://api.example.com:6443",
		`Get "https://a.example.com/v2/files?api_key=` + token + `&x=1": EOF`:     `Get "https://a.example.com/[redacted]": EOF`,
		"http://a.example.com/byapikey/short/image.iso is gone":                   "http://a.example.com/[redacted] is gone",
		"https://a.example.com?sig=short":                                         "https://a.example.com/[redacted]",
		"https://user:pass@a.example.com/x":                                       "https://a.example.com/[redacted]",
		"proxyconnect http://user:pass@proxy.example.com:3128":                    "proxyconnect http://[redacted]@proxy.example.com:3128",
		"the token " + token + " has expired":                                     "the token [redacted] has expired",
		"Authorization: Bearer abcdefghij":                                        "Authorization: [redacted] [redacted]",
		"it sent bearer abcdefghij.k":                                             "it sent bearer [redacted]",
		"sha256~abc_def-1 is no token":                                            "[redacted] is no token",
		`{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}`:                           `{"auths":{"quay.io":{"auth":"[redacted]"}}}`,
		`{\"password\": \"hunter2\"}`:                                             `{\"password\": \"[redacted]\"}`,
		"password=hunter2 user=x":                                                 "password=[redacted] user=x",
		"x -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- y": "x [redacted] y",
		"cut -----BEGIN PRIVATE KEY-----\nMII":                                    "cut [redacted]",
		"a\xffb":                                                                  "a?b",
	} {
		t.Run(text, func(t *testing.T) { NewWithT(t).Expect(Redact(text)).To(Equal(want)) })
	}
	g := NewWithT(t)
	long := Redact(strings.Repeat("ä", maxText))
	g.Expect(len(long)).To(BeNumerically("<=", maxText+len("…")))
	g.Expect(utf8.ValidString(long)).To(BeTrue())
	g.Expect(Redact(strings.Repeat("x", maxText-8)+" "+token)).NotTo(ContainSubstring("eyJ"), "it is cut afterwards")
}
