// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/gomega"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
)

// saidOf returns what a layout says about its only image, by kind.
func saidOf(t *testing.T, layout written, image v1.Image) map[string][]byte {
	t.Helper()
	g := NewWithT(t)
	digest, err := image.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	all := map[string][]byte{}
	for _, descriptor := range layout.artifacts {
		artifact, err := readArtifact(layout.top, descriptor)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(artifact.subject).To(Equal(digest))
		all[artifact.kind] = artifact.content
	}
	g.Expect(all).To(And(HaveLen(2), HaveKey(spdxType), HaveKey(inTotoType)))
	return all
}

func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, layout, image := made(t, demoSettings(t))
	document, err := spdxjson.Read(bytes.NewReader(saidOf(t, layout, image)[spdxType]))
	g.Expect(err).NotTo(HaveOccurred())
	packages := map[string]*spdx.Package{}
	for _, p := range document.Packages {
		packages[p.PackageName] = p
	}
	g.Expect(packages).To(And(HaveLen(2), HaveKey("demo"), HaveKey(standard)))
	files, _ := unpacked(t, image)
	sum := sha256.Sum256(files[managerFile])
	g.Expect(packages["demo"].PackageChecksums).To(ConsistOf(HaveField("Value", hex.EncodeToString(sum[:]))))
	g.Expect(packages["demo"].PackageLicenseDeclared).To(Equal("Apache-2.0"))
	g.Expect(packages[standard].PackageLicenseDeclared).To(Equal("BSD-3-Clause"))
	var relations []string
	for _, r := range document.Relationships {
		relations = append(relations, string(r.RefA.ElementRefID)+" "+r.Relationship+" "+string(r.RefB.ElementRefID))
	}
	g.Expect(relations).To(ConsistOf("DOCUMENT DESCRIBES Package-example.com-demo", "Package-example.com-demo DEPENDS_ON Package-std"))
}

func TestProvenance(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := demoSettings(t)
	_, layout, image := made(t, s)
	digest, err := image.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	var statement struct {
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				BuildType            string
				ExternalParameters   map[string]any
				InternalParameters   struct{ Flags, Environment []string }
				ResolvedDependencies []struct {
					URI    string
					Digest map[string]string
				}
			}
		}
	}
	g.Expect(json.Unmarshal(saidOf(t, layout, image)[inTotoType], &statement)).To(Succeed())
	g.Expect(statement.PredicateType).To(Equal("https://slsa.dev/provenance/v1"))
	g.Expect(statement.Subject).To(HaveLen(1))
	g.Expect(statement.Subject[0].Name).To(Equal(testRegistry + "/demo"))
	g.Expect(statement.Subject[0].Digest).To(Equal(map[string]string{"sha256": digest.Hex}))
	build := statement.Predicate.BuildDefinition
	g.Expect(build.ExternalParameters).To(HaveKeyWithValue("platform", native.String()))
	g.Expect(build.InternalParameters.Flags).To(ContainElement("-X main.greeting=world"))
	g.Expect(build.InternalParameters.Environment).To(ContainElements("CGO_ENABLED=0", "GOARCH="+native.Architecture))
	g.Expect(build.ResolvedDependencies[0].URI).To(Equal("git+" + sourceURL + "@" + testRevision))
	g.Expect(build.ResolvedDependencies[0].Digest).To(Equal(map[string]string{"gitCommit": testRevision}))

	s.revision, s.out = testRevision+"-dirty", t.TempDir()
	_, layout, image = made(t, s)
	statement.Predicate.BuildDefinition.ResolvedDependencies = nil
	g.Expect(json.Unmarshal(saidOf(t, layout, image)[inTotoType], &statement)).To(Succeed())
	g.Expect(statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest).To(BeEmpty(), "no commit has these sources")
}
