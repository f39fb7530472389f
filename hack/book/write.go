// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed page.html
var layout string

var pageTemplate = template.Must(template.New("page").Parse(layout))

// view is what the layout shows around and of a page.
type view struct {
	*page

	Home     string
	Body     template.HTML
	Parts    []partView
	Previous *linkView
	Next     *linkView
}

type (
	partView struct {
		Title string
		Open  bool // it has the page, or the page is in no part
		Links []linkView
	}
	linkView struct {
		Title, URL string
		Current    bool
	}
)

// write replaces the folder by the book.
func (b *book) write(out string) error {
	if err := removeBook(out); err != nil {
		return err
	}
	for i, p := range b.pages {
		content, err := b.render(i)
		if err != nil {
			return fmt.Errorf("render %s: %w", p.path, err)
		}
		if err := writeFile(filepath.Join(out, filepath.FromSlash(p.output())), content); err != nil {
			return err
		}
	}
	return b.copyPictures(out)
}

// removeBook removes the folder of an earlier run, and no other folder with files.
func removeBook(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for an earlier book: %w", err)
	}
	if _, err := os.Stat(filepath.Join(out, docsFolder, "index.html")); len(entries) > 0 && err != nil {
		return fmt.Errorf("folder %s has files that are no book: choose another one, it would be removed", out)
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove the earlier book: %w", err)
	}
	return nil
}

// render returns the HTML of the page with a number.
func (b *book) render(number int) ([]byte, error) {
	p := b.pages[number]
	body := &bytes.Buffer{}
	if err := markdown.Renderer().Render(body, p.source, p.document); err != nil {
		return nil, err
	}
	home, err := relative(p, b.pages[0].output())
	if err != nil {
		return nil, err
	}
	v := view{page: p, Home: home, Body: template.HTML(body.String())} //nolint:gosec // Pages are our own, and goldmark has escaped them.
	for _, part := range b.parts {
		shown := partView{Title: part.Title, Open: number == 0}
		for _, entry := range part.Entries {
			link, err := b.linkTo(p, b.byPath[entry.path], entry.Title)
			if err != nil {
				return nil, err
			}
			shown.Open = shown.Open || link.Current
			shown.Links = append(shown.Links, *link)
		}
		v.Parts = append(v.Parts, shown)
	}
	if number > 0 {
		if v.Previous, err = b.linkTo(p, b.pages[number-1], ""); err != nil {
			return nil, err
		}
	}
	if number+1 < len(b.pages) {
		if v.Next, err = b.linkTo(p, b.pages[number+1], ""); err != nil {
			return nil, err
		}
	}
	content := &bytes.Buffer{}
	err = pageTemplate.Execute(content, v)
	return content.Bytes(), err
}

// linkTo returns a link to another page, with the title of that page unless there is another one.
func (b *book) linkTo(from, to *page, title string) (*linkView, error) {
	if title == "" {
		title = to.Title
	}
	way, err := relative(from, to.output())
	return &linkView{Title: title, URL: way, Current: from == to}, err
}

// copyPictures copies the pictures below docs.
func (b *book) copyPictures(out string) error {
	root := os.DirFS(b.root)
	return fs.WalkDir(root, docsFolder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".svg" {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return fmt.Errorf("read a picture: %w", err)
		}
		return writeFile(filepath.Join(out, filepath.FromSlash(name)), content)
	})
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("make a folder of the book: %w", err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		return fmt.Errorf("write a page: %w", err)
	}
	return nil
}
