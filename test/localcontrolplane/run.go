// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Run runs a tool, such as kubectl or clusterctl, against this cluster as cluster-admin and returns its standard output; its standard
// error is part of the error. environment are further variables in the form NAME=value. The tool's own files, such as caches and
// clusterctl's configuration, are in a home of this control plane and never the user's.
func (cp *ControlPlane) Run(ctx context.Context, tool string, environment []string, args ...string) ([]byte, error) {
	path, err := cp.tools.Path(ctx, tool)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(cp.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the home of %s: %w", tool, err)
	}
	var stdout, stderr strings.Builder
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append([]string{
		"KUBECONFIG=" + cp.admin, "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home,
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true", "PATH=" + os.Getenv("PATH"),
	}, environment...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s %s failed: %w: %s", tool, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return []byte(stdout.String()), nil
}
