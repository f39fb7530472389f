// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchorsOf returns the anchors of a page as GitHub makes them: the second section of a name has a number.
func anchorsOf(g *WithT, path string) []string {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", path))
	g.Expect(err).NotTo(HaveOccurred())
	seen := map[string]int{}
	var anchors []string
	for _, match := range heading.FindAllStringSubmatch(string(page), -1) {
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")
		if seen[slug]++; seen[slug] > 1 {
			slug += "-" + string(rune('0'+seen[slug]-1))
		}
		anchors = append(anchors, slug)
	}
	g.Expect(len(anchors)).To(BeNumerically(">", 20))
	return anchors
}

// TestLinksLeadSomewhere: every section that the report links to exists.
func TestLinksLeadSomewhere(t *testing.T) {
	g := NewWithT(t)
	reference, troubleshooting := anchorsOf(g, "reference/conditions.md"), anchorsOf(g, "troubleshooting.md")
	links := linker{docs: "docs"}
	for kind, all := range documented {
		for _, condition := range all {
			anchor, _ := strings.CutPrefix(links.condition(kind, condition), "docs"+conditionsPage)
			g.Expect(reference).To(ContainElement(anchor), "%s of %s", condition, kind)
		}
	}
	for of, anchor := range conditionAnchors {
		g.Expect(reference).To(ContainElement(anchor), of)
	}
	for of, anchor := range eventAnchors {
		g.Expect(reference).To(ContainElement(anchor), of)
	}
	for reason, anchor := range advice {
		g.Expect(troubleshooting).To(ContainElement(anchor), reason)
	}
}

func TestLinksOfFaults(t *testing.T) {
	links := linker{docs: "docs"}
	for name, test := range map[string]struct {
		fault Fault
		want  []Link
	}{
		"condition": {
			Fault{Kind: kindConfig, What: "HostRecognized", Reason: "HostNeverRegistered"},
			[]Link{
				{"what to do", "docs/troubleshooting.md#a-control-plane-host-never-boots"},
				{"what it means", "docs/reference/conditions.md#hostrecognized"},
			},
		},
		"event": {
			Fault{Kind: kindControlPlane, What: "event", Reason: "Other", Event: true},
			[]Link{{"what it means", "docs/reference/conditions.md#reasons-of-the-events-that-the-control-plane-manager-records"}},
		},
		"check of a host": {
			Fault{Kind: kindAgent, What: "check has-min-memory", Reason: checkReason},
			[]Link{
				{"what to do", "docs/troubleshooting.md#a-check-on-the-cluster-fails-for-a-while"},
				{"what it means", "docs/reference/conditions.md#agentinstalled"},
			},
		},
		"of the control plane, second of its name": {
			Fault{Kind: kindControlPlane, What: "Deleting"}, []Link{{"what it means", "docs/reference/conditions.md#deleting-1"}},
		},
		"of others": {fault: Fault{Kind: kindCluster, What: "event", Reason: "Other", Event: true}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(links.of(&test.fault)).To(Equal(test.want)) })
	}
}
