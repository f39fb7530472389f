// SPDX-License-Identifier: Apache-2.0

//go:build images

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// TestVulncheck runs make vulncheck with two databases: an empty one, and one that says something of a function that both managers call.
func TestVulncheck(t *testing.T) {
	g := NewWithT(t)
	said, err := vulncheck(t, "")
	g.Expect(err).NotTo(HaveOccurred(), said)
	g.Expect(said).To(ContainSubstring("No vulnerabilities found"))
	said, err = vulncheck(t, "sigs.k8s.io/controller-runtime")
	g.Expect(err).To(HaveOccurred())
	g.Expect(said).To(And(ContainSubstring("GO-2000-0001"), ContainSubstring("SetLogger")))
}

// vulncheck runs it with a database that has one vulnerability, of a function of a module, or none.
func vulncheck(t *testing.T, module string) (string, error) {
	t.Helper()
	g := NewWithT(t)
	const modified = "2000-01-01T00:00:00Z"
	database := t.TempDir()
	files := map[string]string{
		"index/db.json": fmt.Sprintf(`{"modified": %q}`, modified), "index/modules.json": "[]", "index/vulns.json": "[]",
	}
	if module != "" {
		files["index/modules.json"] = fmt.Sprintf(`[{"path": %q, "vulns": [{"id": "GO-2000-0001", "modified": %q}]}]`, module, modified)
		files["index/vulns.json"] = fmt.Sprintf(`[{"id": "GO-2000-0001", "modified": %q}]`, modified)
		files["ID/GO-2000-0001.json"] = fmt.Sprintf(`{"schema_version": "1.3.1", "id": "GO-2000-0001", "modified": %q, "published": %q,
			"summary": "Made up for a test", "details": "Made up for a test.",
			"database_specific": {"url": "https://pkg.go.dev/vuln/GO-2000-0001"}, "affected": [{"package": {"name": %q, "ecosystem": "Go"},
			"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": %q, "symbols": ["SetLogger"]}]}}]}`, modified, modified, module, module+"/pkg/log")
	}
	for name, content := range files {
		file := filepath.Join(database, name)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	}
	cmd := exec.CommandContext(t.Context(), "make", "vulncheck", "DB="+database)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
