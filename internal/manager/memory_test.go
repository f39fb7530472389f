// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/fstest"
	"time"

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

// TestGarbage: less garbage than Go's default may lie about, unless somebody has said how much.
func TestGarbage(t *testing.T) {
	for variable, want := range map[string]int{"": startShare, "70": 100} { // Go has read the variable at the start.
		before := debug.SetGCPercent(100)
		t.Setenv(garbageVariable, variable)
		t.Setenv(memoryLimitVariable, "off")
		limitMemory(logr.Discard())
		NewWithT(t).Expect(debug.SetGCPercent(before)).To(Equal(want), variable)
	}
}

// TestRelax: once a manager has started more garbage may lie about, and not before.
func TestRelax(t *testing.T) {
	g := NewWithT(t)
	before := debug.SetGCPercent(startShare)
	defer debug.SetGCPercent(before)
	ended, end := context.WithCancel(t.Context())
	end()
	g.Expect(relax(ended, nil)).To(Succeed())
	g.Expect(debug.SetGCPercent(startShare)).To(Equal(startShare))
	started := make(chan time.Time, 1)
	started <- time.Now()
	g.Expect(relax(t.Context(), started)).To(Succeed())
	g.Expect(debug.SetGCPercent(startShare)).To(Equal(garbageShare))
}
