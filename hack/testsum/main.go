// SPDX-License-Identifier: Apache-2.0

// Command testsum runs `go test -json` with its arguments, shows a line for every package and the output of what fails,
// and ends with the line "N passed, N failed". It exits with 1 when something failed or nothing ran.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run runs the tests and reports whether all that ran passed and any ran at all.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	// The tests get the chance to stop what they started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, fmt.Errorf("read the events of go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("start go test: %w", err)
	}
	summary := newSummary(out)
	err = summary.read(events)
	waitErr := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(waitErr, &exit) && summary.failed == 0 {
		// go test failed without an event that says so, for example on a package pattern that it cannot load.
		summary.failed++
	} else if waitErr != nil && exit == nil {
		err = errors.Join(err, fmt.Errorf("run go test: %w", waitErr))
	}
	summary.print()
	return err == nil && summary.failed == 0 && summary.passed > 0, err
}
