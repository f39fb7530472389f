// SPDX-License-Identifier: Apache-2.0

// Command testsum runs `go test -json` with its arguments, shows a line for every package and the output of what fails,
// and ends with the line "N passed, N failed". It exits with 1 when something failed or nothing ran. With -load=N before all
// of them, N busy loops run beside the tests: a test that depends on a machine with idle cores fails then.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/capi-openshift/agent-providers/hack/internal/gotest"
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
	loops, args, err := loadOf(args)
	if err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range loops {
		go burn(ctx)
	}
	summary := gotest.NewSummary(out)
	err = gotest.Run(ctx, args, summary)
	summary.Print()
	return err == nil && summary.Failed == 0 && summary.Passed > 0, err
}

// loadOf takes -load=N off the arguments and returns N, or 0 if it is not there.
func loadOf(args []string) (int, []string, error) {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-load=") {
		return 0, args, nil
	}
	loops, err := strconv.ParseUint(strings.TrimPrefix(args[0], "-load="), 10, 8)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: the number of busy loops is expected: %w", args[0], err)
	}
	return int(loops), args[1:], nil
}

// burn keeps a core busy until the context ends.
func burn(ctx context.Context) {
	for ctx.Err() == nil {
		continue
	}
}
