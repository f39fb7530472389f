// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// TestUpgradeGoesOn has a row for everything that the version operator answers, and for what others ask it for.
func TestUpgradeGoesOn(t *testing.T) {
	for name, tc := range map[string]upgradeCase{
		"asked, and not seen": {
			change: func(v *view.View) { asked(v, next()); v.Workload.Version.Observed = false },
			reason: controlplanev1.UpgradeRequestedReason, message: "has not answered yet",
		},
		"asked, and not begun": {
			change: func(v *view.View) { asked(v, next()) }, reason: controlplanev1.UpgradeRequestedReason, message: "has not begun yet",
		},
		"asked by version alone": {
			change: func(v *view.View) { v.Workload.Version.Requested = workload.Release{Version: "4.20.8"} },
			reason: controlplanev1.UpgradeRequestedReason, message: "has not begun yet",
		},
		"not accepted": {
			change: func(v *view.View) {
				asked(v, next())
				v.Workload.Version.Accepted = workload.OperatorCondition{Status: "False", Reason: "VerifyPayloadVersion", Message: "it is 4.20.9"}
			},
			reason: controlplanev1.UpgradeReleaseNotAcceptedReason, message: "The cluster does not accept 4.20.8: it is 4.20.9",
		},
		"not signed": {
			change: func(v *view.View) {
				asked(v, next())
				v.Workload.Version.Accepted = workload.OperatorCondition{Status: "False", Reason: "RetrievePayload", Message: "cannot be verified"}
			},
			reason: controlplanev1.UpgradeReleaseNotAcceptedReason, message: "in a ConfigMap of namespace openshift-config-managed",
		},
		"not valid": {
			change: func(v *view.View) { asked(v, next()); v.Workload.Version.Invalid = because(yes, "no such version") },
			reason: controlplanev1.UpgradeReleaseNotAcceptedReason, message: "no such version",
		},
		"not accepted, and the user has another image": {
			change: func(v *view.View) {
				asked(v, next())
				v.Workload.Version.Accepted = because(no, "cannot be verified")
				v.ControlPlane.Spec.Release.Image = at("9")
			},
			reason: controlplanev1.UpgradeRequestedReason, image: at("9"),
		},
		"in progress": {
			change: func(v *view.View) {
				asked(v, next())
				runs(v, next(), false, "Working towards 4.20.8: 13% complete, waiting on etcd")
			},
			reason: controlplanev1.UpgradeInProgressReason, message: "Working towards 4.20.8: 13% complete, waiting on etcd",
		},
		"slow": {
			change: func(v *view.View) {
				runs(v, next(), false, "Working towards 4.20.8")
				v.Workload.Version.Failing = workload.OperatorCondition{Status: "Unknown", Reason: "SlowClusterOperator", Message: "etcd takes long"}
			},
			reason: controlplanev1.UpgradeStalledReason, message: "etcd takes long",
		},
		"failing": {
			change: func(v *view.View) {
				runs(v, next(), false, "Working towards 4.20.8")
				v.Workload.Version.Failing = because(yes, "Cluster operator etcd is degraded")
			},
			reason: controlplanev1.UpgradeFailingReason, message: "ClusterVersion version is failing: Cluster operator etcd is degraded",
		},
		"the pool is paused": {
			change: func(v *view.View) {
				runs(v, next(), false, "Working towards 4.20.8")
				v.Workload.Updates.PoolPaused = true
			},
			reason: controlplanev1.UpgradeStalledReason, message: "MachineConfigPool master is paused",
		},
		"the pool is degraded": {
			change: func(v *view.View) {
				runs(v, next(), false, "Working towards 4.20.8")
				v.Workload.Updates.PoolDegraded = because(yes, "Node cp-1 has unexpected files")
			},
			reason: controlplanev1.UpgradeFailingReason, message: "MachineConfigPool master is degraded: Node cp-1 has unexpected files",
		},
		"done": {change: func(v *view.View) { asked(v, next()); runs(v, next(), true, "") }, reason: controlplanev1.NotUpgradingReason},
		"done, and the registry is asked anew": {
			change: func(v *view.View) {
				asked(v, next())
				runs(v, next(), true, "")
				v.ControlPlane.Status.Release = controlplanev1.ReleaseStatus{}
			},
			reason: controlplanev1.NotUpgradingReason,
		},
		"somebody else asks for another": {
			change: func(v *view.View) { runs(v, workload.Release{Version: "4.20.6"}, false, "Working towards 4.20.6") },
			reason: controlplanev1.UpgradeInProgressReason, message: "The cluster goes to 4.20.6, and spec.distributionVersion is 4.20.8: " +
				"nothing is asked for before this ends. To follow it, set spec.distributionVersion and spec.version to that release",
		},
		"somebody else asks for another, and the channel is changed": {
			change: func(v *view.View) {
				runs(v, workload.Release{Version: "4.20.6"}, false, "Working towards 4.20.6")
				v.ControlPlane.Spec.Upgrade.Channel = "fast-4.20"
			},
			reason: controlplanev1.UpgradeInProgressReason, message: "The cluster goes to 4.20.6",
		},
		"somebody else has brought it further, and the channel is changed": {
			change: func(v *view.View) {
				runs(v, workload.Release{Version: "4.20.9"}, true, "")
				v.ControlPlane.Spec.Upgrade.Channel = "fast-4.20"
			},
			reason: controlplanev1.NotUpgradingReason, message: "newer than spec.distributionVersion",
		},
		"the channel of the next release is set meanwhile": {
			change: func(v *view.View) {
				asked(v, next())
				runs(v, next(), false, "Working towards 4.20.8")
				v.ControlPlane.Spec.Upgrade.Channel = "stable-4.21"
			},
			reason: controlplanev1.UpgradeInProgressReason, channel: "stable-4.21",
		},
		"the channel of the next release is set afterwards": {
			change: func(v *view.View) {
				asked(v, next())
				runs(v, next(), true, "")
				v.ControlPlane.Spec.Upgrade.Channel = "stable-4.21"
			},
			reason: controlplanev1.NotUpgradingReason, channel: "stable-4.21",
		},
		"somebody else has brought it further": {
			change: func(v *view.View) { runs(v, workload.Release{Version: "4.20.9"}, true, "") },
			reason: controlplanev1.NotUpgradingReason, message: "The cluster runs 4.20.9, which is newer than spec.distributionVersion: to " +
				"follow it, set spec.distributionVersion and spec.version",
		},
		"the user has taken back what the cluster does not accept": {
			change: func(v *view.View) { asked(v, next()); want(v, "4.20.4", "v1.33.4") },
			reason: controlplanev1.NotUpgradingReason, message: "\"oc adm upgrade --clear\" withdraws it",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestUpgradeProgress: what status tells of an upgrade.
func TestUpgradeProgress(t *testing.T) {
	g := NewWithT(t)
	v := upgradeView()
	g.Expect(plan.UpgradeProgress(nil)).To(BeZero())
	g.Expect(plan.UpgradeProgress(v.Workload.Version)).To(BeZero())
	runs(v, next(), false, "Working towards 4.20.8: 13% complete, waiting on etcd")
	g.Expect(plan.UpgradeProgress(v.Workload.Version)).To(Equal(controlplanev1.UpgradeStatus{
		Version: "4.20.8", Image: at("8"), StartedTime: metav1.NewTime(noon.Add(-time.Minute)), ProgressPercentage: new(int32(13)),
	}))
	g.Expect(plan.CompletedRelease(v.Workload.Version)).To(Equal("4.20.4"))
	runs(v, workload.Release{Version: "4.20.9"}, false, "Working towards 4.20.9: 130% complete")
	g.Expect(plan.UpgradeProgress(v.Workload.Version).ProgressPercentage).To(BeNil())
}

// TestUpdating: a Machine that differs in more than its version is not upgraded in place.
func TestUpdating(t *testing.T) {
	g := NewWithT(t)
	v := upgradeView()
	m := &clusterv1.Machine{}
	m.Spec.Version = "v1.33.4"
	g.Expect(plan.Updating(v, m)).To(BeTrue())
	m.Spec.Version = "v1.33.6"
	g.Expect(plan.Updating(v, m)).To(BeFalse())
	m.Spec.Version, v.ControlPlane.Spec.Rollout.After = "v1.33.4", metav1.NewTime(noon.Add(-time.Hour))
	g.Expect(plan.Updating(v, m)).To(BeFalse())
}

// TestMemberStaysWhileHostsRestart: of three members two would be left, and the next restart would cost the quorum.
func TestMemberStaysWhileHostsRestart(t *testing.T) {
	g := NewWithT(t)
	etcd := plan.Etcd{Stable: true, Members: []workload.Member{{ID: 1, Healthy: true}, {ID: 2, Healthy: true}, {ID: 3, Healthy: true}}}
	g.Expect(etcd.MayLose(etcd.Members[0])).To(BeEmpty())
	etcd.Restarts = []string{"ClusterVersion version is progressing: Working towards 4.21.2"}
	g.Expect(etcd.MayLose(etcd.Members[0])).To(Equal("The hosts are restarted one after the other, and nobody leaves before that ends: " +
		"ClusterVersion version is progressing: Working towards 4.21.2"))
	etcd.Members[0].Healthy = false
	g.Expect(etcd.MayLose(etcd.Members[0])).To(Equal("etcd would have 2 voting members while the hosts are restarted one after the other: "+
		"set spec.paused of MachineConfigPool master to true until another host has joined (ClusterVersion version is progressing: Working "+
		"towards 4.21.2)"), "one that is dead keeps the next host from being restarted")
	etcd.Paused = true
	g.Expect(etcd.MayLose(etcd.Members[0])).To(BeEmpty())
	etcd.Paused = false
	etcd.Members = append(etcd.Members, workload.Member{ID: 4, Healthy: true})
	g.Expect(etcd.MayLose(etcd.Members[0])).To(BeEmpty(), "three are left")
}

// TestUpgradeYields: no upgrade begins in the pass in which a Machine begins to come or go.
func TestUpgradeYields(t *testing.T) {
	m := &clusterv1.Machine{}
	for name, tc := range map[string]struct {
		machines plan.MachinesDecision
		rollout  plan.RolloutDecision
		remedy   plan.RemediationDecision
		yields   bool
	}{
		"nothing happens":                       {},
		"an unhealthy Machine waits":            {remedy: plan.RemediationDecision{Verdicts: map[string]plan.Verdict{"cp-0": {}}}},
		"a Machine is created":                  {machines: plan.MachinesDecision{Create: []string{"cp-3"}}, yields: true},
		"a Machine is too many":                 {machines: plan.MachinesDecision{Surplus: []*clusterv1.Machine{m}}, yields: true},
		"an outdated Machine is deleted":        {rollout: plan.RolloutDecision{Delete: m}, yields: true},
		"an unhealthy Machine is to be deleted": {remedy: plan.RemediationDecision{Record: &view.Remediation{}}, yields: true},
		"an unhealthy Machine is deleted":       {remedy: plan.RemediationDecision{Delete: m}, yields: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := plan.DecideUpgrade(upgradeView())
			g.Expect(d.Request).To(Equal(next()))
			d.YieldTo(tc.machines, tc.rollout, tc.remedy)
			if !tc.yields {
				g.Expect(d.Request).To(Equal(next()))
				return
			}
			g.Expect(d.Request).To(Equal(workload.Release{}))
			g.Expect(d.Reason).To(Equal(controlplanev1.UpgradeWaitingForControlPlaneReason))
			g.Expect(d.Message).To(HaveSuffix("* Control-plane Machines come or go"))
		})
	}
}
