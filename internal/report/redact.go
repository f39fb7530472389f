// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// hidden stands where something was left out.
const hidden = "…"

// longestMessage is how much of a message the page shows.
const longestMessage = 4000

// credentials are how secrets are known that others put into their messages. Each is replaced by its first group and hidden.
var credentials = []*regexp.Regexp{
	regexp.MustCompile(`()-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|[\s\S]*)`),
	regexp.MustCompile(`(://)[^/\s@]*:[^/\s@]*@`),
	regexp.MustCompile(`(?i)(/by(?:apikey|token|id-token)/)[^/\s]+`),
	regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]*(?:\.[\w-]*)?`),
	regexp.MustCompile(`()\bsha256~[\w-]+`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[\w.~+/=-]{8,}`),
	regexp.MustCompile(`(?i)("(?:auth|password|passwd|token|secret|pull-?secret|api_?key)"\s*:\s*)"[^"]*"`),
	regexp.MustCompile(`(?i)(\b(?:auth|password|passwd|[\w-]*token|[\w-]*secret|api_?key|signature|sig|x-amz-[a-z-]+)=)"?[^\s"&,;]+"?`),
}

// redact leaves out of a text what looks like a credential. Nothing that is read for the page should have one; the texts are those of many
// programs.
func redact(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for _, credential := range credentials {
		text = credential.ReplaceAllString(text, "${1}"+hidden)
	}
	if utf8.RuneCountInString(text) > longestMessage {
		text = string([]rune(text)[:longestMessage]) + hidden
	}
	return strings.TrimSpace(text)
}
