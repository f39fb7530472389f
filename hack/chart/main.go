// SPDX-License-Identifier: Apache-2.0

// Command chart writes a Helm chart of both providers, from the components files of a release and the kustomize folders of the repository
// in whose root it runs. The same inputs give the same bytes. `make chart` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	c := chart{}
	flag.StringVar(&c.root, "root", ".", "folder with config/")
	flag.StringVar(&c.release, "release", "out/release", "folder with the components files of the release")
	flag.StringVar(&c.version, "version", "", "semantic version of the release with a leading v; required")
	flag.StringVar(&c.out, "out", "out", "folder that gets the folder of the chart, which is removed and written anew")
	flag.StringVar(&c.kustomize, "kustomize", "kustomize", "path of kustomize")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.write(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}
