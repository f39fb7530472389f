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
	"os/signal"
	"slices"
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

// run runs every group of tests and reports whether all that ran passed and any ran at all.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	summary := gotest.NewSummary(out)
	var err error
	for _, group := range groups(args) {
		err = errors.Join(err, gotest.Run(ctx, group, summary))
	}
	summary.Print()
	return err == nil && summary.Failed == 0 && summary.Passed > 0, err
}

// groups splits the arguments at every --.
func groups(args []string) [][]string {
	i := slices.Index(args, "--")
	if i < 0 {
		return [][]string{args}
	}
	return append([][]string{args[:i]}, groups(args[i+1:])...)
}
