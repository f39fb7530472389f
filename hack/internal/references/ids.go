// SPDX-License-Identifier: Apache-2.0

// Package references finds the ids by which code and documents name decisions, rules and facts, and tells those that no page of this
// repository explains.
package references

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/capi-openshift/agent-providers/hack/internal/contract"
)

// page is a document whose ids can be referred to; each match of definition is the definition of one.
type page struct {
	path       string
	definition *regexp.Regexp
}

// pages are the documents with ids, by the word that a reference to one begins with. The rules of Cluster API are read from their table.
var pages = map[string]page{
	"DESIGN": {"docs/design/decisions.md", regexp.MustCompile(`(?m)^\*\*(D\d+) — `)},
	"ASSISTED": {
		"docs/reference/assisted-service.md", regexp.MustCompile(`(?m)^(?:#+ (\d[\d.]*) |- \*\*([Ff]act \d+|\d[\d.]*[a-f]?(?: rule \d+)?)\*\* )`),
	},
	"METAL3":   {"docs/reference/metal3.md", regexp.MustCompile(`(?m)^- \*\*(M3-\d+)\*\* `)},
	"CONTRACT": {"docs/reference/foundations.md", regexp.MustCompile(`(?m)^\| ((?:LIB|QUAL|E2E)-\d+) \|`)},
}

// Known reads the ids that can be referred to, by the word that a reference begins with, ADR or recording, below the repository's root.
func Known(root string) (map[string]map[string]bool, error) {
	known := map[string]map[string]bool{}
	for word, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page.path))
		if err != nil {
			return nil, fmt.Errorf("read the ids of %s: %w", word, err)
		}
		known[word] = map[string]bool{}
		for _, match := range page.definition.FindAllStringSubmatch(string(text), -1) {
			known[word][strings.ToLower(strings.Join(match[1:], ""))] = true
		}
	}
	rules, err := contract.Load(root)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		known["CONTRACT"][strings.ToLower(rule.ID)] = true
	}
	if known["ADR"], err = names(root, "docs/adr/[0-9]*.md", func(name string) string {
		number, _, _ := strings.Cut(name, "-")
		return strings.TrimLeft(number, "0")
	}); err != nil {
		return nil, err
	}
	known["recording"], err = names(root, "test/sim/*/testdata/*", func(name string) string {
		return strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
	})
	return known, err
}

// names returns the ids that the names of files stand for.
func names(root, pattern string, id func(name string) string) (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", pattern, err)
	}
	ids := map[string]bool{}
	for _, path := range paths {
		ids[id(filepath.Base(path))] = true
	}
	return ids, nil
}
