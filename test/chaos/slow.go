// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

const (
	// slowSync is how long each fsync of a slow etcd takes, and quickWork what it gets done between two of them.
	slowSync  = 500 * time.Millisecond
	quickWork = 50 * time.Millisecond
)

// SlowDown makes etcd as slow as on a disk on which each fsync takes half a second, by stopping the process for that long again and again:
// whatever is written meanwhile waits for the next moment, and so do reads, which wait behind writes. The function that it returns ends
// that, and tells what went wrong.
func SlowDown(etcd *localcontrolplane.Process) func() error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			err = stopFor(ctx, etcd, slowSync)
			pause(ctx, quickWork)
		}
		done <- err
	}()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// stopFor stops a process for some time, or until ctx ends.
func stopFor(ctx context.Context, process *localcontrolplane.Process, d time.Duration) error {
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, d)
	return process.Signal(syscall.SIGCONT)
}

// pause returns after some time, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
