// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// choosesOSImage reports whether the pass chooses the image that the host boots: an InfraEnv is about to be recorded, the cluster is
// installed, so that it runs a release, and nobody else has decided. What is recorded stays, also when the cluster is upgraded. The disk
// image of a user has a version of its own.
func choosesOSImage(s *scope) bool {
	return s.config.Annotations[bootstrapv1.InfraEnvAnnotation] == "" && s.config.DeletionTimestamp.IsZero() &&
		s.machine.DeletionTimestamp.IsZero() && ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) &&
		boots(s) == bootstrapv1.BootModeLiveISO && s.config.Spec.Boot.OSImageVersion == "" && needsMedia(s)
}

// fittingOSImage is the minor version of the newest image that assisted-service has for the host and that is not newer than the release
// that the cluster runs: the first boot from disk brings a host from an older system to the cluster's. It is empty when there is none, and
// when the release or the images are not known.
func fittingOSImage(s *scope) string {
	runs, known := minorOf(s.runs)
	if !known {
		return ""
	}
	var best semver.Version
	for _, image := range s.osImages {
		version, known := minorOf(image.OpenshiftVersion)
		if known && isFor(image, s.config.Spec.Architecture()) && version.LE(runs) && version.GT(best) {
			best = version
		}
	}
	if best.Major == 0 {
		return ""
	}
	return nameOf(best)
}

// isFor reports whether an image is for hosts of an architecture. What a config calls aarch64, images may call arm64.
func isFor(image assisted.OSImage, architecture bootstrapv1.CPUArchitecture) bool {
	return bootstrapv1.CPUArchitectureOf(cmp.Or(image.CPUArchitecture, assisted.DefaultCPUArchitecture)) == architecture
}

// hasOSImage reports whether an InfraEnv has an image of a minor version, which only the URL of its live ISO tells:
// …/<version>/<architecture>/<file> (ASSISTED 1.1). What the URL does not tell is no reason to share the InfraEnv.
func hasOSImage(infraEnv *assisted.InfraEnv, version string) bool {
	if infraEnv == nil || !infraEnv.DeletionTimestamp.IsZero() {
		return false
	}
	location, err := url.Parse(infraEnv.Status.ISODownloadURL)
	if err != nil {
		return false
	}
	parts := strings.Split(location.Path, "/")
	if len(parts) < 3 {
		return false
	}
	has, known := minorOf(parts[len(parts)-3])
	return known && nameOf(has) == version
}

// otherOSImage says that the host boots an image of another release than the cluster runs; empty when it does not, and when nobody knows.
func otherOSImage(s *scope) string {
	runs, known := minorOf(s.runs)
	fits := fittingOSImage(s)
	switch {
	case !known || len(s.osImages) == 0 || fits == nameOf(runs):
		return ""
	case !slices.ContainsFunc(s.osImages, func(i assisted.OSImage) bool { return isFor(i, s.config.Spec.Architecture()) }):
		return fmt.Sprintf("assisted-service has no OS image for %s, so that it makes none for the host: add one to the AgentServiceConfig",
			s.config.Spec.Architecture())
	case fits == "":
		return fmt.Sprintf("The cluster runs %s, and assisted-service has no OS image for %s of that or an older release: "+
			"the host boots its default; add one to the AgentServiceConfig", s.runs, s.config.Spec.Architecture())
	}
	return fmt.Sprintf("The cluster runs %s, and assisted-service has no OS image of %s for %s: the host boots that of %s, and its first "+
		"boot from disk brings it to the cluster's; add one to the AgentServiceConfig", s.runs, nameOf(runs), s.config.Spec.Architecture(), fits)
}

// minorOf is the minor version of a release, with all else 0.
func minorOf(release string) (semver.Version, bool) {
	version, err := semver.ParseTolerant(release)
	return semver.Version{Major: version.Major, Minor: version.Minor}, err == nil
}

// nameOf is the name that a minor version has among images.
func nameOf(minor semver.Version) string { return fmt.Sprintf("%d.%d", minor.Major, minor.Minor) }
