// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// noChannel is the reason of RetrievedUpdates=False while the version operator knows of no channel.
const noChannel = "NoChannel"

// unacknowledged refuses a minor upgrade that the cluster would refuse. Within a minor version it does not ask.
func (d *UpgradeDecision) unacknowledged(v *view.View) bool {
	version := v.Workload.Version
	if !wantedStep(v).LeavesMinor() {
		return false
	}
	wanted := v.ControlPlane.Spec.DistributionVersion
	if problem := v.Workload.Gates.Problem; problem != nil {
		d.Reason = controlplanev1.UpgradeNotAcknowledgedReason
		d.Message = fmt.Sprintf("It is not known what has to be acknowledged before the upgrade to %s: %v", wanted, problem)
		return true
	}
	var open []string
	for _, gate := range v.Workload.Gates.Needed {
		switch {
		case gate.Acknowledged || !gateOf(gate.Key, version.Desired.Version):
		case slices.Contains(v.ControlPlane.Spec.Upgrade.Acknowledgements, gate.Key):
			d.Acknowledge = append(d.Acknowledge, gate.Key)
		default:
			open = append(open, fmt.Sprintf("* %s: %s", gate.Key, gate.Text))
		}
	}
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
// would not ask. Where the updates are not known, nothing is known against one but what is recorded.
func (d *UpgradeDecision) risky(v *view.View) bool {
	version, spec := v.Workload.Version, v.ControlPlane.Spec
	switch {
	case d.looksElsewhere(v):
		d.Reason = controlplanev1.UpgradeWaitingForControlPlaneReason
		d.Message = fmt.Sprintf("The cluster does not look for updates in channel %s yet", spec.Upgrade.Channel)
		return true
	case version.Retrieved.True() && !recommended(v) && conditionalUpdate(v) == nil && spec.Upgrade.Channel != "":
		d.Reason = controlplanev1.UpgradeNotPossibleReason
		d.Message = fmt.Sprintf("Channel %s does not offer %s to this cluster: set another one in spec.upgrade.channel, or none",
			spec.Upgrade.Channel, spec.DistributionVersion)
		return true
	}
	risks := unaccepted(d.knownRisks(v), spec.Upgrade.AcceptedRisks)
	if len(risks) > 0 {
		d.Reason = controlplanev1.UpgradeRisksNotAcceptedReason
		d.Message = fmt.Sprintf("%s has known risks for this cluster. Read this, and add what you accept to spec.upgrade.acceptedRisks:\n* %s",
			spec.DistributionVersion, strings.Join(risks, "\n* "))
	}
	return len(risks) > 0
}

// looksElsewhere reports whether the user wants a channel, and the cluster does not look for updates in it yet.
func (d *UpgradeDecision) looksElsewhere(v *view.View) bool {
	version := v.Workload.Version
	return v.ControlPlane.Spec.Upgrade.Channel != "" && (d.Channel != "" || !version.Observed || version.Retrieved.Reason == noChannel)
}

// knownRisks are the risks of the wanted release, accepted or not: those that the cluster knows of now, and what it told last while it does
// not say. An update service that goes out of reach, or does not offer a release any more, makes no release safe.
func (d *UpgradeDecision) knownRisks(v *view.View) map[string]string {
	version, update := v.Workload.Version, conditionalUpdate(v)
	switch {
	case version.Retrieved.True() && !d.looksElsewhere(v) && recommended(v):
		return nil
	case version.Retrieved.True() && !d.looksElsewhere(v) && update != nil:
		return update.Risks
	default:
		return view.KnownRisksOf(v.ControlPlane).For(version.ClusterID, v.ControlPlane.Spec.DistributionVersion)
	}
}

// keepRisks decides what is recorded of known risks. Whatever comes between two passes, another cluster that answers or another upgrade,
// does not make the risks of a release be forgotten: they are those of one cluster and one version.
func (d *UpgradeDecision) keepRisks(v *view.View) {
	version, wanted := v.Workload.Version, v.ControlPlane.Spec.DistributionVersion
	known := view.KnownRisksOf(v.ControlPlane)
	record := v.ControlPlane.Annotations[controlplanev1.KnownRisksAnnotation]
	order, both := compareReleases(known.Version, version.Desired.Version)
	if known.ClusterID != version.ClusterID || !both || order <= 0 || known.Version == wanted {
		record = ""
	}
	if ahead, _ := compareReleases(wanted, version.Desired.Version); ahead > 0 {
		if risks := d.knownRisks(v); len(risks) > 0 {
			record = view.KnownRisks{ClusterID: version.ClusterID, Version: wanted, Risks: risks}.String()
		}
	}
	if record != v.ControlPlane.Annotations[controlplanev1.KnownRisksAnnotation] {
		d.Risks = &record
	}
}

// conditionalUpdate is what the cluster knows of the wanted release, when that may have risks; else nil.
func conditionalUpdate(v *view.View) *workload.ConditionalRelease {
	known, wanted := v.Workload.Version.Conditional, v.ControlPlane.Spec.DistributionVersion
	i := slices.IndexFunc(known, func(c workload.ConditionalRelease) bool { return c.Version == wanted })
	if i < 0 {
		return nil
	}
	return &known[i]
}

// recommended reports whether the cluster knows of no risk of the wanted release that applies to it.
func recommended(v *view.View) bool {
	if update := conditionalUpdate(v); update != nil && update.Recommended {
		return true
	}
	return slices.ContainsFunc(v.Workload.Version.Available, is(v.ControlPlane.Spec.DistributionVersion))
}

func is(version string) func(workload.Release) bool {
	return func(r workload.Release) bool { return r.Version == version }
}
