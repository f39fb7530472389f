// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// memoryLimitVariable is Go's own variable for the limit. Who sets it knows better.
	memoryLimitVariable = "GOMEMLIMIT"
	// garbageVariable is Go's own variable for how much garbage may lie about, in percent of what is in use.
	garbageVariable = "GOGC"
	// garbageShare is that in a manager, where Go has 100: what a manager holds of thousands of clusters hardly changes, so that the collector
	// has little to do, and the memory is what costs. A share of stacks counts too.
	garbageShare = 25
	// startShare is that while a manager starts. What it holds from then on lies where it is put, and the room of the garbage between stays
	// empty for the most part: with 25 percent, 500 idle clusters took 229 MiB in the place of 210, and the start took the same CPU time.
	startShare = 10
	// startTime is for how long a manager starts after it has begun to lead, when it opens the connections to all clusters.
	startTime = 2 * time.Minute
	// memoryShare is the share of the container's memory, in percent, up to which Go lets garbage lie about. The rest is for what Go does not
	// count: the program itself, and what the kernel holds for it.
	memoryShare = 90
)

// limitFiles are where the kernel tells the limit of the container that a process is in: with version 2 of cgroups, and with version 1.
func limitFiles() []string {
	return []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}
}

// limitMemory lets the garbage collector work harder, and much harder before the container's limit is reached. Without a limit, a heap of
// two thirds of that size is enough to be killed, because of the garbage. Nothing is limited outside of a container.
func limitMemory(log logr.Logger) {
	if os.Getenv(garbageVariable) == "" {
		debug.SetGCPercent(startShare)
	}
	if os.Getenv(memoryLimitVariable) != "" {
		return
	}
	if limit := memoryLimit(os.DirFS("/")); limit > 0 {
		debug.SetMemoryLimit(limit)
		log.Info("Memory is limited", "bytes", limit)
	}
}

// relaxLater lets more garbage lie about once the manager has started, unless Go's own variable says how much.
func relaxLater(mgr ctrl.Manager) error {
	if os.Getenv(garbageVariable) != "" {
		return nil
	}
	err := mgr.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error { return relax(ctx, time.After(startTime)) }))
	if err != nil {
		return fmt.Errorf("add what ends the start: %w", err)
	}
	return nil
}

// relax lets more garbage lie about some time after the manager has begun to lead.
func relax(ctx context.Context, started <-chan time.Time) error {
	select {
	case <-ctx.Done():
	case <-started:
		debug.SetGCPercent(garbageShare)
	}
	return nil
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
