// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licence is a file that has to go along with a program that the module is linked into.
type licence struct {
	name string // slash-separated path in the module
	text []byte
	ids  []string // SPDX identifiers of the licences in it; none in a notice
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._].*)?$`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents)([-._].*)?$`)
)

// findLicences reads the files with licences and notices in the folders of the packages that are linked, and above them.
func (m *module) findLicences() ([]licence, error) {
	root := m.dir
	folders := map[string]bool{}
	for folder := range m.folders {
		for ; folder != root && strings.HasPrefix(folder, root); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	folders[root] = true
	var found []licence
	known := false
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		files, err := licencesIn(root, folder)
		if err != nil {
			return nil, fmt.Errorf("find the licence of %s: %w", m.name, err)
		}
		found = append(found, files...)
	}
	for _, l := range found {
		known = known || len(l.ids) > 0
	}
	if !known {
		return nil, fmt.Errorf("module %s has no licence that is known, in any of %v", m.name, slices.Sorted(maps.Keys(folders)))
	}
	return found, nil
}

func licencesIn(root, folder string) ([]licence, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []licence
	for _, entry := range entries {
		isLicence := licenceName.MatchString(entry.Name())
		if entry.IsDir() || strings.HasSuffix(entry.Name(), ".go") || (!isLicence && !noticeName.MatchString(entry.Name())) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		file := licence{name: filepath.ToSlash(relative), text: bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))}
		if isLicence {
			file.ids = identify(text)
		}
		found = append(found, file)
	}
	return found, nil
}

// identify returns the SPDX identifiers of the licences in a text.
func identify(text []byte) []string {
	ids := map[string]bool{}
	for _, match := range licensecheck.Scan(text).Match {
		ids[match.ID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// expression returns the licences of a module as an SPDX expression.
func (m *module) expression() string {
	ids := map[string]bool{}
	for _, l := range m.licences {
		for _, id := range l.ids {
			ids[id] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(ids)), " AND ")
}

// licenceFiles returns the files that the licences of modules want to go along with the program, by their paths in the image.
func licenceFiles(modules []*module) map[string][]byte {
	files := map[string][]byte{}
	for _, m := range modules {
		for _, l := range m.licences {
			name := path.Join("licenses", m.path, l.name)
			if m.main {
				name = l.name
			}
			files[name] = l.text
		}
	}
	return files
}
