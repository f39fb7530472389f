// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// standard is the name of Go's standard library among modules.
const standard = "std"

// module is a module that is linked into a program.
type module struct {
	name     string // by which it is imported, also where another one replaces it
	path     string // what is linked: the module itself, or its replacement
	version  string
	sum      string // as in go.sum
	dir      string
	main     bool
	folders  map[string]bool // of the packages that are linked
	imports  map[string]bool // names of the modules whose packages those import
	licences []licence
}

// modulePackage is what `go list` says of a package.
type modulePackage struct {
	ImportPath string
	Dir        string
	Imports    []string
	ImportMap  map[string]string
	Standard   bool
	Module     *listedModule
}

// listedModule is what it says of the package's module.
type listedModule struct {
	Path    string
	Version string
	Dir     string
	Main    bool
	Replace *listedModule
}

// modules returns what is linked into a program that was built, sorted by name: the modules that it names itself, with their sums, and how
// their packages import each other.
func (s settings) modules(ctx context.Context, p program, platform v1.Platform, file string) ([]*module, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read what is linked into %s: %w", file, err)
	}
	packages, err := s.packages(ctx, p, platform)
	if err != nil {
		return nil, err
	}
	found := byModule(packages)
	linked := map[string]*debug.Module{standard: {Version: info.GoVersion}, info.Main.Path: {Version: s.version}}
	for _, dependency := range info.Deps {
		linked[dependency.Path] = dependency
		if dependency.Replace != nil {
			linked[dependency.Path] = dependency.Replace
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(linked)), slices.Sorted(maps.Keys(found))) {
		return nil, fmt.Errorf("%s says that %v are linked, go list says %v", file,
			slices.Sorted(maps.Keys(linked)), slices.Sorted(maps.Keys(found)))
	}
	root, err := s.goCommand(ctx, platform, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	found[standard].dir = strings.TrimSpace(string(root))
	for name, m := range found {
		m.path, m.version, m.sum = cmp.Or(linked[name].Path, name), linked[name].Version, linked[name].Sum
		if m.licences, err = m.findLicences(); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *module) int { return cmp.Compare(a.name, b.name) }), nil
}

// packages returns every package that is linked into a program.
func (s settings) packages(ctx context.Context, p program, platform v1.Platform) (map[string]modulePackage, error) {
	out, err := s.goCommand(ctx, platform, "list", "-deps", "-json=ImportPath,Dir,Imports,ImportMap,Standard,Module", p.pkg)
	if err != nil {
		return nil, err
	}
	packages := map[string]modulePackage{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var found modulePackage
		err := decoder.Decode(&found)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the packages of %s: %w", p.pkg, err)
		}
		packages[found.ImportPath] = found
	}
}

func (p modulePackage) moduleName() string {
	if p.Module == nil {
		return standard
	}
	return p.Module.Path
}

// byModule gathers packages by the names of their modules.
func byModule(packages map[string]modulePackage) map[string]*module {
	modules := map[string]*module{}
	for _, found := range packages {
		name := found.moduleName()
		m := modules[name]
		if m == nil {
			m = &module{name: name, folders: map[string]bool{}, imports: map[string]bool{}}
			modules[name] = m
		}
		m.add(found, packages)
	}
	return modules
}

// add counts a package among those of its module.
func (m *module) add(found modulePackage, packages map[string]modulePackage) {
	m.folders[found.Dir] = true
	if found.Module != nil {
		m.main, m.dir = found.Module.Main, found.Module.Dir
		if found.Module.Replace != nil {
			m.dir = found.Module.Replace.Dir
		}
	}
	for _, path := range found.Imports {
		imported, ok := packages[cmp.Or(found.ImportMap[path], path)]
		if !ok { // "C" and "unsafe" are no packages with files.
			continue
		}
		if name := imported.moduleName(); name != m.name {
			m.imports[name] = true
		}
	}
}
