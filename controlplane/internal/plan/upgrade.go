// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

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
	// Record is the value that the annotation RequestedReleaseAnnotation gets, empty to remove it; nil when it has the right one. EndRetry:
	// the annotation RetryUpgradeAnnotation has done what it is for.
	Record   *string
	EndRetry bool
	// Risks is the value that the annotation KnownRisksAnnotation gets, empty to remove it; nil when it has the right one.
	Risks *string
}

// DecideUpgrade decides whether the cluster is asked for the release that the user wants. It is asked once, and never made to do what it
// refuses; what somebody else asks it for is followed.
func DecideUpgrade(v *view.View) UpgradeDecision {
	switch {
	case !v.Life.Installed() || v.Life == view.Mismatch:
		return UpgradeDecision{}
	case v.Workload.OtherCluster != "":
		return otherCluster(v)
	case v.Workload.Version == nil:
		return UpgradeDecision{}
	}
	version := v.Workload.Version
	order, known := compareReleases(v.ControlPlane.Spec.DistributionVersion, version.Desired.Version)
	if !known {
		return UpgradeDecision{}
	}
	d := UpgradeDecision{Channel: channelToSet(v, order)}
	d.keepRecord(v, order)
	d.keepRisks(v)
	switch {
	case unfinished(version):
		d.progress(v)
	case order < 0:
		d.Reason = controlplanev1.NotUpgradingReason
		d.Message = fmt.Sprintf("The cluster runs %s, which is newer than spec.distributionVersion: to follow it, set %s to that release",
			version.Desired.Version, releaseFields(v))
	case order == 0:
		d.settled(v)
	case requested(v):
		d.answered(v)
	default:
		d.begin(v)
	}
	return d
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

// otherCluster says that another cluster answers than the recorded one. Nothing is written to it, and nothing is told of its release.
func otherCluster(v *view.View) UpgradeDecision {
	return UpgradeDecision{
		Reason: controlplanev1.UpgradeOtherClusterReason, Message: OtherCluster(v),
	}
}

// OtherCluster says which other cluster answers than the recorded one, while one does.
func OtherCluster(v *view.View) string {
	return fmt.Sprintf("Cluster %s answers, and %s was installed: look at Secret %s", v.Workload.OtherCluster, v.Record.ClusterID,
		secret.Name(v.ClusterName, secret.Kubeconfig))
}

// channelToSet is the channel that the ClusterVersion lacks. Nothing is written to a cluster that is, goes or is about to go to a release
// that is not wanted here (DESIGN D30).
func channelToSet(v *view.View, order int) string {
	channel, version := v.ControlPlane.Spec.Upgrade.Channel, v.Workload.Version
	if channel == version.Channel || order < 0 || order > 0 && unfinished(version) || asksForAnother(v) {
		return ""
	}
	return channel
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
		d.Message = strings.TrimSpace(fmt.Sprintf("%s ClusterVersion version asks for %s: to follow it, set %s to that release; "+
			"\"oc adm upgrade --clear\" withdraws it", d.Message, version.Requested.Version, releaseFields(v)))
	}
}

// begin decides whether the cluster is asked for the wanted release now.
func (d *UpgradeDecision) begin(v *view.View) {
	wanted := v.ControlPlane.Spec.DistributionVersion
	if problem := cmp.Or(releaseMismatch(v), imageOfAnother(v)); problem != "" {
		d.Reason, d.Message = controlplanev1.UpgradeWaitingForVersionsReason, problem
		return
	}
	if d.impossible(v) || d.interrupted(v) || d.awaited(v) || d.unacknowledged(v) || d.risky(v) {
		return
	}
	image, problem := upgradeImage(v)
	if problem != "" {
		d.Reason, d.Message = controlplanev1.UpgradeImageUnknownReason, problem
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
