// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/capi-openshift/agent-providers"

// RepositoryRoot returns the absolute path of the folder that holds this module's go.mod, found by walking up from the
// working directory. It fails when the working directory is outside of the repository.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		// Tool modules below hack/tools have a go.mod too, so the module's name counts and not the file alone.
		if err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of module %s in %s or above: run this inside the repository", modulePath, start)
		}
	}
}

// ModuleDir returns the folder of a required module's source in the module cache, such as that of sigs.k8s.io/cluster-api.
func (t *Tools) ModuleDir(ctx context.Context, module string) (string, error) {
	return moduleSource(ctx, t.root, module)
}

// moduleSource does the same for a module that the go.mod in folder requires.
func moduleSource(ctx context.Context, folder, module string) (string, error) {
	// Without the download, Dir is empty on a machine that has no source of this module, as when what was built of it is in the cache.
	if _, err := goCommand(ctx, folder, "mod", "download", module); err != nil {
		return "", err
	}
	return goCommand(ctx, folder, "list", "-m", "-f", "{{.Dir}}", module)
}

// goCommand runs the go command in dir and returns its trimmed standard output. Its standard error is part of the error.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	return command(ctx, dir, "go", args...)
}

func command(ctx context.Context, dir, program string, args ...string) (string, error) {
	return commandWith(ctx, dir, nil, program, args...)
}

// commandWith runs a program in dir, with further environment variables, and returns its trimmed standard output.
func commandWith(ctx context.Context, dir string, environment []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	// One set of build settings everywhere, so that every build finds the packages that another one compiled.
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"), environment...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("%s %s in %s failed: %w", program, strings.Join(args, " "), dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}
