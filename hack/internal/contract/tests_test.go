// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

const source = `package p

import "testing"

func TestContractThings(t *testing.T) {
	t.Run("BOOT-1 BOOT-2 kinds are there", func(t *testing.T) {})
	for _, tt := range []struct{ name string }{{name: "CP-1 a row of a table"}, {"no rule"}} {
		t.Run(tt.name, func(t *testing.T) { check("BOOT-4") })
	}
}

func TestOther(t *testing.T) { t.Run("BOOT-3 not in a function for rules", func(t *testing.T) {}) }
`

func TestFindTests(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(dir, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	write("a/b/things_test.go", source)
	write("a/things.go", source)
	write(".hidden/things_test.go", source)

	tests, err := FindTests(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tests).To(Equal([]Test{
		{Package: "a/b", Function: "TestContractThings", Name: "BOOT-1 BOOT-2 kinds are there"},
		{Package: "a/b", Function: "TestContractThings", Name: "CP-1 a row of a table"},
	}))
	g.Expect(tests[0].IDs()).To(Equal([]string{"BOOT-1", "BOOT-2"}))
	g.Expect(tests[0].Sentence()).To(Equal("kinds are there"))
	g.Expect(tests[0].RunName()).To(Equal("BOOT-1_BOOT-2_kinds_are_there"))
	g.Expect(ByRule(tests)).To(And(HaveLen(3), HaveKeyWithValue("BOOT-2", ConsistOf(tests[0])), HaveKeyWithValue("CP-1", ConsistOf(tests[1]))))
	g.Expect(UnknownIDs([]Rule{{ID: "BOOT-1"}, {ID: "BOOT-2"}}, tests)).To(ConsistOf(ContainSubstring("CP-1 is named in TestContractThings")))
}
