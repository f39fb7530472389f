// SPDX-License-Identifier: Apache-2.0

// Command images writes the container images of both managers as OCI layouts, without docker and without root, from the repository in
// whose root it runs. The same sources, flags and version of Go give the same digests. With -push it sends what it has written earlier to
// a registry. `make images` and `make push-images` run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s := settings{root: ".", builder: localBuilder}
	var platforms, push string
	flag.StringVar(&s.version, "version", "", "version of the images, and their tag; required")
	flag.StringVar(&s.revision, "revision", "", "commit, with -dirty behind it where files have changed since; required")
	flag.StringVar(&s.out, "out", "out/images", "folder with a layout for each image; each is removed and written anew")
	flag.StringVar(&s.registry, "registry", defaultRegistry, "where the images will be: provenance names them so")
	flag.StringVar(&s.linkFlags, "ldflags", "", "flags of the linker")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64,linux/ppc64le,linux/s390x", "what to build for")
	flag.StringVar(&s.fips, "fips", "", "Go's FIPS 140-3 module to build with, such as certified; the tag ends with -fips")
	flag.StringVar(&s.builder, "builder", localBuilder, "URI of who builds, for the provenance")
	flag.StringVar(&push, "push", "", "registry and owner to send the images to that are in -out; nothing is built")
	flag.Parse()
	if push != "" {
		return pushAll(ctx, s.out, push, os.Stdout)
	}
	for platform := range strings.SplitSeq(platforms, ",") {
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			return fmt.Errorf("read platform %q: %w", platform, err)
		}
		s.platforms = append(s.platforms, *parsed)
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the sources from SOURCE_DATE_EPOCH, in seconds: %w", err)
	}
	s.created = time.Unix(epoch, 0).UTC()
	if s.version == "" || s.revision == "" {
		return fmt.Errorf("version %q and revision %q are both required", s.version, s.revision)
	}
	return s.write(ctx, programs, os.Stdout)
}
