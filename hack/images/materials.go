// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	gomodule "golang.org/x/mod/module"
)

// noAssertion is SPDX's word for what nobody has looked for.
const noAssertion = "NOASSERTION"

// materials returns the bill of materials of a program that was built, in SPDX's format: the modules that it names itself, their licences,
// and which of them import which.
func (s settings) materials(p program, platform v1.Platform, binary []byte, modules []*module) ([]byte, error) {
	sum := sha256.Sum256(binary)
	digest := hex.EncodeToString(sum[:])
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: fmt.Sprintf("%s/%s:%s %s", s.registry, p.image, s.tag(), platform.String()),
		// The same program has the same document.
		DocumentNamespace: sourceURL + "/spdx/" + p.image + "-" + digest,
		CreationInfo: &spdx.CreationInfo{
			Created:  s.created.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "capi-openshift"}, {CreatorType: "Tool", Creator: "hack/images"}},
		},
	}
	relate := func(from, to common.ElementID, relationship string) {
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to}, Relationship: relationship,
		})
	}
	ids := map[string]common.ElementID{}
	for _, m := range modules {
		described, err := m.spdxPackage()
		if err != nil {
			return nil, err
		}
		if m.main {
			described.PackageName, described.PackageFileName, described.PrimaryPackagePurpose = p.image, "/"+managerFile, "APPLICATION"
			described.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest}}
			relate("DOCUMENT", described.PackageSPDXIdentifier, common.TypeRelationshipDescribe)
		}
		ids[m.name] = described.PackageSPDXIdentifier
		document.Packages = append(document.Packages, described)
	}
	for _, m := range modules {
		for _, imported := range slices.Sorted(maps.Keys(m.imports)) {
			relate(ids[m.name], ids[imported], common.TypeRelationshipDependsOn)
		}
	}
	out := &bytes.Buffer{}
	if err := spdxjson.Write(document, out, spdxjson.Indent(" ")); err != nil {
		return nil, fmt.Errorf("encode the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// notInIDs is what SPDX does not allow in identifiers.
var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// spdxPackage describes a module as SPDX does.
func (m *module) spdxPackage() (*spdx.Package, error) {
	location, err := m.location()
	if err != nil {
		return nil, err
	}
	described := &spdx.Package{
		PackageName: m.path, PackageVersion: m.version,
		PackageSPDXIdentifier:   common.ElementID("Package-" + notInIDs.ReplaceAllString(m.path, "-")),
		PackageDownloadLocation: location, IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded: m.expression(), PackageLicenseDeclared: m.expression(), PackageCopyrightText: noAssertion,
		PrimaryPackagePurpose: "LIBRARY",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: m.purl(),
		}},
	}
	if m.sum != "" {
		described.PackageSourceInfo = "go.sum: " + m.sum
	}
	if m.path != m.name {
		described.PackageComment = "replaces " + m.name
	}
	return described, nil
}

// purl is how scanners for vulnerabilities name a module.
func (m *module) purl() string {
	return "pkg:golang/" + m.path + "@" + url.PathEscape(strings.TrimPrefix(m.version, "go"))
}

// location is where everybody can get the module.
func (m *module) location() (string, error) {
	switch {
	case m.main:
		return "git+" + sourceURL, nil
	case m.name == standard:
		return "git+https://go.googlesource.com/go@" + m.version, nil
	}
	path, err := gomodule.EscapePath(m.path)
	if err != nil {
		return "", fmt.Errorf("find where %s comes from: %w", m.path, err)
	}
	version, err := gomodule.EscapeVersion(m.version)
	if err != nil {
		return "", fmt.Errorf("find where %s comes from: %w", m.path, err)
	}
	return "https://proxy.golang.org/" + path + "/@v/" + version + ".zip", nil
}
