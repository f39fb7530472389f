// SPDX-License-Identifier: Apache-2.0

// Command testsum runs `go test -json` with its arguments, shows a line for every package and the output of what fails,
// and ends with the line "N passed, N failed". It exits with 1 when something failed or nothing ran. Arguments after a --
// are another run of go test, whose tests are counted with the first one's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
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

// run runs every group of tests and reports whether all that ran passed and any ran at all.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	summary := newSummary(out)
	var err error
	for _, group := range groups(args) {
		err = errors.Join(err, goTest(ctx, group, summary))
	}
	summary.print()
	return err == nil && summary.failed == 0 && summary.passed > 0, err
}

// groups splits the arguments at every --.
func groups(args []string) [][]string {
	i := slices.Index(args, "--")
	if i < 0 {
		return [][]string{args}
	}
	return append([][]string{args[:i]}, groups(args[i+1:])...)
}

// goTest runs one group and adds its tests to the summary.
func goTest(ctx context.Context, args []string, summary *summary) error {
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
	failed := summary.failed
	readErr := summary.read(events)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && summary.failed > failed {
		return readErr
	}
	if err != nil {
		// go test failed without an event that says so, for example on a flag that it does not know.
		summary.failed++
		err = fmt.Errorf("run go test: %w", err)
	}
	return errors.Join(readErr, err)
}
