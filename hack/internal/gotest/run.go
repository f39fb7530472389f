// SPDX-License-Identifier: Apache-2.0

// Package gotest runs `go test -json` and counts what it reports.
package gotest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Run runs `go test -json` with the arguments and adds its tests to the summary. Failing tests are no error.
func Run(ctx context.Context, args []string, summary *Summary) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	// The tests get the chance to stop what they started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read the events of go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	failed := summary.Failed
	readErr := summary.read(events)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && summary.Failed > failed {
		return readErr
	}
	if err != nil {
		// go test failed without an event that says so, for example on a flag that it does not know.
		summary.Failed++
		err = fmt.Errorf("run go test: %w", err)
	}
	return errors.Join(readErr, err)
}
