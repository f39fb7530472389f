// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// digestMark begins the digest in the name of an image.
const digestMark = "@"

// upgradeImage is the image of the wanted release by its digest, which the cluster verifies: the one of spec.release, what the registry
// said of it, or what the cluster's own updates tell. Nothing is guessed from a tag.
func upgradeImage(v *view.View) (image, problem string) {
	spec := v.ControlPlane.Spec
	resolved, _ := resolvedRelease(v)
	switch {
	case strings.Contains(spec.Release.Image, digestMark):
		return spec.Release.Image, ""
	case resolved.Digest != "":
		return withoutTag(resolved.Image) + digestMark + resolved.Digest, ""
	case strings.Contains(v.Release.SetImage, digestMark):
		return v.Release.SetImage, ""
	}
	if image := offered(v); image != "" {
		return image, ""
	}
	if name := spec.Release.ImageSetRef.Name; name != "" {
		return "", fmt.Sprintf("The digest of release %s is not known: set spec.releaseImage of ClusterImageSet %s to the image by its digest",
			spec.DistributionVersion, name)
	}
	return "", fmt.Sprintf("The digest of release %s is not known: neither the registry nor the cluster's channel, %q, has told it. Set "+
		"spec.upgrade.channel to one that offers the release, or spec.release.image to the image by its digest", spec.DistributionVersion,
		v.Workload.Version.Channel)
}

// imageOfAnother says that the image of the wanted release is that of another release, to which the cluster was brought: an edit has come
// to the version and not to the image. The registry, where it is asked, has told so before.
func imageOfAnother(v *view.View) string {
	wanted := v.ControlPlane.Spec.DistributionVersion
	image, _ := upgradeImage(v)
	i := slices.IndexFunc(v.Workload.Version.History, func(p workload.PastRelease) bool {
		return image != "" && p.Version != wanted && digestOf(p.Image) == digestOf(image)
	})
	if i < 0 {
		return ""
	}
	field := "spec.release.image"
	if v.Release.SetImage != "" {
		field = "spec.releaseImage of ClusterImageSet " + v.ControlPlane.Spec.Release.ImageSetRef.Name
	}
	return fmt.Sprintf("%s is the image of release %s, and spec.distributionVersion is %s: set it to the image of that release", field,
		v.Workload.Version.History[i].Version, wanted)
}

// offered is the image of the wanted release among the updates that the cluster knows of; empty when there is none.
func offered(v *view.View) string {
	version, wanted := v.Workload.Version, v.ControlPlane.Spec.DistributionVersion
	if i := slices.IndexFunc(version.Available, is(wanted)); i >= 0 {
		return version.Available[i].Image
	}
	for _, conditional := range version.Conditional {
		if conditional.Version == wanted {
			return conditional.Image
		}
	}
	return ""
}

// withoutTag is the name of an image without its tag. A port has a slash behind it.
func withoutTag(image string) string {
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i]
	}
	return image
}

// resolvedRelease is what the registry said of the image of the wanted release, in this pass or before. It is asked, or will be, while
// pending is true.
func resolvedRelease(v *view.View) (resolved controlplanev1.ReleaseStatus, pending bool) {
	if v.Release.Image == "" {
		return controlplanev1.ReleaseStatus{}, false
	}
	if found := v.Release.Answer.Release; found != nil {
		return controlplanev1.ReleaseStatus{
			Image: v.Release.Image, Digest: found.Digest, Version: found.Version, KubernetesVersion: found.KubernetesVersion,
		}, false
	}
	if status := v.ControlPlane.Status.Release; status.Image == v.Release.Image {
		return status, false
	}
	return controlplanev1.ReleaseStatus{}, !v.Release.Off && v.Release.Answer.Err == nil
}

// releaseMismatch says that spec.version and spec.distributionVersion are not of the same release, or that this is not known yet. While an
// edit has come to one of the two only, nothing is begun.
func releaseMismatch(v *view.View) string {
	resolved, pending := resolvedRelease(v)
	if pending {
		return fmt.Sprintf("The registry is asked which Kubernetes version is in %s", v.Release.Image)
	}
	check := VersionCheck{Version: v.ControlPlane.Spec.Version, Release: v.ControlPlane.Spec.DistributionVersion, Resolved: resolved}
	if v.Cluster.Spec.Topology.IsDefined() {
		check.Topology = v.Cluster.Name
	}
	return check.releaseProblem()
}

// unaccepted lists the risks that the user has not accepted, each with its text.
func unaccepted(risks map[string]string, accepted []controlplanev1.UpgradeRisk) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(risks)) {
		if !slices.Contains(accepted, controlplanev1.UpgradeRisk{Name: name}) {
			lines = append(lines, name+": "+cmp.Or(risks[name], "nothing is said of it"))
		}
	}
	return lines
}
