// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
)

func TestMemoryLimit(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	for name, tt := range map[string]struct {
		file, says string
		want       int64
	}{
		"a container's, version 2":     {v2, "1073741824\n", 966367620},
		"a container's, version 1":     {v1, "1073741824\n", 966367620},
		"no limit, version 2":          {v2, "max\n", 0},
		"no limit, version 1":          {v1, "9223372036854771712\n", 0},
		"something else":               {v2, "", 0},
		"a machine that tells nothing": {"etc/hostname", "h", 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{tt.file: {Data: []byte(tt.says)}}
			NewWithT(t).Expect(memoryLimit(root)).To(Equal(tt.want))
		})
	}
}

// TestGarbageShare: of little that is in use as much garbage again may lie about, and a tenth of much.
func TestGarbageShare(t *testing.T) {
	const mebibyte = 1 << 20
	for live, want := range map[uint64]int{
		0: 100, 1: 100, 16 * mebibyte: 100, 32 * mebibyte: 50, 64 * mebibyte: 25, 160 * mebibyte: 10, 4096 * mebibyte: 10,
	} {
		NewWithT(t).Expect(garbageShare(live)).To(Equal(want), "%d bytes", live)
	}
}

// TestGarbage: the share follows what is in use with each collection, unless somebody has said how much.
func TestGarbage(t *testing.T) {
	const foreign = 321
	g := NewWithT(t)
	before := debug.SetGCPercent(foreign)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv(memoryLimitVariable, "off")
	t.Setenv(garbageVariable, "70") // Go has read the variable at the start.
	limitMemory(logr.Discard())
	g.Expect(debug.SetGCPercent(foreign)).To(Equal(foreign))
	t.Setenv(garbageVariable, "")
	limitMemory(logr.Discard())
	g.Expect(debug.SetGCPercent(foreign)).To(BeNumerically("<=", mostShare), "at once")
	g.Eventually(func() int {
		runtime.GC()
		return debug.SetGCPercent(foreign)
	}).Should(BeNumerically("<=", mostShare), "and again after a collection")
}
