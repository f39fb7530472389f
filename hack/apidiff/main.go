// SPDX-License-Identifier: Apache-2.0

// Command apidiff compares the Go API below api with that of the last release, or of another revision, and fails when somebody who imports
// it could not compile any more. `make apidiff` runs it in the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// revisionFile names the revision whose CRDs are beside it: the last release.
const revisionFile = "api/testdata/released/revision"

func main() {
	c := comparison{out: os.Stdout}
	flag.StringVar(&c.tool, "apidiff", "apidiff", "path of golang.org/x/exp/cmd/apidiff")
	flag.StringVar(&c.base, "base", "", "revision to compare with; the one in "+revisionFile+" by default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "apidiff:", err)
		os.Exit(1)
	}
}

// comparison is what one run compares.
type comparison struct {
	out        io.Writer
	tool, base string
}

func (c comparison) run(ctx context.Context) error {
	if c.base == "" {
		text, err := os.ReadFile(revisionFile)
		if err != nil {
			return fmt.Errorf("no revision to compare with: %w", err)
		}
		c.base = strings.TrimSpace(string(text))
	}
	before, err := os.MkdirTemp("", "apidiff")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(before) }()
	if err := checkOut(ctx, c.base, before); err != nil {
		return err
	}
	had, err := packages(ctx, before)
	if err != nil {
		return err
	}
	has, err := packages(ctx, ".")
	if err != nil {
		return err
	}
	breaks := false
	for _, name := range had {
		report, err := c.compare(ctx, before, name, slices.Contains(has, name))
		if err != nil {
			return err
		}
		if report != "" {
			breaks = true
			fmt.Fprintf(c.out, "%s, since %s:\n%s\n", name, c.base, report)
		}
	}
	if breaks {
		return errors.New("these changes of the API are not compatible: see docs/support.md")
	}
	fmt.Fprintf(c.out, "%d packages are compatible with %s\n", len(had), c.base)
	return nil
}

// compare returns what is not compatible any more in a package.
func (c comparison) compare(ctx context.Context, before, name string, there bool) (string, error) {
	if !there {
		return "the package is gone", nil
	}
	export := filepath.Join(before, strings.ReplaceAll(name, "/", "_")+".export")
	if _, err := output(ctx, before, c.tool, "-w", export, name); err != nil {
		return "", err
	}
	return output(ctx, ".", c.tool, "-incompatible", export, name)
}

// checkOut writes the packages of a revision, and the modules that they need, into a folder. Nothing in the repository changes.
func checkOut(ctx context.Context, revision, folder string) error {
	archive := filepath.Join(folder, "api.tar")
	if _, err := output(ctx, ".", "git", "archive", "--output="+archive, revision, "go.mod", "go.sum", "api"); err != nil {
		return fmt.Errorf("revision %s is not in the history, fetch the whole history with git fetch --unshallow: %w", revision, err)
	}
	_, err := output(ctx, folder, "tar", "--extract", "--file="+archive)
	return err
}

// packages returns the packages of the API in a folder, without those that have tests only.
func packages(ctx context.Context, folder string) ([]string, error) {
	list, err := output(ctx, folder, "go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./api/...")
	if err != nil {
		return nil, err
	}
	found := strings.Fields(list)
	if len(found) == 0 {
		return nil, errors.New("no packages below api in " + folder)
	}
	return found, nil
}

// output runs a program in a folder and returns what it prints.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	printed, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("run %s: %w", name, err)
	}
	return strings.TrimSpace(string(printed)), nil
}
