// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"regexp"
	"strings"
)

// maxText is the most that is kept of a text.
const maxText = 1024

const redacted = "[redacted]"

// secrets are what a text must not hold, and what stands in its place.
var secrets = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)`), redacted},
	// Of a URL the scheme and the server are kept: paths, queries and users hold tokens, as those of discovery images do.
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/?#"'@]*@)?([^\s/?#"'@]+)[/?#][^\s"']*`), "${1}${2}/" + redacted},
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'@]*@`), "${1}" + redacted + "@"},
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
	text = strings.ToValidUTF8(text, "?") // Others cannot be sent.
	for _, secret := range secrets {
		text = secret.what.ReplaceAllString(text, secret.with)
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
