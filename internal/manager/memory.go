// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
)

const (
	// memoryLimitVariable is Go's own variable for the limit. Who sets it knows better.
	memoryLimitVariable = "GOMEMLIMIT"
	// garbageVariable is Go's own variable for how much garbage may lie about, in percent of what is in use.
	garbageVariable = "GOGC"
	// leastGarbage is how many bytes of garbage may lie about in any manager that uses as much: less would keep the collector busy in one of
	// few clusters.
	leastGarbage = 16 << 20
	// leastShare is how much may at least, in percent of what is in use, and mostShare how much at most, as in Go. What a manager holds of
	// thousands of clusters hardly changes, so that the collector has little to do, and the memory is what costs. It holds that of the
	// greatest garbage there was: objects stay where they are put, and the room between them is not given back.
	leastShare = 10
	mostShare  = 100
	// memoryShare is the share of the container's memory, in percent, up to which Go lets garbage lie about. The rest is for what Go does not
	// count: the program itself, and what the kernel holds for it.
	memoryShare = 90
)

// limitFiles are where the kernel tells the limit of the container that a process is in: with version 2 of cgroups, and with version 1.
func limitFiles() []string {
	return []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}
}

// limitMemory lets little garbage lie about, and the collector work harder before the container's limit is reached. Without a limit, a heap
// of two thirds of that size is enough to be killed, because of the garbage. Nothing is limited outside of a container.
func limitMemory(log logr.Logger) {
	if os.Getenv(garbageVariable) == "" {
		limitGarbage()
	}
	if os.Getenv(memoryLimitVariable) != "" {
		return
	}
	if limit := memoryLimit(os.DirFS("/")); limit > 0 {
		debug.SetMemoryLimit(limit)
		log.Info("Memory is limited", "bytes", limit)
	}
}

// limitGarbage sets how much garbage may lie about, now and after each collection.
func limitGarbage() {
	live := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(live)
	debug.SetGCPercent(garbageShare(live[0].Value.Uint64()))
	runtime.AddCleanup(&collected{}, func(int) { limitGarbage() }, 0)
}

// liveHeap is how many bytes of the heap were in use at the end of the last collection.
const liveHeap = "/gc/heap/live:bytes"

// collected is garbage at once, so that the next collection finds it. It has a pointer, since Go puts small objects without any together.
type collected struct{ _ *collected }

// garbageShare is how much garbage may lie about, in percent of the heap that is in use.
func garbageShare(live uint64) int {
	const percent = 100
	return int(min(mostShare, max(leastShare, leastGarbage*percent/max(live, 1))))
}

// memoryLimit is the share of the container's limit; 0 when it has none.
func memoryLimit(root fs.FS) int64 {
	for _, file := range limitFiles() {
		data, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		// Without a limit, version 2 says "max", and version 1 a number as large as it can count pages for.
		if err != nil || limit > math.MaxInt64/2 {
			return 0
		}
		return limit / 100 * memoryShare
	}
	return 0
}
