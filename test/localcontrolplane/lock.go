// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const lockRetryInterval = 200 * time.Millisecond

// lockFile takes an exclusive lock on the file at path, which it creates when missing, and returns the function that
// releases it. The kernel releases the lock of a process that dies. It gives up when ctx is done.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open lock file %s: %w", path, err)
	}
	// A blocking lock could not be interrupted by ctx, and the kernel offers no event to wait for instead.
	ticker := time.NewTicker(lockRetryInterval)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("gave up waiting for %s, which another build holds: %w", path, ctx.Err()), file.Close())
		case <-ticker.C:
		}
	}
}
