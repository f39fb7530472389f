// SPDX-License-Identifier: Apache-2.0

// Package document has what the programs that write reference documents have in common.
package document

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// Document is a generated file.
type Document struct {
	// Path is where it is, relative to the repository's root.
	Path string
	// Render returns what belongs into it, from the sources below root.
	Render func(root string) ([]byte, error)
}

// Main writes the document in the repository's root, which is the working directory, and ends the program when it cannot.
func (d Document) Main() {
	content, err := d.Render(".")
	if err == nil {
		err = os.WriteFile(d.Path, content, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(1)
	}
}

// Check returns what differs between the document below root and what would be written now.
func (d Document) Check(root string) error {
	want, err := d.Render(root)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(root, d.Path))
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	if diff := cmp.Diff(string(content), string(want)); diff != "" {
		return fmt.Errorf("%s is not up to date, run make generate (-have +want):\n%s", d.Path, diff)
	}
	return nil
}

// Cell makes a text fit into one cell of a Markdown table, and keeps it from being taken for HTML.
func Cell(text string) string {
	return strings.NewReplacer("\n", "<br>", "|", `\|`, "<", "&lt;").Replace(strings.TrimSpace(text))
}
