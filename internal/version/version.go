// SPDX-License-Identifier: Apache-2.0

// Package version tells which version of the managers runs.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// unknown is the version of a program that was built outside of a repository, and without one being given.
const unknown = "unknown"

// stamped is set by the linker, with -ldflags "-X github.com/capi-openshift/agent-providers/internal/version.stamped=v0.1.0", where a build
// knows its version better than the go command: images are built without the repository.
var stamped string

// Get returns the version: the one that was given to the build, or else the one that the go command made of the tag or the commit, as it
// does in a clone of the repository.
func Get() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(stamped, unknown)
	}
	return of(stamped, info)
}

func of(stamped string, info *debug.BuildInfo) string {
	module := info.Main.Version
	if module == "(devel)" {
		module = ""
	}
	return cmp.Or(stamped, module, unknown)
}

// UserAgent is how a manager names itself to API servers, registries and assisted-service.
func UserAgent(manager string) string {
	return fmt.Sprintf("%s/%s (%s/%s)", manager, Get(), runtime.GOOS, runtime.GOARCH)
}
