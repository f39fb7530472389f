// SPDX-License-Identifier: Apache-2.0

// Command contractreport runs the tests that are named after Cluster API's rules and shows, for every rule, what was decided about it and
// how its tests ended. Its arguments are flags of go test. It exits with 1 when a rule that is said to be met is not shown by a passing
// test. Run it in the repository's root.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/capi-openshift/agent-providers/hack/internal/contract"
	"github.com/capi-openshift/agent-providers/hack/internal/gotest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "contractreport:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, flags []string, out io.Writer) error {
	rules, err := contract.Load(".")
	if err != nil {
		return err
	}
	tests, err := contract.FindTests(".")
	if err != nil {
		return err
	}
	ended := results{}
	summary := gotest.NewSummary(out)
	summary.Ended = ended.add
	args := append(slices.Concat([]string{"-run", "^" + contract.FunctionPrefix}, flags), packages(tests)...)
	err = gotest.Run(ctx, args, summary)
	if problems := report(out, rules, tests, ended); len(problems) > 0 {
		err = errors.Join(err, errors.New(strings.Join(problems, "\n")))
	}
	return err
}

// packages are the folders of the tests, each once, as go test takes them.
func packages(tests []contract.Test) []string {
	folders := make([]string, 0, len(tests))
	for _, test := range tests {
		folders = append(folders, "./"+test.Package)
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}
