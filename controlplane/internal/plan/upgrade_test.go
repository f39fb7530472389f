// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/release"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

const publicRepository = "quay.io/openshift-release-dev/ocp-release"

// at is an image by a digest of one digit.
func at(digit string) string { return publicRepository + "@sha256:" + strings.Repeat(digit, 64) }

// upgradeView is a cluster that is well, runs 4.20.4, and whose user wants 4.20.8, of which the registry has told.
func upgradeView() *view.View {
	v := installedView(4)
	v.Now = noon
	cp := v.ControlPlane
	cp.Spec.Replicas = new(int32(3))
	v.Record = &view.Installed{ClusterID: "3c1d"}
	running := workload.Release{Version: "4.20.4", Image: at("4")}
	v.Workload.Version = &workload.ClusterVersion{
		ClusterID: "3c1d", ResourceVersion: "7", Observed: true, Desired: running, Channel: "stable-4.20",
		History:     []workload.PastRelease{{Release: running, Completed: true}},
		Progressing: no, Failing: no, Upgradeable: yes, Accepted: yes, Invalid: no, Retrieved: no,
	}
	want(v, "4.20.8", "v1.33.6")
	return v
}

// want is what a user sets, and what the registry says of it.
func want(v *view.View, version, kubernetes string) {
	v.ControlPlane.Spec.DistributionVersion, v.ControlPlane.Spec.Version = version, kubernetes
	v.Release.Image = publicRepository + ":" + version + "-x86_64"
	v.ControlPlane.Status.Release = controlplanev1.ReleaseStatus{
		Image: v.Release.Image, Version: version, KubernetesVersion: kubernetes, Digest: "sha256:" + strings.Repeat("8", 64),
	}
}

// runs makes the cluster be brought to a release.
func runs(v *view.View, r workload.Release, completed bool, progressing string) {
	version := v.Workload.Version
	version.Desired = r
	version.History = append([]workload.PastRelease{{Release: r, Completed: completed, Started: noon.Add(-time.Minute)}}, version.History...)
	version.Progressing = because(no, progressing)
	if !completed {
		version.Progressing = because(yes, progressing)
	}
}

func next() workload.Release { return workload.Release{Version: "4.20.8", Image: at("8")} }

// upgradeCase is a row: what is changed of upgradeView, and what is decided then.
type upgradeCase struct {
	change func(*view.View)
	// reason is that of the condition Upgrading, and message a part of its message.
	reason, message string
	// image is the one that is requested; empty when nothing is.
	image       string
	channel     string
	acknowledge []string
}

func (tc upgradeCase) check(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	v := upgradeView()
	if tc.change != nil {
		tc.change(v)
	}
	d := plan.DecideUpgrade(v)
	g.Expect(d.Reason).To(Equal(tc.reason), d.Message)
	g.Expect(d.Message).To(ContainSubstring(tc.message))
	g.Expect(d.Request.Image).To(Equal(tc.image), d.Message)
	if tc.image != "" {
		g.Expect(d.Request.Version).To(Equal(v.ControlPlane.Spec.DistributionVersion))
	}
	g.Expect(d.Channel).To(Equal(tc.channel))
	g.Expect(d.Acknowledge).To(Equal(tc.acknowledge))
}

// minor makes the user want the next minor release.
func minor(v *view.View) { want(v, "4.21.2", "v1.34.3") }

// last makes the cluster run a release that leads to 5.0.
func last(v *view.View) {
	release := workload.Release{Version: "4.22.3", Image: at("2")}
	v.Workload.Version.Desired, v.Workload.Version.History[0].Release = release, release
}

// TestUpgradeBegins has a row for everything that decides whether a release is asked for.
func TestUpgradeBegins(t *testing.T) {
	const gate, gateText = "ack-4.20-removals-in-4.21", "APIs are gone"
	gates := func(v *view.View, acknowledged bool, keys ...string) {
		minor(v)
		v.Workload.Gates.Needed = []workload.Gate{
			{Key: "ack-4.19-old", Text: "of the minor version before"}, {Key: gate, Text: gateText, Acknowledged: acknowledged},
		}
		v.Workload.Version.Upgradeable = because(no, "gates are open")
		v.ControlPlane.Spec.Upgrade.Acknowledgements = keys
	}
	risk := func(v *view.View, recommended bool, accepted ...controlplanev1.UpgradeRisk) {
		v.Workload.Version.Retrieved = yes
		v.Workload.Version.Conditional = []workload.ConditionalRelease{
			{Release: next(), Recommended: recommended, Risks: map[string]string{"DiskEats": "disks are eaten", "Slow": "it is slow"}},
		}
		v.ControlPlane.Spec.Upgrade.AcceptedRisks = accepted
	}
	for name, tc := range map[string]upgradeCase{
		"all is well":           {reason: controlplanev1.UpgradeRequestedReason, message: "The cluster is asked for 4.20.8", image: at("8")},
		"a minor version":       {change: minor, reason: controlplanev1.UpgradeRequestedReason, image: at("8")},
		"no connection":         {change: func(v *view.View) { v.Workload.Version = nil }},
		"another cluster":       {change: func(v *view.View) { v.Life = view.Mismatch }},
		"not installed yet":     {change: func(v *view.View) { v.Life = view.Installing }},
		"a release of no order": {change: func(v *view.View) { v.Workload.Version.Desired.Version = "" }},
		"another cluster answers": {
			change: func(v *view.View) {
				v.Workload.Version, v.Workload.OtherCluster, v.ControlPlane.Spec.Upgrade.Channel = nil, "other", "fast-4.20"
			},
			reason: controlplanev1.UpgradeOtherClusterReason, message: "Cluster other answers, and 3c1d was installed",
		},
		"only the release is edited": {
			change: func(v *view.View) { v.ControlPlane.Spec.Version = "v1.33.4" }, reason: controlplanev1.UpgradeWaitingForVersionsReason,
			message: "Release 4.20.8 has Kubernetes v1.33.6, not v1.33.4",
		},
		"only the Kubernetes version is edited": {
			change: func(v *view.View) { want(v, "4.20.4", "v1.33.4"); v.ControlPlane.Spec.Version = "v1.33.6" },
			reason: controlplanev1.UpgradeWaitingForVersionsReason, message: "Release 4.20.4 has Kubernetes v1.33.4, not v1.33.6",
		},
		"the registry is still asked": {
			change: func(v *view.View) { v.ControlPlane.Status.Release = controlplanev1.ReleaseStatus{} },
			reason: controlplanev1.UpgradeWaitingForVersionsReason, message: "The registry is asked which Kubernetes version is in",
		},
		"the registry has answered in this pass": {
			change: func(v *view.View) {
				v.ControlPlane.Status.Release = controlplanev1.ReleaseStatus{}
				v.Release.Answer.Release = &release.Release{Version: "4.20.8", KubernetesVersion: "v1.33.6", Digest: "sha256:9"}
			},
			reason: controlplanev1.UpgradeRequestedReason, image: publicRepository + "@sha256:9",
		},
		"no registry is asked, and the minor versions match": {
			change: func(v *view.View) {
				v.ControlPlane.Status.Release, v.Release.Off = controlplanev1.ReleaseStatus{}, true
				v.Workload.Version.Retrieved, v.Workload.Version.Available = yes, []workload.Release{next()}
			},
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"no registry is asked, and the minor versions differ": {
			change: func(v *view.View) {
				v.ControlPlane.Status.Release, v.Release.Off = controlplanev1.ReleaseStatus{}, true
				v.ControlPlane.Spec.Version = "v1.34.3"
			},
			reason: controlplanev1.UpgradeWaitingForVersionsReason, message: "Release 4.20.8 has Kubernetes 1.33, not v1.34.3",
		},
		"nobody tells the digest": {
			change: func(v *view.View) {
				v.ControlPlane.Status.Release, v.Release.Off = controlplanev1.ReleaseStatus{}, true
			},
			reason: controlplanev1.UpgradeImageUnknownReason, message: "spec.release.image to the image by its digest",
		},
		"the digest is in the spec": {
			change: func(v *view.View) { v.ControlPlane.Spec.Release.Image = at("5") },
			reason: controlplanev1.UpgradeRequestedReason, image: at("5"),
		},
		"the digest is in a ClusterImageSet": {
			change: func(v *view.View) {
				v.Release.Image, v.Release.SetImage, v.ControlPlane.Spec.Release.ImageSetRef.Name = "", at("6"), "set"
			},
			reason: controlplanev1.UpgradeRequestedReason, image: at("6"),
		},
		"a ClusterImageSet has a tag": {
			change: func(v *view.View) {
				v.Release.Image, v.Release.SetImage, v.ControlPlane.Spec.Release.ImageSetRef.Name = "", publicRepository+":4.20.8", "set"
			},
			reason: controlplanev1.UpgradeImageUnknownReason, message: "set spec.releaseImage of ClusterImageSet set",
		},
		"the registry has a port": {
			change: func(v *view.View) {
				v.Release.Image = "mirror.example.com:5000/release"
				v.ControlPlane.Status.Release.Image = v.Release.Image
			},
			reason: controlplanev1.UpgradeRequestedReason, image: "mirror.example.com:5000/release@sha256:" + strings.Repeat("8", 64),
		},
		"two minor versions": {
			change: func(v *view.View) { want(v, "4.22.0", "v1.35.1") }, reason: controlplanev1.UpgradeNotPossibleReason,
			message: "4.22.0 is too far ahead",
		},
		"5.0 of a release that leads to it": {
			change: func(v *view.View) { last(v); want(v, "5.0.1", "v1.36.3") }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"5.0 of a release that leads to it, whose gate is open": {
			change: func(v *view.View) {
				last(v)
				want(v, "5.0.1", "v1.36.3")
				v.Workload.Gates.Needed = []workload.Gate{{Key: "ack-4.22-removals-in-5.0", Text: gateText}}
			},
			reason: controlplanev1.UpgradeNotAcknowledgedReason, message: "* ack-4.22-removals-in-5.0: " + gateText,
		},
		"5.0 of a release that leads to it, which is not upgradeable": {
			change: func(v *view.View) {
				last(v)
				want(v, "5.0.1", "v1.36.3")
				v.Workload.Version.Upgradeable = because(no, "a pool is degraded")
			},
			reason: controlplanev1.UpgradeNotUpgradeableReason, message: "a pool is degraded",
		},
		"5.0 with the Kubernetes version of another release": {
			change: func(v *view.View) {
				last(v)
				want(v, "5.0.1", "v1.36.3")
				v.ControlPlane.Spec.Version = "v1.35.2"
			},
			reason: controlplanev1.UpgradeWaitingForVersionsReason, message: "Release 5.0.1 has Kubernetes v1.36.3, not v1.35.2",
		},
		"5.0 of an older release": {
			change: func(v *view.View) { want(v, "5.0.1", "v1.36.3") }, reason: controlplanev1.UpgradeNotPossibleReason,
			message: "5.0.1 is too far ahead, and 4.21 is next",
		},
		"5.1 of a release that leads to 5.0": {
			change: func(v *view.View) { last(v); want(v, "5.1.0", "v1.37.1") }, reason: controlplanev1.UpgradeNotPossibleReason,
			message: "5.1.0 is too far ahead, and 4.23 or 5.0 is next",
		},
		"it has left the release": {
			change: func(v *view.View) {
				v.Workload.Version.History = append(v.Workload.Version.History, workload.PastRelease{Release: next()})
			},
			reason: controlplanev1.UpgradeInterruptedReason, message: "set annotation controlplane.cluster.x-k8s.io/retry-upgrade",
		},
		"it has left the release, and the user wants it again": {
			change: func(v *view.View) {
				v.Workload.Version.History = append(v.Workload.Version.History, workload.PastRelease{Release: next()})
				v.ControlPlane.Annotations[controlplanev1.RetryUpgradeAnnotation] = ""
			},
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"a gate is open": {
			change: func(v *view.View) { gates(v, false) }, reason: controlplanev1.UpgradeNotAcknowledgedReason,
			message: "add the keys to spec.upgrade.acknowledgements:\n* " + gate + ": " + gateText,
		},
		"a gate is answered now": {
			change: func(v *view.View) { gates(v, false, gate) }, reason: controlplanev1.UpgradeNotAcknowledgedReason,
			message: "which has not seen it yet", acknowledge: []string{gate},
		},
		"a gate was answered, and the cluster has not seen it": {
			change: func(v *view.View) { gates(v, true, gate) }, reason: controlplanev1.UpgradeNotUpgradeableReason, message: "gates are open",
		},
		"gates do not matter within a minor version": {
			change: func(v *view.View) { gates(v, false); want(v, "4.20.8", "v1.33.6") },
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"not upgradeable": {
			change: func(v *view.View) { minor(v); v.Workload.Version.Upgradeable = because(no, "overrides are set") },
			reason: controlplanev1.UpgradeNotUpgradeableReason, message: "overrides are set",
		},
		"not upgradeable, within a minor version": {
			change: func(v *view.View) { v.Workload.Version.Upgradeable = because(no, "overrides are set") },
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"risks apply": {
			change: func(v *view.View) { risk(v, false) }, reason: controlplanev1.UpgradeRisksNotAcceptedReason,
			message: "add what you accept to spec.upgrade.acceptedRisks:\n* DiskEats: disks are eaten\n* Slow: it is slow",
		},
		"one risk is accepted": {
			change: func(v *view.View) { risk(v, false, controlplanev1.UpgradeRisk{Name: "DiskEats"}) },
			reason: controlplanev1.UpgradeRisksNotAcceptedReason, message: ":\n* Slow: it is slow",
		},
		"all risks are accepted": {
			change: func(v *view.View) {
				risk(v, false, controlplanev1.UpgradeRisk{Name: "DiskEats"}, controlplanev1.UpgradeRisk{Name: "Slow"})
			},
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"no risk applies": {
			change: func(v *view.View) { risk(v, true) }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"the updates are not known, whatever was known before": {
			change: func(v *view.View) { risk(v, false); v.Workload.Version.Retrieved = because(no, "no route to host") },
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"the channel is set first": {
			change: func(v *view.View) { v.ControlPlane.Spec.Upgrade.Channel = "fast-4.20" },
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "channel fast-4.20", channel: "fast-4.20",
		},
		"the channel was set, and the cluster has not seen it": {
			change: func(v *view.View) {
				v.ControlPlane.Spec.Upgrade.Channel, v.Workload.Version.Observed = "stable-4.20", false
			},
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "channel stable-4.20",
		},
		"the channel does not offer it": {
			change: func(v *view.View) {
				v.ControlPlane.Spec.Upgrade.Channel, v.Workload.Version.Retrieved = "stable-4.20", yes
			},
			reason: controlplanev1.UpgradeNotPossibleReason, message: "Channel stable-4.20 does not offer 4.20.8",
		},
		"nobody offers it, and no channel is asked for": {
			change: func(v *view.View) { v.Workload.Version.Retrieved = yes }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"a Machine leaves": {
			change: func(v *view.View) { v.Machines.Owned["cp-1"].DeletionTimestamp = &metav1.Time{Time: noon} },
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "* Machine cp-1 is being deleted",
		},
		"a Machine is missing": {
			change: func(v *view.View) { v.ControlPlane.Spec.Replicas = new(int32(4)) },
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "There are 3 Machines, and 4 replicas are wanted",
		},
		"a member of etcd is not healthy": {
			change: func(v *view.View) { v.Workload.Etcd.MembersDegraded = because(yes, "cp-1 is unhealthy") },
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "Members of etcd are not healthy: cp-1 is unhealthy",
		},
		"hosts get another configuration": {
			change: func(v *view.View) { v.Workload.Updates.PoolUpdating = because(yes, "1 of 3") },
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "MachineConfigPool master is updating its hosts: 1 of 3",
		},
		"the release that runs is failing": {
			change: func(v *view.View) { v.Workload.Version.Failing = because(yes, "ClusterOperatorDegraded") },
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "ClusterVersion version is failing: ClusterOperatorDegraded",
		},
		"a Machine is not healthy": {
			change: func(v *view.View) { markUnhealthy(v, "cp-1") },
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "Machine cp-1 is not healthy",
		},
	} {
		t.Run(name, tc.check)
	}
}
