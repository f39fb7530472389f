// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// module is what `go list` says of a module.
type module struct {
	Path    string
	Version string
	Sum     string // as in go.sum
	Main    bool
	Replace *module
}

// sbom returns the bill of materials of a provider's manager in CycloneDX's format: the modules that are linked into it, and Go's
// standard library. It has no time and no serial number, so that the same sources give the same bytes.
func (r release) sbom(ctx context.Context, p provider) ([]byte, error) {
	modules, err := r.linked(ctx, "./"+p.folder)
	if err != nil {
		return nil, err
	}
	components := []cdx.Component{
		component(cdx.ComponentTypeLibrary, module{Path: "std", Version: strings.TrimPrefix(runtime.Version(), "go")}),
	}
	manager := module{Version: r.version}
	for _, linked := range modules {
		if linked.Main {
			manager.Path = linked.Path + "/" + p.folder
			continue
		}
		components = append(components, component(cdx.ComponentTypeLibrary, linked))
	}
	application := component(cdx.ComponentTypeApplication, manager)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &application}
	bom.Components = &components
	out := &bytes.Buffer{}
	if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("encode the bill of materials of %s: %w", p.name(), err)
	}
	return out.Bytes(), nil
}

// linked returns the modules whose packages a main package imports on Linux, sorted by path.
func (r release) linked(ctx context.Context, pkg string) ([]module, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", pkg)
	cmd.Dir = r.root
	// The platform of the images, wherever the release is made.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules of %s: %w", pkg, withStderr(err))
	}
	modules := map[string]module{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var found struct{ Module *module }
		err := decoder.Decode(&found)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the modules of %s: %w", pkg, err)
		}
		if found.Module != nil { // Nil for the standard library.
			modules[found.Module.Path] = found.Module.replaced()
		}
	}
	return slices.SortedFunc(maps.Values(modules), func(a, b module) int { return strings.Compare(a.Path, b.Path) }), nil
}

// replaced returns the module that go.mod puts in the place of m, which is what is linked.
func (m module) replaced() module {
	if m.Replace != nil {
		return *m.Replace
	}
	return m
}

func component(kind cdx.ComponentType, m module) cdx.Component {
	purl := "pkg:golang/" + m.Path + "@" + url.QueryEscape(m.Version)
	c := cdx.Component{BOMRef: purl, Type: kind, Name: m.Path, Version: m.Version, PackageURL: purl}
	// go.sum's h1 is the SHA-256 of a list of the module's files.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}
