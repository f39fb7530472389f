// SPDX-License-Identifier: Apache-2.0

// Package chart checks the Helm chart of both providers with the real Helm, and makes it for other tests.
package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// Name is that of the chart.
const Name = "openshift-assisted"

// Source is what a chart is made from.
type Source struct {
	// Version is the release's.
	Version string
	// Release is a folder with its components files.
	Release string
	// Root is the folder with config/.
	Root string
}

// Build writes the chart into a folder below out, as `make chart` does, and returns that folder. The program is that of this repository.
func Build(ctx context.Context, tools *localcontrolplane.Tools, source Source, out string) (folder string, err error) {
	kustomize, err := tools.Path(ctx, "kustomize")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder for the program that makes charts: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "chart")
	if err := tools.Build(ctx, "./hack/chart", program); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "-version="+source.Version, "-release="+source.Release, "-root="+source.Root, "-out="+out,
		"-kustomize="+kustomize)
	cmd.Dir = tools.Root()
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot make the chart of %s: %w: %s", source.Version, err, output)
	}
	return filepath.Join(out, Name), nil
}
