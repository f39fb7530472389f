// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// wantedRelease is the release that the user wants, with its image when that is known here.
func wantedRelease(v *view.View) workload.Release {
	wanted := workload.Release{Version: v.ControlPlane.Spec.DistributionVersion}
	if imageOfAnother(v) == "" {
		wanted.Image, _ = upgradeImage(v)
	}
	return wanted
}

// sameRelease reports whether two releases are the same. Users name one by its version or by its image too; mirrors have the same digests.
func sameRelease(a, b workload.Release) bool {
	if a.Image == "" || b.Image == "" {
		return a.Version != "" && a.Version == b.Version
	}
	return digestOf(a.Image) == digestOf(b.Image) && (a.Version == "" || b.Version == "" || a.Version == b.Version)
}

// digestOf is the digest in the name of an image, or the whole name when it has none.
func digestOf(image string) string {
	if _, digest, ok := strings.Cut(image, digestMark); ok {
		return digest
	}
	return image
}

// requested reports whether the cluster is asked for the wanted release, and, when the image is known here, for the very image.
func requested(v *view.View) bool { return sameRelease(v.Workload.Version.Requested, wantedRelease(v)) }

// asksForAnother reports whether the cluster is asked for a release that is neither the wanted one nor the one that it runs, and has not
// answered yet: it may be about to begin.
func asksForAnother(v *view.View) bool {
	version := v.Workload.Version
	refused := version.Observed && (version.Invalid.True() || version.Accepted.False())
	return version.Requested != (workload.Release{}) && !refused && !requested(v) && !sameRelease(version.Requested, version.Desired)
}

// keepRecord decides what the annotations of the control plane say of the request: the record is the wanted release once the cluster was
// seen to be asked for it, and the user's wish to ask again ends then, or when the cluster has the release. A manager that ends between the
// request and the record asks for the same again, which changes nothing.
func (d *UpgradeDecision) keepRecord(v *view.View, order int) {
	cp := v.ControlPlane
	record, recorded := "", view.RequestedOf(cp)
	switch {
	case requested(v):
		record = view.RequestedText(v.Workload.Version.Requested)
	case sameRelease(recorded, wantedRelease(v)):
		record = cp.Annotations[controlplanev1.RequestedReleaseAnnotation]
	}
	if record != cp.Annotations[controlplanev1.RequestedReleaseAnnotation] {
		d.Record = &record
	}
	_, again := cp.Annotations[controlplanev1.RetryUpgradeAnnotation]
	d.EndRetry = again && (order == 0 || requested(v))
}

// interrupted refuses a release that the cluster has left, and one that it was asked for and is not any more: by "oc adm upgrade --clear",
// or by a request for another one. Who has done that may have had a reason.
func (d *UpgradeDecision) interrupted(v *view.View) bool {
	wanted, version := wantedRelease(v), v.Workload.Version
	if _, again := v.ControlPlane.Annotations[controlplanev1.RetryUpgradeAnnotation]; again {
		return false
	}
	var what string
	switch {
	case slices.ContainsFunc(version.History, func(p workload.PastRelease) bool { return p.Version == wanted.Version }):
		what = fmt.Sprintf("The cluster was upgraded to %s before, and has left it", wanted.Version)
	case sameRelease(view.RequestedOf(v.ControlPlane), wanted):
		what = fmt.Sprintf("The cluster was asked for %s, and ClusterVersion version asks for %s now", wanted.Version,
			cmp.Or(version.Requested.Version, version.Requested.Image, "no release"))
	default:
		return false
	}
	d.Reason = controlplanev1.UpgradeInterruptedReason
	d.Message = fmt.Sprintf("%s: set annotation %s on the control plane to upgrade it to %s, or set %s to another release", what,
		controlplanev1.RetryUpgradeAnnotation, wanted.Version, releaseFields(v))
	return true
}

// awaited waits for the answer to another request.
func (d *UpgradeDecision) awaited(v *view.View) bool {
	if !asksForAnother(v) {
		return false
	}
	asked := v.Workload.Version.Requested
	d.Reason = controlplanev1.UpgradeWaitingForControlPlaneReason
	d.Message = fmt.Sprintf("ClusterVersion version asks for %s, which the cluster has not answered yet: it is asked for %s after that",
		cmp.Or(asked.Version, asked.Image), v.ControlPlane.Spec.DistributionVersion)
	return true
}

// releaseFields names the fields that say which release is wanted.
func releaseFields(v *view.View) string {
	if v.Cluster.Spec.Topology.IsDefined() {
		return fmt.Sprintf("spec.topology.version of Cluster %s and its variable of the release", v.Cluster.Name)
	}
	return "spec.distributionVersion and spec.version"
}
