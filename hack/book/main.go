// SPDX-License-Identifier: Apache-2.0

// Command book builds the documentation as a website without scripts: one HTML file for each page that docs/README.md lists, with that list
// at its side. It fails when a page is missing from the list, and when a link leads nowhere. `make book` runs it in the repository's root.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "root of the repository")
	out := flag.String("out", "out/book", "folder that is removed and written anew")
	flag.Parse()
	b, err := load(*root)
	if err == nil {
		err = b.write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "book:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: %s\n", len(b.pages), filepath.Join(*out, "index.html"))
}

// book is what is built.
type book struct {
	root  string
	parts []part
	// pages are in the order of the contents, with the contents first.
	pages  []*page
	byPath map[string]*page
}

// load reads the contents and every page, and returns all that is wrong with them.
func load(root string) (*book, error) {
	parts, err := readContents(root)
	if err != nil {
		return nil, err
	}
	b := &book{root: root, parts: parts, byPath: map[string]*page{}}
	paths := []string{contentsPath}
	for _, part := range parts {
		for _, entry := range part.Entries {
			paths = append(paths, entry.path)
		}
	}
	var problems []error
	for _, path := range paths {
		p, err := readPage(root, path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if b.byPath[path] != nil {
			problems = append(problems, fmt.Errorf("%s lists %s twice", contentsPath, path))
			continue
		}
		b.pages = append(b.pages, p)
		b.byPath[path] = p
	}
	unlisted, err := b.unlisted()
	if err != nil {
		return nil, err
	}
	for _, path := range unlisted {
		problems = append(problems, fmt.Errorf("%s does not list %s: add a line", contentsPath, path))
	}
	for _, p := range b.pages {
		problems = append(problems, b.resolve(p)...)
	}
	return b, errors.Join(problems...)
}
