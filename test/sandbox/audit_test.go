// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestWritesThatCount: what a manager writes for clusters counts, refused or not, and nothing else.
func TestWritesThatCount(t *testing.T) {
	g := NewWithT(t)
	const user = "system:serviceaccount:system-ns:manager"
	line := func(verb, uri, resource, namespace string) string {
		return `{"verb":"` + verb + `","requestURI":"` + uri + `","user":{"username":"` + user + `"},"objectRef":{"resource":"` + resource +
			`","namespace":"` + namespace + `"}}`
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	g.Expect(os.WriteFile(log, []byte(strings.Join([]string{
		line("create", "/machines?fieldManager=m", "machines", "demo"),
		line("create", "/machines?dryRun=All", "machines", "demo"),
		line("create", "/events", "events", "demo"),
		line("create", "/events", "events", "system-ns"),
		line("update", "/leases", "leases", "system-ns"),
		line("get", "/machines", "machines", "demo"),
		line("patch", "/machines", "machines", "other"),
		strings.ReplaceAll(line("create", "/machines", "machines", "demo"), user, "admin"),
		strings.Replace(line("create", "/events", "events", "demo"), "{", `{"responseStatus":{"code":409},`, 1),
	}, "\n")), 0o600)).To(Succeed())
	writes, err := Writes(log, user)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writes).To(ConsistOf(
		Write{"create", "machines", 1, 0}, Write{"create", "events", 2, 1}, Write{"patch", "machines", 1, 0},
	))
	all, withoutEvents := Sum(writes)
	g.Expect([]int{all, withoutEvents, Refused(writes)}).To(Equal([]int{4, 2, 1}))
	writes, err = WritesFor(log, user, "demo")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writes).To(ConsistOf(Write{"create", "machines", 1, 0}, Write{"create", "events", 2, 1}))
}
