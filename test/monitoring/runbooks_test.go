// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	runbooks = "docs/troubleshooting.md"
	guide    = "docs/guides/monitoring.md"
	address  = "https://github.com/capi-openshift/agent-providers/blob/main/"
)

var (
	heading     = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are those that GitHub gives to the headings of a page.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		found[strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}
	return found
}

// TestRunbooks: who gets an alert is led to a section that exists, and each alert is explained in the guide; no section is about an alert
// that does not exist.
func TestRunbooks(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, runbooks))
	g.Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, guide))
	g.Expect(err).NotTo(HaveOccurred())
	sections, used := anchors(string(page)), map[string]bool{}
	alerts := readRules(t).Alerts()
	g.Expect(alerts).NotTo(BeEmpty())
	for _, alert := range alerts {
		anchor, found := strings.CutPrefix(alert.Annotations["runbook_url"], address+runbooks+"#")
		g.Expect(found).To(BeTrue(), "%s has the runbook %s", alert.Alert, alert.Annotations["runbook_url"])
		g.Expect(sections).To(HaveKey(anchor), alert.Alert)
		used[anchor] = true
		g.Expect(string(text)).To(ContainSubstring("`"+alert.Alert+"`"), "%s says nothing of it", guide)
		g.Expect(alert.Labels["severity"]).To(BeElementOf("warning", "critical"), alert.Alert)
		g.Expect(alert.Annotations).To(And(HaveKey("summary"), HaveKey("description")), alert.Alert)
		g.Expect(alert.For).NotTo(BeEmpty(), alert.Alert)
	}
	for anchor := range sections {
		if strings.HasPrefix(anchor, "alert-") {
			g.Expect(used).To(HaveKey(anchor))
		}
	}
}

func TestAnchors(t *testing.T) {
	g := NewWithT(t)
	g.Expect(anchors("# A page\n\ntext\n\n### Alert `HostNotRegistered`: why, and what\n")).To(Equal(map[string]bool{
		"a-page": true, "alert-hostnotregistered-why-and-what": true,
	}))
}
