// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sigs.k8s.io/cluster-api/util/container"
)

const (
	defaultRegistry = "ghcr.io/capi-openshift"
	sourceURL       = "https://github.com/capi-openshift/agent-providers"
	// localBuilder says that whoever ran `make images` has built: nobody else vouches for it.
	localBuilder = sourceURL + "/hack/images"
)

// program is a main package that becomes an image.
type program struct {
	pkg         string // such as ./bootstrap
	image       string // name of the repository below the registry
	title       string
	description string
}

var programs = []program{
	{
		pkg: "./bootstrap", image: "bootstrap-openshift-assisted", title: "OpenShift Assisted bootstrap provider",
		description: "Manager of the Cluster API bootstrap provider for OpenShift on bare metal",
	},
	{
		pkg: "./controlplane", image: "controlplane-openshift-assisted", title: "OpenShift Assisted control plane provider",
		description: "Manager of the Cluster API control plane provider for OpenShift on bare metal",
	},
}

// settings are what all images of a run have in common.
type settings struct {
	root      string // of the repository
	out       string
	registry  string
	version   string
	revision  string
	linkFlags string
	fips      string // value of GOFIPS140; empty for Go's usual cryptography
	builder   string
	created   time.Time // of the sources
	platforms []v1.Platform
}

// tag is the images' tag, as the components of the release name it: no tag may have the plus of build metadata.
func (s settings) tag() string {
	tag := container.SemverToOCIImageTag(s.version)
	if s.fips == "" {
		return tag
	}
	return tag + "-fips"
}

// environment returns the variables that decide what the go command makes. Those of whoever runs this do not count, nor those of
// "go env -w": without GOENV=off they would stand for each variable that is empty here.
func (s settings) environment(platform v1.Platform) []string {
	return []string{
		"GOOS=" + platform.OS, "GOARCH=" + platform.Architecture, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "GODEBUG=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOPPC64=power8", "GOFIPS140=" + s.fips, "GOENV=off",
	}
}

// fetching are the names of the variables that say where modules and toolchains come from, and where they are kept. Whoever runs this may
// have a proxy, or no network, and has said so by "go env -w"; go.sum says which modules and toolchains are the right ones.
var fetching = []string{
	"GOAUTH", "GOCACHE", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOVCS",
}

// sources returns those variables.
func (s settings) sources(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, fetching...)...)
	cmd.Dir = s.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("read what go env prints: %w", err)
	}
	variables := make([]string, 0, len(fetching))
	for _, name := range fetching {
		variables = append(variables, name+"="+values[name])
	}
	return variables, nil
}

// compileFlags are those of `go build`. Images are built without the repository's own stamp, so that Dockerfiles make the same program.
func (s settings) compileFlags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", s.linkFlags}
}

// compile builds a program into a file.
func (s settings) compile(ctx context.Context, p program, platform v1.Platform, file string) error {
	arguments := append([]string{"build"}, s.compileFlags()...)
	_, err := s.goCommand(ctx, platform, append(arguments, "-o", file, p.pkg)...)
	return err
}

func (s settings) goCommand(ctx context.Context, platform v1.Platform, arguments ...string) ([]byte, error) {
	sources, err := s.sources(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir, cmd.Env = s.root, slices.Concat(os.Environ(), sources, s.environment(platform))
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(arguments, " "), err)
	}
	return out, nil
}

// write makes a layout for each program, and says its digest.
func (s settings) write(ctx context.Context, programs []program, progress io.Writer) error {
	for _, p := range programs {
		digest, err := s.writeLayout(ctx, p)
		if err != nil {
			return fmt.Errorf("make image %s: %w", p.image, err)
		}
		fmt.Fprintf(progress, "%s/%s:%s@%s\n", s.registry, p.image, s.tag(), digest)
	}
	return nil
}

// removeLayout removes the layout of an earlier run, and no other folder with files.
func removeLayout(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for an earlier image: %w", err)
	}
	_, err = os.Stat(filepath.Join(dir, "oci-layout"))
	if len(entries) > 0 && err != nil {
		return fmt.Errorf("folder %s has files that are no image: choose another one, it would be removed", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the earlier image: %w", err)
	}
	return nil
}
