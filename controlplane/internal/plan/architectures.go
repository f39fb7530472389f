// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// multiArchitecture ends the tag of public release images that are for all architectures.
const multiArchitecture = "multi"

// ArchitectureCheck compares the architectures that hosts are to have with those that the release image is for (DESIGN D10).
type ArchitectureCheck struct {
	// Spec is that of the control plane.
	Spec controlplanev1.OpenshiftAssistedControlPlaneSpec
	// Resolved is what the registry said of the release image; empty while that is not known.
	Resolved controlplanev1.ReleaseStatus
	// Hosts has the architecture of each host, by the name of its Machine.
	Hosts map[string]bootstrapv1.CPUArchitecture
}

// Problem names the first host that the image is not for, and an image that is; "" when there is none, or when nobody knows.
func (c ArchitectureCheck) Problem() string {
	image, known := c.release()
	if len(known) == 0 {
		return ""
	}
	for _, machine := range slices.Sorted(maps.Keys(c.Hosts)) {
		if architecture := string(c.Hosts[machine]); !slices.Contains(known, architecture) {
			return fmt.Sprintf(
				"Image %s is for %s, and the host of Machine %s is to be %s: hosts of several architectures need a release image for all of them "+
					"from the first installation on, such as %s:%s-%s in spec.release.image",
				image, strings.Join(known, ", "), machine, architecture, view.DefaultReleaseRepository, c.Spec.DistributionVersion, multiArchitecture,
			)
		}
	}
	return ""
}

// Several reports whether the release image is known to be for several architectures: from the registry, or from the tag that all public
// images of this kind have.
func (c ArchitectureCheck) Several() bool {
	image, known := c.release()
	return len(known) > 1 || strings.HasSuffix(image, "-"+multiArchitecture)
}

// release is the release image and what it is for, as far as that is known: the public image of a release is for the architecture that its
// tag ends with, whether or not a registry was asked.
func (c ArchitectureCheck) release() (image string, architectures []string) {
	if c.Spec.Release.ImageSetRef.Name != "" {
		return "", nil
	}
	image = view.ReleaseImage(c.Spec)
	switch {
	case c.Resolved.Image == image && len(c.Resolved.Architectures) > 0:
		return image, c.Resolved.Architectures
	case strings.HasPrefix(image, view.DefaultReleaseRepository+":") && c.Spec.Release.Image == "":
		return image, []string{string(c.Spec.OpenshiftAssistedConfigSpec.Architecture())}
	default:
		return image, nil
	}
}
