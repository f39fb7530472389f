// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// slowOperator is the reason of Failing=Unknown while an operator takes longer than it should.
const slowOperator = "SlowClusterOperator"

// percentage finds how far the version operator is, in "Working towards 4.21.3: 13% complete, waiting on machine-config".
var percentage = regexp.MustCompile(`(\d+)% complete`)

// UpgradeProgress is what status tells of an upgrade that goes on; empty when none does.
func UpgradeProgress(version *workload.ClusterVersion) controlplanev1.UpgradeStatus {
	if version == nil || !unfinished(version) {
		return controlplanev1.UpgradeStatus{}
	}
	status := controlplanev1.UpgradeStatus{
		Version: version.Desired.Version, Image: version.Desired.Image, StartedTime: metav1.NewTime(version.History[0].Started),
	}
	if match := percentage.FindStringSubmatch(version.Progressing.Message); match != nil {
		if done, err := strconv.ParseInt(match[1], 10, 32); err == nil && done <= 100 {
			status.ProgressPercentage = new(int32(done))
		}
	}
	return status
}

// CompletedRelease is the newest release that a cluster was brought to completely; empty when none is known.
func CompletedRelease(version *workload.ClusterVersion) string {
	for _, past := range version.History {
		if past.Completed {
			return past.Version
		}
	}
	return ""
}

// progress tells of an upgrade that goes on, whoever has asked for it.
func (d *UpgradeDecision) progress(v *view.View) {
	version, wanted := v.Workload.Version, v.ControlPlane.Spec.DistributionVersion
	d.Reason = controlplanev1.UpgradeInProgressReason
	lines := []string{version.Progressing.Message}
	if updates := v.Workload.Updates; updates != nil {
		if updates.PoolPaused {
			d.Reason = controlplanev1.UpgradeStalledReason
			lines = append(lines, "MachineConfigPool master is paused: its hosts are not upgraded while its spec.paused is true")
		}
		if updates.PoolDegraded.True() {
			d.Reason = controlplanev1.UpgradeFailingReason
			lines = append(lines, "MachineConfigPool master is degraded: "+updates.PoolDegraded.Message)
		}
	}
	switch failing := version.Failing; {
	case failing.True():
		d.Reason = controlplanev1.UpgradeFailingReason
		lines = append(lines, "ClusterVersion version is failing: "+failing.Message)
	case failing.Reason == slowOperator && d.Reason == controlplanev1.UpgradeInProgressReason:
		d.Reason = controlplanev1.UpgradeStalledReason
		lines = append(lines, failing.Message)
	}
	if version.Desired.Version != wanted {
		lines = append(lines, fmt.Sprintf("The cluster goes to %s, and spec.distributionVersion is %s: nothing is asked for before this ends. "+
			"To follow it, set %s to that release", version.Desired.Version, wanted, releaseFields(v)))
	}
	d.Message = strings.Join(lines, "\n")
}

// answered tells what the version operator has answered to a request.
func (d *UpgradeDecision) answered(v *view.View) {
	version, wanted := v.Workload.Version, v.ControlPlane.Spec.DistributionVersion
	d.Reason = controlplanev1.UpgradeReleaseNotAcceptedReason
	switch {
	case !version.Observed:
		d.Reason, d.Message = controlplanev1.UpgradeRequestedReason, fmt.Sprintf("The cluster was asked for %s, and has not answered yet", wanted)
	case version.Invalid.True():
		d.Message = fmt.Sprintf("The cluster cannot be upgraded to %s: %s", wanted, version.Invalid.Message)
	case version.Accepted.False():
		d.Message = fmt.Sprintf("The cluster does not accept %s: %s", wanted, version.Accepted.Message)
		if version.Accepted.Reason == unverifiedRelease {
			d.Message += ". A cluster that does not reach a store of signatures needs that of the image in a ConfigMap of namespace " +
				"openshift-config-managed, with label release.openshift.io/verification-signatures"
		}
	default:
		d.Reason = controlplanev1.UpgradeRequestedReason
		d.Message = fmt.Sprintf("The cluster was asked for %s, and has not begun yet", wanted)
	}
}

// unverifiedRelease is the reason of ReleaseAccepted=False while the image cannot be loaded or its signature is missing.
const unverifiedRelease = "RetrievePayload"
