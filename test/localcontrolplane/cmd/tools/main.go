// SPDX-License-Identifier: Apache-2.0

// Command tools builds third-party programs that the Makefile and the tests use and prints where they are, one path a
// line: go run ./test/localcontrolplane/cmd/tools kubectl kustomize. With -download it only fetches the modules.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

func main() {
	download := flag.Bool("download", false, "only download the modules of the repository and of every tool")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: tools [-download] NAME...\nnames: %s\n", strings.Join(localcontrolplane.ToolNames(), " "))
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *download, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, download bool, names []string) error {
	tools, err := localcontrolplane.NewTools(os.Stderr)
	if err != nil {
		return err
	}
	if download {
		return tools.Download(ctx)
	}
	for _, name := range names {
		path, err := tools.Path(ctx, name)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
