// SPDX-License-Identifier: Apache-2.0

// Package version tells which version of the managers runs.
package version

import (
	"cmp"
	"crypto/fips140"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
)

// unknown is the version of a program that was built outside of a repository, and without one being given.
const unknown = "unknown"

// Both are set by the linker, with -ldflags "-X github.com/capi-openshift/agent-providers/internal/version.stamped=v0.1.0", where a build
// knows them better than the go command: images are built without the repository.
var stamped, revision string

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

// Revision returns the commit, with -dirty behind it where files had changed since: the one that was given to the build, or else the one
// that the go command saw.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(revision, unknown)
	}
	return revisionOf(revision, info)
}

func revisionOf(stamped string, info *debug.BuildInfo) string {
	setting := func(key string) string {
		index := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
		if index < 0 {
			return ""
		}
		return info.Settings[index].Value
	}
	commit := setting("vcs.revision")
	if commit != "" && setting("vcs.modified") == "true" {
		commit += "-dirty"
	}
	return cmp.Or(stamped, commit, unknown)
}

// Describe returns in one line what --version tells: version, commit, Go version and platform, and the FIPS 140-3 module that is in use.
func Describe() string {
	fips := ""
	if fips140.Enabled() {
		fips = ", FIPS 140-3 module " + fips140.Version()
	}
	return fmt.Sprintf("%s (revision %s, %s, %s/%s%s)", Get(), Revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH, fips)
}

// UserAgent is how a manager names itself to API servers, registries and assisted-service.
func UserAgent(manager string) string {
	return fmt.Sprintf("%s/%s (%s/%s)", manager, Get(), runtime.GOOS, runtime.GOARCH)
}
