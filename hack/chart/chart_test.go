// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// TestVersion: a chart needs a version that Helm can compare.
func TestVersion(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v1", "v0.1.0.1", "main"} {
		_, err := chart{version: version}.contents(t.Context())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is not a semantic version with a leading v")), version)
	}
}

// TestFolderIsKept: nothing but an earlier chart is replaced, and that only by a chart.
func TestFolderIsKept(t *testing.T) {
	g := NewWithT(t)
	c := chart{version: "v0.1.0", release: t.TempDir(), out: t.TempDir()}
	file := filepath.Join(c.out, name, "Chart.yaml")
	g.Expect(os.Mkdir(filepath.Dir(file), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	g.Expect(c.write(t.Context())).To(MatchError(ContainSubstring("read the release")))
	g.Expect(file).To(BeAnExistingFile())
}

// TestReplace: a folder that is no chart is left alone.
func TestReplace(t *testing.T) {
	contents := map[string][]byte{"Chart.yaml": []byte("a"), "templates/b/c.yaml": []byte("d")}
	for name, tt := range map[string]struct {
		there   []string
		problem string
	}{
		"nothing":          {},
		"an empty folder":  {there: []string{""}},
		"an earlier chart": {there: []string{"Chart.yaml", "templates/old.yaml"}},
		"something else":   {there: []string{"letter.txt"}, problem: "is no chart: choose another one"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := filepath.Join(t.TempDir(), "chart")
			for _, file := range tt.there {
				path := filepath.Join(folder, file)
				g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
				if file != "" {
					g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
				}
			}
			err := replace(folder, contents)
			if tt.problem != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.problem)))
				g.Expect(filepath.Join(folder, "letter.txt")).To(BeAnExistingFile())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.ReadFile(filepath.Join(folder, "templates", "b", "c.yaml"))).To(Equal([]byte("d")))
			g.Expect(filepath.Join(folder, "templates", "old.yaml")).NotTo(BeAnExistingFile())
		})
	}
}

func TestKustomizations(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	for kind, want := range map[folderKind]string{
		whole:     "{components: [], resources: [config/bootstrap/x]}",
		component: "{components: [config/bootstrap/x], resources: [config/bootstrap/default]}",
		shared:    "{components: [config/components/x], resources: [config/bootstrap/default]}",
		addition:  "{components: [], resources: [config/bootstrap/default, config/bootstrap/x]}",
	} {
		k := variantFolder{name: "x", kind: kind}.kustomization(root, providers[0])
		g.Expect(k.write(root)).To(Succeed())
		data, err := os.ReadFile(filepath.Join(root, "kustomization.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		var written, wanted any
		g.Expect(yaml.Unmarshal(data, &written)).To(Succeed())
		g.Expect(yaml.Unmarshal([]byte(want), &wanted)).To(Succeed())
		g.Expect(written).To(Equal(wanted))
	}
}
