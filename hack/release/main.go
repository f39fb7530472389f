// SPDX-License-Identifier: Apache-2.0

// Command release writes the files of a release, from the kustomize folders, templates and metadata of the repository in whose root it
// runs. The same sources and flags give the same bytes. `make release` runs it.
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
	r := release{root: ".", images: map[string]string{}}
	flag.StringVar(&r.version, "version", "", "semantic version with a leading v; required")
	flag.StringVar(&r.out, "out", "out/release", "folder that is removed and written anew")
	flag.StringVar(&r.kustomize, "kustomize", "kustomize", "path of kustomize")
	flag.StringVar(&r.registry, "registry", defaultRegistry, "where the images are; their tag is the version")
	for _, p := range providers {
		name := p.name()
		flag.Func(name+"-image", "another image reference of this provider, with a tag, a digest or both", func(image string) error {
			r.images[name] = image
			return nil
		})
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := r.write(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
