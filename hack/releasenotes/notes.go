// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"strings"
)

// begin and separator are in no message of a commit.
const (
	begin     = "\x1e"
	separator = "\x1f"
)

// commit is one that is listed.
type commit struct {
	hash, subject string
	files         []string
}

// parse reads what git log has printed.
func parse(log string) []commit {
	var commits []commit
	for record := range strings.SplitSeq(log, begin) {
		lines := strings.Split(strings.TrimSpace(record), "\n")
		hash, subject, found := strings.Cut(lines[0], separator)
		if !found {
			continue
		}
		c := commit{hash: hash, subject: subject}
		for _, line := range lines[1:] {
			if line != "" {
				c.files = append(c.files, line)
			}
		}
		commits = append(commits, c)
	}
	return commits
}

// categories are in the order in which they are listed; a commit is in the first one that any of its files belongs to.
var categories = []struct {
	title   string
	belongs func(file string) bool
}{
	{"API", func(file string) bool {
		return below(file, "api/") && !isTest(file) || strings.Contains(file, "/crd/bases/")
	}},
	{"Behaviour of the managers", func(file string) bool {
		return below(file, "bootstrap/", "controlplane/", "internal/") && !isTest(file)
	}},
	{"Installation and templates", func(file string) bool {
		return below(file, "config/", "templates/", "Dockerfile", "metadata.yaml", "hack/release/")
	}},
	{"Dependencies", func(file string) bool { return path.Base(file) == "go.mod" }},
	{"Documentation", func(file string) bool { return path.Ext(file) == ".md" || below(file, "docs/") }},
	{"Tests and development", func(string) bool { return true }},
}

func below(file string, folders ...string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(file, folder) {
			return true
		}
	}
	return false
}

func isTest(file string) bool {
	return strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/")
}

// category returns the number of the category of a commit. One without files, which changes nothing, is in the last one.
func category(c commit) int {
	for i, category := range categories {
		for _, file := range c.files {
			if category.belongs(file) {
				return i
			}
		}
	}
	return len(categories) - 1
}

// listed returns the commits by category.
func listed(commits []commit) string {
	lines := make([][]string, len(categories))
	for _, c := range commits {
		number := category(c)
		lines[number] = append(lines[number], fmt.Sprintf("- %s (%s)\n", c.subject, c.hash))
	}
	out := &strings.Builder{}
	for i, category := range categories {
		if len(lines[i]) > 0 {
			fmt.Fprintf(out, "\n## %s\n\n%s", category.title, strings.Join(lines[i], ""))
		}
	}
	return out.String()
}

// added returns the items of a page that an earlier one does not have, below their headings.
func added(before, now string) string {
	known := map[string]bool{}
	for _, item := range items(before) {
		known[item.text] = true
	}
	out := &strings.Builder{}
	heading := ""
	for _, item := range items(now) {
		if known[item.text] {
			continue
		}
		if item.heading != heading {
			heading = item.heading
			fmt.Fprintf(out, "\n## %s\n\n", heading)
		}
		out.WriteString(item.text)
	}
	return out.String()
}

// item is one of a list, with all of its lines, and the heading that it is below.
type item struct{ heading, text string }

func items(page string) []item {
	var found []item
	heading, open := "", false
	for line := range strings.Lines(page + "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			heading, open = strings.TrimSpace(line[3:]), false
		case strings.HasPrefix(line, "- "):
			found = append(found, item{heading, line})
			open = true
		case open && strings.HasPrefix(line, "  "):
			found[len(found)-1].text += line
		default:
			open = false
		}
	}
	return found
}
