// SPDX-License-Identifier: Apache-2.0

// Command releasenotes writes what has changed between two revisions: first what docs/release-notes.md says more than before, which people
// have written, then every commit, by what it has changed. `make release-notes` runs it in the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

const notesPath = "docs/release-notes.md"

func main() {
	from := flag.String("from", "", "revision of the release before; the last tag before -to by default, the first commit without one")
	to := flag.String("to", "HEAD", "revision of the release")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	notes, err := write(ctx, *from, *to)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "releasenotes:", err)
		os.Exit(1)
	}
	fmt.Print(notes)
}

// write returns the notes.
func write(ctx context.Context, from, to string) (string, error) {
	if from == "" {
		// Without a tag there is no release before: everything is new.
		from, _ = git(ctx, "describe", "--tags", "--abbrev=0", to+"^")
	}
	span, before := to, ""
	if from != "" {
		span = from + ".." + to
		// The page may be newer than the release before.
		before, _ = git(ctx, "show", from+":"+notesPath)
	}
	now, err := git(ctx, "show", to+":"+notesPath)
	if err != nil {
		return "", err
	}
	log, err := git(ctx, "log", "--no-merges", "--reverse", "--name-only", "--format="+begin+"%h"+separator+"%s", span)
	if err != nil {
		return "", err
	}
	out := &strings.Builder{}
	fmt.Fprintf(out, "# Changes from %s to %s\n", orFirst(from), to)
	out.WriteString(added(before, now))
	out.WriteString(listed(parse(log)))
	return out.String(), nil
}

func orFirst(from string) string {
	if from == "" {
		return "the first commit"
	}
	return from
}

func git(ctx context.Context, args ...string) (string, error) {
	printed, err := exec.CommandContext(ctx, "git", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("run git: %w", err)
	}
	return strings.TrimSpace(string(printed)), nil
}
