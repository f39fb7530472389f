// SPDX-License-Identifier: Apache-2.0

// Command images writes the container images of both managers as OCI layouts, without docker and without root, from the repository in
// whose root it runs. The same sources, flags and version of Go give the same digests. With -push it sends what it has written earlier to
// a registry, and with -sign it signs there what it has sent. `make images`, `make push-images` and `make sign` run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
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
	err := run(ctx, os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// request is what the command line asks for: images, unless there is a registry to push to, or to sign in, or a manager that was built.
type request struct {
	settings
	push, sign, beside string
	signer             signer
}

func run(ctx context.Context, arguments []string, epoch string, progress io.Writer) error {
	asked, err := read(arguments, epoch)
	if err != nil {
		return err
	}
	switch {
	case asked.push != "":
		return pushAll(ctx, asked.out, asked.push, progress)
	case asked.sign != "":
		return asked.signer.signAll(ctx, asked.out, asked.sign)
	case asked.beside != "":
		return asked.writeBeside(ctx, asked.beside)
	}
	return asked.write(ctx, programs, progress)
}

// read reads the command line, and the time of the sources in seconds since 1970.
func read(arguments []string, epoch string) (request, error) {
	asked := request{settings: settings{root: "."}}
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&asked.version, "version", "", "version of the images, and their tag; required")
	flags.StringVar(&asked.revision, "revision", "", "commit, with -dirty behind it where files have changed since; required")
	flags.StringVar(&asked.out, "out", "out/images", "folder with a layout for each image; each is removed and written anew")
	flags.StringVar(&asked.registry, "registry", defaultRegistry, "where the images will be: provenance names them so")
	flags.StringVar(&asked.linkFlags, "ldflags", "", "flags of the linker")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,linux/ppc64le,linux/s390x", "what to build for")
	flags.StringVar(&asked.fips, "fips", "", "Go's FIPS 140-3 module to build with, such as certified; the tag ends with -fips")
	flags.StringVar(&asked.builder, "builder", localBuilder, "URI of who builds, for the provenance")
	flags.StringVar(&asked.push, "push", "", "registry and owner to send the images to that are in -out; nothing is built")
	flags.StringVar(&asked.sign, "sign", "", "registry and owner to sign the images in that were sent from -out; nothing is built")
	flags.StringVar(&asked.beside, "beside", "", "manager that was built, to write the other files of its image into -out; there is no image")
	flags.StringVar(&asked.signer.program, "cosign", "cosign", "program that signs")
	flags.StringVar(&asked.signer.key, "key", "", "private key to sign with: a file, or what else cosign takes")
	cosignFlags := flags.String("cosign-flags", "", "flags of cosign, in the place of those that keep out of Sigstore's public services")
	if err := flags.Parse(arguments); err != nil {
		return request{}, err
	}
	asked.signer.flags = strings.Fields(*cosignFlags)
	if asked.push != "" || asked.sign != "" {
		return asked, nil
	}
	for platform := range strings.SplitSeq(*platforms, ",") {
		parsed, err := v1.ParsePlatform(platform)
		if err != nil || parsed.OS == "" || parsed.Architecture == "" {
			return request{}, fmt.Errorf("platform %q is not like linux/amd64", platform)
		}
		asked.platforms = append(asked.platforms, *parsed)
	}
	if asked.beside != "" {
		return asked, nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return request{}, fmt.Errorf("read the time of the sources from SOURCE_DATE_EPOCH, in seconds: %w", err)
	}
	asked.created = time.Unix(seconds, 0).UTC()
	if asked.version == "" || asked.revision == "" {
		return request{}, fmt.Errorf("version %q and revision %q are both required", asked.version, asked.revision)
	}
	return asked, nil
}
