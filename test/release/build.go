// SPDX-License-Identifier: Apache-2.0

// Package release checks the files of a release as clusterctl and the Cluster API operator read them, and makes them for other tests.
package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// Build writes the files of a release into folder out, as `make release` does in the folder that the tools build from. args are further
// flags of hack/release.
func Build(ctx context.Context, tools *localcontrolplane.Tools, version, out string, args ...string) (err error) {
	kustomize, err := tools.Path(ctx, "kustomize")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the program that makes releases: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "release")
	if err := tools.Build(ctx, "./hack/release", program); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-version=" + version, "-out=" + out, "-kustomize=" + kustomize}, args...)...)
	cmd.Dir = tools.Root()
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make release %s: %w: %s", version, err, output)
	}
	return nil
}
