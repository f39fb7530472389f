// SPDX-License-Identifier: Apache-2.0

// Package redact takes out of texts of others the URLs that let their reader boot into a cluster: who knows the URL of a discovery image
// can register a host.
package redact

import (
	"regexp"
	"strings"
)

// Redacted stands in the place of what was taken out.
const Redacted = "[redacted]"

// Of a URL, server is its beginning and rest what follows the server: the scheme and the server are kept.
const (
	server = `([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/?#"'@]*@)?([^\s/?#"'@]+)`
	rest   = `[^\s"']*`
)

var (
	anyURL   = regexp.MustCompile(server + `[/?#]` + rest)
	anyUser  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'@]*@`)
	imageURL = regexp.MustCompile(server + `[/?#]` + rest + `(?:/?by(?:apikey|token|id)/|(?:api_key|image_token)=)` + rest)
)

// URLs cuts every URL in a text to its scheme and server: paths, queries and users hold tokens, as those of discovery images do.
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = anyURL.ReplaceAllString(text, "${1}${2}/"+Redacted)
	return anyUser.ReplaceAllString(text, "${1}"+Redacted+"@")
}

// ImageURLs cuts the URLs of what assisted-service serves for an InfraEnv, and leaves all others, which may say what to read or to correct.
func ImageURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return imageURL.ReplaceAllString(text, "${1}${2}/"+Redacted)
}
