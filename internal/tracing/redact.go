// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"regexp"
	"strings"

	"github.com/capi-openshift/agent-providers/internal/redact"
)

// maxText is the most that is kept of a text.
const maxText = 1024

const redacted = redact.Redacted

// secrets are what a text must not hold besides URLs, and what stands in its place.
var secrets = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)`), redacted},
	{regexp.MustCompile(`\beyJ[\w-]{8,}(?:\.[\w-]*)*`), redacted},
	{regexp.MustCompile(`\bsha256~[\w-]+`), redacted},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}`), "${1} " + redacted},
	{
		regexp.MustCompile(`(?i)((?:api_?key|token|password|passwd|client_?secret|\bauth|authorization)\\?"?\s*[:=]\s*\\?"?)[^\s"\\&,;]+`),
		"${1}" + redacted,
	},
}

// Redact takes out of a text what may be a credential, and cuts it. It is the last line of defence: who makes an error already leaves
// credentials out, because errors become conditions, events and lines of the log.
func Redact(text string) string {
	text = redact.URLs(strings.ToValidUTF8(text, "?")) // Others cannot be sent.
	for _, secret := range secrets {
		text = secret.what.ReplaceAllString(text, secret.with)
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
