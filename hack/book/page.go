// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown reads what GitHub reads. Pages are our own, so HTML in them is kept.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))

// page is one page of the book.
type page struct {
	path     string // from the repository's root, with slashes
	source   []byte
	document ast.Node
	Title    string
	Sections []section
	anchors  map[string]bool
}

// section is a heading of the second level.
type section struct{ Title, Anchor string }

// readPage reads a page and gives its headings the anchors that GitHub gives them.
func readPage(root, name string) (*page, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("read a page of %s: %w", contentsPath, err)
	}
	p := &page{path: name, source: source, document: markdown.Parser().Parse(text.NewReader(source)), anchors: map[string]bool{}}
	titles := 0
	err = ast.Walk(p.document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		heading, isHeading := node.(*ast.Heading)
		if !entering || !isHeading {
			return ast.WalkContinue, nil
		}
		title := plainText(heading, source)
		anchor := p.anchor(title)
		heading.SetAttributeString("id", []byte(anchor))
		switch heading.Level {
		case 1:
			p.Title = title
			titles++
		case 2:
			p.Sections = append(p.Sections, section{title, anchor})
		}
		return ast.WalkSkipChildren, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the headings of %s: %w", name, err)
	}
	if titles != 1 {
		return nil, fmt.Errorf("%s has %d headings of the first level, want one", name, titles)
	}
	return p, nil
}

// output is where the page is written below the folder of the book: beside its neighbours, so that links keep their form.
func (p *page) output() string {
	folder, name := path.Split(p.path)
	if name == "README.md" {
		return folder + "index.html"
	}
	return strings.TrimSuffix(p.path, ".md") + ".html"
}

// anchor returns the anchor of a heading, as GitHub makes it: of several equal ones, those after the first have a number.
func (p *page) anchor(title string) string {
	var slug strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			slug.WriteRune(r)
		case r == ' ':
			slug.WriteByte('-')
		}
	}
	anchor := slug.String()
	for n := 1; p.anchors[anchor]; n++ {
		anchor = slug.String() + "-" + strconv.Itoa(n)
	}
	p.anchors[anchor] = true
	return anchor
}

// plainText returns the text of a node without its markup.
func plainText(node ast.Node, source []byte) string {
	var out strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			out.Write(child.Segment.Value(source))
		case *ast.String:
			out.Write(child.Value)
		default:
			out.WriteString(plainText(child, source))
		}
	}
	return out.String()
}
