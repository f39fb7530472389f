// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// defaultOSImage is the version of the newest image of a service that has all of them.
const defaultOSImage = "4.20"

// OSImage is an operating system that the service makes images of.
type OSImage struct {
	// Version is that of its release, as 4.20 or 4.20.1.
	Version string
	// Architecture is x86_64 when it is empty.
	Architecture string
}

// osImages are those that a service has. Without any it has all.
type osImages []OSImage

// SetOSImages changes the images that the service has, as its operator does when somebody changes the AgentServiceConfig: it starts the
// service anew, which looks at every InfraEnv again.
func (s *Simulator) SetOSImages(ctx context.Context, images ...OSImage) error {
	s.backend.mu.Lock()
	s.backend.opts.OSImages = images
	s.backend.mu.Unlock()
	var list aiv1.InfraEnvList
	if err := s.client.List(ctx, &list); err != nil {
		return fmt.Errorf("cannot list the InfraEnvs: %w", err)
	}
	for i := range list.Items {
		s.enqueueInfraEnv(client.ObjectKeyFromObject(&list.Items[i]))
	}
	return nil
}

// choose returns the version of the image that an InfraEnv gets, or why there is none, in the service's words. The service chooses for an
// InfraEnv without a version when it is new, and keeps to that.
func (images osImages) choose(in imageInputs, env *infraEnv) (string, error) {
	if env != nil {
		wanted := cmp.Or(in.OSImageVersion, env.osImage)
		version, why := images.find(wanted, in.Architecture)
		if why != "" {
			return "", userError("No OS image for Openshift version %s and architecture %s: %s", wanted, in.Architecture, why)
		}
		return version, nil
	}
	if in.OSImageVersion == "" {
		version := images.newest(in.Architecture)
		if version == "" {
			return "", userError("Failed to get latest OS image for architecture %s: No OS images are available", in.Architecture)
		}
		return version, nil
	}
	version, why := images.find(in.OSImageVersion, in.Architecture)
	if why != "" {
		return "", userError("Specified OSImageVersion is missing from AgentServiceConfig")
	}
	return version, nil
}

// find returns the version of the image for a version that is asked for: that very version, else its minor version, else the newest of
// that. Otherwise it says why there is none.
func (images osImages) find(wanted, architecture string) (version, why string) {
	if len(images) == 0 {
		return wanted, ""
	}
	versions := images.of(architecture)
	if len(versions) == 0 {
		return "", fmt.Sprintf("The requested CPU architecture (%s) isn't specified in OS images list", architecture)
	}
	if slices.Contains(versions, wanted) {
		return wanted, ""
	}
	if slices.Contains(versions, minorOf(wanted)) {
		return minorOf(wanted), ""
	}
	versions = slices.DeleteFunc(versions, func(version string) bool { return minorOf(version) != minorOf(wanted) })
	if len(versions) == 0 {
		return "", fmt.Sprintf("The requested OS image for version (%s) and CPU architecture (%s) isn't specified in OS images list",
			wanted, architecture)
	}
	return versions[len(versions)-1], ""
}

// newest is the version of the newest image for an architecture; empty when there is none.
func (images osImages) newest(architecture string) string {
	if len(images) == 0 {
		return defaultOSImage
	}
	versions := images.of(architecture)
	if len(versions) == 0 {
		return ""
	}
	return versions[len(versions)-1]
}

// of are the versions of images for an architecture, older ones first.
func (images osImages) of(architecture string) []string {
	var versions []string
	for _, image := range images {
		if normal(image.Architecture) == normal(architecture) {
			versions = append(versions, image.Version)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return parseVersion(a).Compare(parseVersion(b)) })
	return versions
}

// normal is the service's own name of an architecture.
func normal(architecture string) string {
	if architecture == "aarch64" {
		return "arm64"
	}
	return cmp.Or(architecture, defaultArchitecture)
}

func minorOf(version string) string {
	v := parseVersion(version)
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// parseVersion is 0.0.0 for what is no version.
func parseVersion(version string) semver.Version {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return semver.Version{}
	}
	return v
}
