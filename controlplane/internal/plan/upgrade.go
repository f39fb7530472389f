// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// UpgradeDecision is about the release of an installed cluster (DESIGN D28…D30).
type UpgradeDecision struct {
	// Reason and Message are those of the condition Upgrading; empty while the installed cluster does not answer.
	Reason, Message string
	// Channel is written to the ClusterVersion; empty when it has the right one.
	Channel string
	// Acknowledge are the keys of changes to acknowledge in the cluster.
	Acknowledge []string
	// Request is the release to ask for; empty when none is.
	Request workload.Release
	// EndRetry: the annotation by which the user asks for a release again has had its effect, or has none any more, and goes.
	EndRetry bool
}

// DecideUpgrade decides whether the cluster is asked for the release that the user wants. It is asked once, and never made to do what it
// refuses; what somebody else asks it for is followed.
func DecideUpgrade(v *view.View) UpgradeDecision {
	version := v.Workload.Version
	if version == nil || !v.Life.Installed() || isAnother(v) {
		return UpgradeDecision{}
	}
	order, known := compareReleases(v.ControlPlane.Spec.DistributionVersion, version.Desired.Version)
	if !known {
		return UpgradeDecision{}
	}
	d := UpgradeDecision{Channel: channelFor(v, order), EndRetry: asksAgain(v) && (order == 0 || requested(v))}
	switch {
	case unfinished(version):
		d.progress(v)
	case order < 0:
		d.Reason = controlplanev1.NotUpgradingReason
		d.Message = fmt.Sprintf("The cluster runs %s, which is newer than spec.distributionVersion", version.Desired.Version)
	case order == 0:
		d.settled(v)
	case requested(v):
		d.answered(v)
	default:
		d.begin(v)
	}
	return d
}

// isAnother reports whether another cluster answers than the one that was installed: it is neither written to nor reported.
func isAnother(v *view.View) bool {
	return v.Life == view.Mismatch || v.Record != nil && v.Workload.Version.ClusterID != v.Record.ClusterID
}

// channelFor is the channel to write to a cluster, with the order of the wanted release and its own; empty when it stays. A cluster that is
// beyond the wish, or on its way to another release, is followed (DESIGN D30).
func channelFor(v *view.View, order int) string {
	version, channel := v.Workload.Version, v.ControlPlane.Spec.Upgrade.Channel
	if channel == version.Channel || order < 0 || order > 0 && unfinished(version) {
		return ""
	}
	return channel
}

// asksAgain reports whether the user wants a release that the cluster has left before.
func asksAgain(v *view.View) bool {
	_, again := v.ControlPlane.Annotations[controlplanev1.RetryUpgradeAnnotation]
	return again
}

// IsUpgrading reports whether the cluster is being upgraded, or to be.
func IsUpgrading(v *view.View) bool {
	version := v.Workload.Version
	return version != nil && (unfinished(version) || wantsUpgrade(v))
}

// Followed is the release that the cluster runs, when it is newer than the one that the user wants; else empty.
func Followed(v *view.View) string {
	version := v.Workload.Version
	if version == nil || unfinished(version) {
		return ""
	}
	if order, known := compareReleases(v.ControlPlane.Spec.DistributionVersion, version.Desired.Version); !known || order >= 0 {
		return ""
	}
	return version.Desired.Version
}

// wantsUpgrade reports whether the user wants a newer release than the one that the cluster runs.
func wantsUpgrade(v *view.View) bool {
	version := v.Workload.Version
	if version == nil {
		return false
	}
	order, known := compareReleases(v.ControlPlane.Spec.DistributionVersion, version.Desired.Version)
	return known && order > 0
}

// AsksGates reports whether the pass asks the cluster what has to be acknowledged: only while the next minor release is wanted, and not
// requested yet.
func AsksGates(v *view.View) bool {
	return v.Life.Installed() && wantsUpgrade(v) && !unfinished(v.Workload.Version) && !requested(v) && wantedStep(v).LeavesMinor()
}

// unfinished reports whether the cluster has not been brought to its release completely.
func unfinished(version *workload.ClusterVersion) bool {
	return len(version.History) > 0 && !version.History[0].Completed
}

// compareReleases compares two versions of releases; known is false when one of them is none.
func compareReleases(a, b string) (order int, known bool) {
	releaseA, errA := semver.Parse(a)
	releaseB, errB := semver.Parse(b)
	if errA != nil || errB != nil {
		return 0, false
	}
	return releaseA.Compare(releaseB), true
}

// settled decides about a cluster that runs the wanted release. A spec.version of another release is the first half of an edit.
func (d *UpgradeDecision) settled(v *view.View) {
	d.Reason = controlplanev1.NotUpgradingReason
	if _, pending := resolvedRelease(v); !pending { // A manager that has just started asks the registry again, which is no news.
		if problem := releaseMismatch(v); problem != "" {
			d.Reason, d.Message = controlplanev1.UpgradeWaitingForVersionsReason, problem
		}
	}
	version := v.Workload.Version
	if order, known := compareReleases(version.Requested.Version, version.Desired.Version); known && order > 0 {
		d.Message = strings.TrimSpace(fmt.Sprintf("%s The ClusterVersion still asks for %s, which nobody wants here any more: "+
			"\"oc adm upgrade --clear\" withdraws it", d.Message, version.Requested.Version))
	}
}

// requested reports whether the cluster was asked for the wanted release, and, when the image is known here, for the very image.
func requested(v *view.View) bool {
	asked := v.Workload.Version.Requested
	if asked.Version != v.ControlPlane.Spec.DistributionVersion {
		return false
	}
	image, _ := upgradeImage(v)
	return asked.Image == "" || image == "" || asked.Image == image
}

// begin decides whether the cluster is asked for the wanted release now.
func (d *UpgradeDecision) begin(v *view.View) {
	wanted := v.ControlPlane.Spec.DistributionVersion
	if problem := releaseMismatch(v); problem != "" {
		d.Reason, d.Message = controlplanev1.UpgradeWaitingForVersionsReason, problem
		return
	}
	if d.impossible(v) || d.interrupted(v) || d.unacknowledged(v) || d.risky(v) {
		return
	}
	image, problem := upgradeImage(v)
	if problem != "" {
		d.Reason, d.Message = controlplanev1.UpgradeImageUnknownReason, problem
		return
	}
	if left := releaseOf(image, v); left != "" {
		d.Reason = controlplanev1.UpgradeWaitingForVersionsReason
		d.Message = fmt.Sprintf("%s is the image of release %s, and spec.distributionVersion is %s: the edit of the other one is missing", image,
			left, wanted)
		return
	}
	if blockers := unfitToUpgrade(v); len(blockers) > 0 {
		d.wait(wanted, blockers)
		return
	}
	d.Reason, d.Message = controlplanev1.UpgradeRequestedReason, fmt.Sprintf("The cluster is asked for %s", wanted)
	d.Request = workload.Release{Version: wanted, Image: image}
}

// wait puts the upgrade off.
func (d *UpgradeDecision) wait(wanted string, blockers []string) {
	d.Reason, d.Request = controlplanev1.UpgradeWaitingForControlPlaneReason, workload.Release{}
	d.Message = fmt.Sprintf("The upgrade to %s begins when the control plane is well:\n* %s", wanted, strings.Join(blockers, "\n* "))
}

// YieldTo puts off an upgrade that would begin in the pass in which Machines begin to come or go: the hosts of the control plane would be
// restarted meanwhile.
func (d *UpgradeDecision) YieldTo(machines MachinesDecision, rollout RolloutDecision, remedy RemediationDecision) {
	changes := len(machines.Create) > 0 || len(machines.Surplus) > 0 || rollout.Delete != nil || remedy.Delete != nil || remedy.Record != nil
	if changes && d.Request != (workload.Release{}) {
		d.wait(d.Request.Version, []string{"Control-plane Machines come or go"})
	}
}

// impossible refuses what the version operator of any release would, or should, refuse: 4.17 and 4.18 would start a jump of minor versions.
func (d *UpgradeDecision) impossible(v *view.View) bool {
	version, wanted := v.Workload.Version, v.ControlPlane.Spec.DistributionVersion
	if wantedStep(v) == StepJump {
		d.Reason = controlplanev1.UpgradeNotPossibleReason
		d.Message = fmt.Sprintf("The cluster runs %s, and is upgraded by one minor version at a time: %s is too far ahead, and %s is next",
			version.Desired.Version, wanted, NextMinors(version.Desired.Version))
	}
	return d.Reason != ""
}

// interrupted refuses a release that the cluster has left: somebody has gone back from it.
func (d *UpgradeDecision) interrupted(v *view.View) bool {
	wanted := v.ControlPlane.Spec.DistributionVersion
	if asksAgain(v) || !slices.ContainsFunc(v.Workload.Version.History, func(p workload.PastRelease) bool { return p.Version == wanted }) {
		return false
	}
	d.Reason = controlplanev1.UpgradeInterruptedReason
	d.Message = fmt.Sprintf(
		"The cluster was upgraded to %s before, and has left it: set annotation %s on the control plane to upgrade it again",
		wanted,
		controlplanev1.RetryUpgradeAnnotation,
	)
	return true
}

// unacknowledged refuses a minor upgrade that the cluster would refuse. Within a minor version it does not ask.
func (d *UpgradeDecision) unacknowledged(v *view.View) bool {
	version := v.Workload.Version
	if !wantedStep(v).LeavesMinor() {
		return false
	}
	var open []string
	for _, gate := range v.Workload.Gates {
		switch {
		case gate.Acknowledged || !gateOf(gate.Key, version.Desired.Version):
		case slices.Contains(v.ControlPlane.Spec.Upgrade.Acknowledgements, gate.Key):
			d.Acknowledge = append(d.Acknowledge, gate.Key)
		default:
			open = append(open, fmt.Sprintf("* %s: %s", gate.Key, gate.Text))
		}
	}
	wanted := v.ControlPlane.Spec.DistributionVersion
	switch {
	case len(open) > 0:
		d.Reason = controlplanev1.UpgradeNotAcknowledgedReason
		d.Message = fmt.Sprintf("Before the upgrade to %s, read this, and add the keys to spec.upgrade.acknowledgements:\n%s", wanted,
			strings.Join(open, "\n"))
	case len(d.Acknowledge) > 0:
		d.Reason = controlplanev1.UpgradeNotAcknowledgedReason
		d.Message = "What spec.upgrade.acknowledgements names is acknowledged in the cluster, which has not seen it yet"
	case version.Upgradeable.False():
		d.Reason = controlplanev1.UpgradeNotUpgradeableReason
		d.Message = fmt.Sprintf("The cluster says that it cannot be upgraded to another minor version now: %s", version.Upgradeable.Message)
	default:
		return false
	}
	return true
}

// gateOf reports whether a gate is one of the release that the cluster runs: gates of others may lie about.
func gateOf(key, running string) bool {
	release, err := semver.Parse(running)
	return err == nil && strings.HasPrefix(key, fmt.Sprintf("ack-%d.%d-", release.Major, release.Minor))
}

// risky refuses an update whose known risks apply to the cluster, or may, and that the user has not accepted. The version operator itself
// would not ask. Where the updates are not known, nothing is known against one.
func (d *UpgradeDecision) risky(v *view.View) bool {
	version, spec := v.Workload.Version, v.ControlPlane.Spec
	switch {
	case spec.Upgrade.Channel != "" && (d.Channel != "" || !version.Observed):
		d.Reason = controlplanev1.UpgradeWaitingForControlPlaneReason
		d.Message = fmt.Sprintf("The cluster does not look for updates in channel %s yet", spec.Upgrade.Channel)
		return true
	case !version.Retrieved.True() || slices.ContainsFunc(version.Available, is(spec.DistributionVersion)):
		return false
	}
	i := slices.IndexFunc(version.Conditional, func(c workload.ConditionalRelease) bool { return c.Version == spec.DistributionVersion })
	if i < 0 {
		if spec.Upgrade.Channel != "" {
			d.Reason = controlplanev1.UpgradeNotPossibleReason
			d.Message = fmt.Sprintf("Channel %s does not offer %s to this cluster: set another one in spec.upgrade.channel, or none",
				spec.Upgrade.Channel, spec.DistributionVersion)
		}
		return d.Reason != ""
	}
	var risks []string
	if !version.Conditional[i].Recommended {
		risks = unaccepted(version.Conditional[i].Risks, spec.Upgrade.AcceptedRisks)
	}
	if len(risks) > 0 {
		d.Reason = controlplanev1.UpgradeRisksNotAcceptedReason
		d.Message = fmt.Sprintf("%s has known risks for this cluster. Read this, and add what you accept to spec.upgrade.acceptedRisks:\n* %s",
			spec.DistributionVersion, strings.Join(risks, "\n* "))
	}
	return len(risks) > 0
}

func is(version string) func(workload.Release) bool {
	return func(r workload.Release) bool { return r.Version == version }
}

// unfitToUpgrade lists what has to happen before the hosts of the control plane may be restarted one after the other.
func unfitToUpgrade(v *view.View) []string {
	problems := unsettled(v, v.Machines.Owned)
	if machines, replicas := len(v.Machines.Owned.Filter(living)), int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)); machines != replicas {
		problems = append(problems, fmt.Sprintf("There are %d Machines, and %d replicas are wanted", machines, replicas))
	}
	problems = append(problems, remediations(v)...)
	if etcd := unfitEtcd(v, v.Machines.Owned, 0); len(etcd) > 0 {
		return append(problems, etcd...)
	}
	return append(problems, unfitOperators(v)...)
}

// Updating reports whether nothing but its version differs in a Machine, whose Node is upgraded in place.
func Updating(v *view.View, m *clusterv1.Machine) bool {
	return m.Spec.Version != v.ControlPlane.Spec.Version && len(outdatedBy(v, m)) == 0
}
