// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	docsFolder = "docs"
	// contentsPath is the page with the table of contents, from which the sidebar is made.
	contentsPath = docsFolder + "/README.md"
)

// part is a part of the book, entry one of its pages.
type (
	part struct {
		Title   string
		Entries []entry
	}
	entry struct {
		Title string
		path  string // from the repository's root, with slashes
	}
)

// A part begins with a heading; a page is an item of a list that begins with a link.
var (
	partLine  = regexp.MustCompile(`^## (.+)$`)
	entryLine = regexp.MustCompile(`^- \[([^]]+)\]\(([^)#]+)\)`)
)

// readContents reads the table of contents.
func readContents(root string) ([]part, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(contentsPath)))
	if err != nil {
		return nil, fmt.Errorf("read the table of contents: %w", err)
	}
	var parts []part
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if match := partLine.FindStringSubmatch(line); match != nil {
			parts = append(parts, part{Title: match[1]})
			continue
		}
		match := entryLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if len(parts) == 0 {
			return nil, fmt.Errorf("%s lists %s before the first part", contentsPath, match[2])
		}
		last := &parts[len(parts)-1]
		last.Entries = append(last.Entries, entry{Title: match[1], path: path.Join(docsFolder, match[2])})
	}
	if len(parts) == 0 {
		return nil, errors.New(contentsPath + " has no parts")
	}
	return parts, nil
}

// unlisted returns the pages below docs, and those in the repository's root, that are not in the table of contents.
func (b *book) unlisted() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(b.root, "*.md"))
	if err != nil {
		return nil, fmt.Errorf("list the pages of the root: %w", err)
	}
	err = filepath.WalkDir(filepath.Join(b.root, docsFolder), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(name) == ".md" {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the pages: %w", err)
	}
	var unlisted []string
	for _, name := range found {
		relative, err := filepath.Rel(b.root, name)
		if err != nil {
			return nil, fmt.Errorf("find %s below the root: %w", name, err)
		}
		if page := filepath.ToSlash(relative); b.byPath[page] == nil {
			unlisted = append(unlisted, page)
		}
	}
	slices.Sort(unlisted)
	return unlisted, nil
}
