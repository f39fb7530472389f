// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// sources is where files are looked at that are no pages of the book.
const sources = "https://github.com/capi-openshift/agent-providers/"

// resolve makes the links of a page lead to pages of the book, or to the sources, and returns those that lead nowhere.
func (b *book) resolve(p *page) []error {
	var problems []error
	follow := func(destination []byte) []byte {
		target, err := b.target(p, string(destination))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: link to %s: %w", p.path, destination, err))
			return destination
		}
		return []byte(target)
	}
	err := ast.Walk(p.document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Link:
			node.Destination = follow(node.Destination)
		case *ast.Image:
			node.Destination = follow(node.Destination)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		problems = append(problems, fmt.Errorf("read the links of %s: %w", p.path, err))
	}
	return problems
}

// target returns what a link of a page becomes in the book.
func (b *book) target(from *page, destination string) (string, error) {
	link, err := url.Parse(destination)
	if err != nil {
		return "", err
	}
	if link.IsAbs() {
		return destination, nil
	}
	if strings.HasPrefix(destination, "/") {
		return "", fmt.Errorf("leads to the root of the site: name the file from here")
	}
	name := from.path
	if link.Path != "" {
		name = path.Join(path.Dir(from.path), link.Path)
	}
	if to := b.byPath[name]; to != nil {
		return pageLink(from, to, link.Fragment)
	}
	info, err := fs.Stat(os.DirFS(b.root), name)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return sources + "tree/main/" + name, nil
	case path.Ext(name) == ".svg":
		return destination, nil
	}
	return sources + "blob/main/" + name, nil
}

// pageLink returns the link from one page of the book to another.
func pageLink(from, to *page, anchor string) (string, error) {
	if anchor != "" && !to.anchors[anchor] {
		return "", fmt.Errorf("%s has no heading with the anchor %s", to.path, anchor)
	}
	link := ""
	if from != to {
		var err error
		if link, err = relative(from, to.output()); err != nil {
			return "", err
		}
	}
	if anchor != "" {
		link += "#" + anchor
	}
	return link, nil
}

// relative returns the way from a page to a file of the book.
func relative(from *page, file string) (string, error) {
	way, err := filepath.Rel(filepath.FromSlash(path.Dir(from.output())), filepath.FromSlash(file))
	return filepath.ToSlash(way), err
}
