// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// other is a release that nobody wants here, and that is older than the wanted one.
func other() workload.Release { return workload.Release{Version: "4.20.6", Image: at("6")} }

// recorded makes the control plane remember that the cluster was asked for a release, and asked makes the cluster be asked for it.
func recorded(v *view.View, r workload.Release) {
	v.ControlPlane.Annotations[controlplanev1.RequestedReleaseAnnotation] = view.RequestedText(r)
}
func asked(v *view.View, r workload.Release) { v.Workload.Version.Requested = r }

// again is a user who wants the cluster to be asked once more.
func again(v *view.View) { v.ControlPlane.Annotations[controlplanev1.RetryUpgradeAnnotation] = "" }

// TestRequestsOfOthers has a row for what others do to the request of the provider, and for their own requests.
func TestRequestsOfOthers(t *testing.T) {
	refused := func(v *view.View) { v.Workload.Version.Accepted = because(no, "cannot be verified") }
	for name, tc := range map[string]upgradeCase{
		"withdrawn": {
			change: func(v *view.View) { recorded(v, next()) }, reason: controlplanev1.UpgradeInterruptedReason,
			message: "The cluster was asked for 4.20.8, and ClusterVersion version asks for no release now: set annotation " +
				controlplanev1.RetryUpgradeAnnotation,
		},
		"replaced": {
			change: func(v *view.View) { recorded(v, next()); asked(v, other()) }, reason: controlplanev1.UpgradeInterruptedReason,
			message: "asks for 4.20.6 now",
		},
		"replaced by another image": {
			change: func(v *view.View) { recorded(v, next()); asked(v, workload.Release{Version: "4.20.8", Image: at("7")}) },
			reason: controlplanev1.UpgradeInterruptedReason,
		},
		"withdrawn, and the user wants it again": {
			change: func(v *view.View) { recorded(v, next()); again(v) }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"withdrawn, and the user has another image": {
			change: func(v *view.View) { recorded(v, next()); v.ControlPlane.Spec.Release.Image = at("9") },
			reason: controlplanev1.UpgradeRequestedReason, image: at("9"),
		},
		"another release was withdrawn": {
			change: func(v *view.View) { recorded(v, other()) }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"a record that cannot be read": {
			change: func(v *view.View) { v.ControlPlane.Annotations[controlplanev1.RequestedReleaseAnnotation] = "{" },
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"the same digest of a mirror": {
			change: func(v *view.View) {
				asked(v, workload.Release{Version: "4.20.8", Image: "mirror.example.com/r@sha256:" + strings.Repeat("8", 64)})
			},
			reason: controlplanev1.UpgradeRequestedReason, message: "has not begun yet",
		},
		"by image alone": {
			change: func(v *view.View) { asked(v, workload.Release{Image: at("8")}) },
			reason: controlplanev1.UpgradeRequestedReason, message: "has not begun yet",
		},
		"another one, and no answer yet": {
			change: func(v *view.View) {
				asked(v, other())
				v.Workload.Version.Accepted.Status = "Unknown"
				v.ControlPlane.Spec.Upgrade.Channel = "fast-4.20"
			},
			reason:  controlplanev1.UpgradeWaitingForControlPlaneReason,
			message: "ClusterVersion version asks for 4.20.6, which the cluster has not answered yet: it is asked for 4.20.8 after that",
		},
		"another one, which is not accepted": {
			change: func(v *view.View) { asked(v, other()); refused(v) }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"the one that runs": {
			change: func(v *view.View) { asked(v, v.Workload.Version.Desired) }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestChannelOfOthers: no channel is written to a cluster that is, goes or is about to go to a release that is not wanted here.
func TestChannelOfOthers(t *testing.T) {
	newer := workload.Release{Version: "4.20.9", Image: at("9")}
	for name, tc := range map[string]struct {
		change func(*view.View)
		want   string
	}{
		"it has what is wanted":         {func(v *view.View) { runs(v, next(), true, "") }, "fast-4.20"},
		"it goes to what is wanted":     {func(v *view.View) { runs(v, next(), false, "") }, "fast-4.20"},
		"it goes to another release":    {func(v *view.View) { runs(v, other(), false, "") }, ""},
		"it goes beyond what is wanted": {func(v *view.View) { runs(v, newer, false, "") }, ""},
		"it is beyond what is wanted":   {func(v *view.View) { runs(v, newer, true, "") }, ""},
		"it is about to go beyond": {func(v *view.View) {
			runs(v, next(), true, "")
			asked(v, newer)
			v.Workload.Version.Accepted.Status = "Unknown"
		}, ""},
		"its connection is lost": {func(v *view.View) { v.Workload.Version = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := upgradeView()
			v.ControlPlane.Spec.Upgrade.Channel = "fast-4.20"
			tc.change(v)
			NewWithT(t).Expect(plan.DecideUpgrade(v).Channel).To(Equal(tc.want))
		})
	}
}

// TestRequestIsRecorded: the record is what the cluster was seen to be asked for, as long as it is wanted, and the user's wish to ask again
// ends when the cluster is asked.
func TestRequestIsRecorded(t *testing.T) {
	text := view.RequestedText(next())
	for name, tc := range map[string]struct {
		change   func(*view.View)
		record   *string
		endRetry bool
	}{
		"not asked yet":              {change: func(*view.View) {}},
		"asked":                      {change: func(v *view.View) { asked(v, next()) }, record: &text},
		"asked and recorded":         {change: func(v *view.View) { asked(v, next()); recorded(v, next()) }},
		"withdrawn":                  {change: func(v *view.View) { recorded(v, next()) }},
		"another release is wanted":  {change: func(v *view.View) { recorded(v, other()) }, record: new("")},
		"the user has taken it back": {change: func(v *view.View) { recorded(v, next()); want(v, "4.20.4", "v1.33.4") }, record: new("")},
		"goes on":                    {change: func(v *view.View) { asked(v, next()); runs(v, next(), false, "") }, record: &text},
		"done":                       {change: func(v *view.View) { asked(v, next()); recorded(v, next()); runs(v, next(), true, "") }},
		"once more, not asked yet":   {change: again},
		"once more, asked":           {change: func(v *view.View) { again(v); asked(v, next()); recorded(v, next()) }, endRetry: true},
		"once more, and it goes on":  {change: func(v *view.View) { again(v); runs(v, next(), false, "") }, endRetry: true},
		"once more, and it is done":  {change: func(v *view.View) { again(v); runs(v, next(), true, "") }, endRetry: true},
		"another cluster answers":    {change: func(v *view.View) { again(v); v.Workload.Version, v.Workload.OtherCluster = nil, "other" }},
		"the connection is lost":     {change: func(v *view.View) { again(v); v.Workload.Version = nil }},
		"once more, another goes on": {change: func(v *view.View) { again(v); runs(v, other(), false, "") }},
		"asked by version, no digest": {
			change: func(v *view.View) { asked(v, workload.Release{Version: "4.20.8"}); recorded(v, next()) },
			record: new(`{"version":"4.20.8"}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := upgradeView()
			tc.change(v)
			d := plan.DecideUpgrade(v)
			g.Expect(d.Record).To(Equal(tc.record))
			g.Expect(d.EndRetry).To(Equal(tc.endRetry))
		})
	}
}

// TestUpgradeWaits has rows for what is not known, or known of something else.
func TestUpgradeWaits(t *testing.T) {
	silent := func(v *view.View) {
		v.ControlPlane.Status.Release, v.Release.Off = controlplanev1.ReleaseStatus{}, true
	}
	risks := func(v *view.View) {
		v.ControlPlane.Annotations[controlplanev1.KnownRisksAnnotation] = view.KnownRisks{
			ClusterID: "3c1d", Version: "4.20.8", Risks: map[string]string{"DiskEats": "disks are eaten"},
		}.String()
	}
	for name, tc := range map[string]upgradeCase{
		"the image is that of the release that runs": {
			change: func(v *view.View) { silent(v); v.ControlPlane.Spec.Release.Image = at("4") },
			reason: controlplanev1.UpgradeWaitingForVersionsReason,
			message: "spec.release.image is the image of release 4.20.4, and spec.distributionVersion is 4.20.8: set it to the image of that " +
				"release",
		},
		"and the cluster was asked for it by image": {
			change: func(v *view.View) {
				silent(v)
				v.ControlPlane.Spec.Release.Image = at("4")
				asked(v, workload.Release{Image: at("4")})
			},
			reason: controlplanev1.UpgradeWaitingForVersionsReason, message: "spec.release.image is the image of release 4.20.4",
		},
		"the ClusterImageSet has that of the release that runs": {
			change: func(v *view.View) {
				v.Release.Image, v.Release.SetImage, v.ControlPlane.Spec.Release.ImageSetRef.Name = "", at("4"), "set"
			},
			reason:  controlplanev1.UpgradeWaitingForVersionsReason,
			message: "spec.releaseImage of ClusterImageSet set is the image of release 4.20.4",
		},
		"the channel was set, and no updates were looked for": {
			change: func(v *view.View) {
				v.ControlPlane.Spec.Upgrade.Channel = "stable-4.20"
				v.Workload.Version.Retrieved.Reason = "NoChannel"
			},
			reason: controlplanev1.UpgradeWaitingForControlPlaneReason, message: "channel stable-4.20",
		},
		"no channel is wanted, and there is none": {
			change: func(v *view.View) { v.Workload.Version.Channel, v.Workload.Version.Retrieved.Reason = "", "NoChannel" },
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"the updates went out of reach": {
			change: risks, reason: controlplanev1.UpgradeRisksNotAcceptedReason, message: "* DiskEats: disks are eaten",
		},
		"the updates went out of reach, and the user has changed the spec": {
			change: func(v *view.View) { risks(v); v.ControlPlane.Generation++ }, reason: controlplanev1.UpgradeRisksNotAcceptedReason,
			message: "* DiskEats: disks are eaten",
		},
		"the updates went out of reach, and the risk is of another release": {
			change: func(v *view.View) { risks(v); want(v, "4.20.9", "v1.33.6") }, reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"the updates went out of reach, and the risk is of another cluster": {
			change: func(v *view.View) { risks(v); v.Record.ClusterID, v.Workload.Version.ClusterID = "9b7e", "9b7e" },
			reason: controlplanev1.UpgradeRequestedReason, image: at("8"),
		},
		"gates cannot be read": {
			change:  func(v *view.View) { minor(v); v.Workload.Gates.Problem = errors.New("read ConfigMap admin-gates: EOF") },
			reason:  controlplanev1.UpgradeNotAcknowledgedReason,
			message: "It is not known what has to be acknowledged before the upgrade to 4.21.2: read ConfigMap admin-gates: EOF",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestRisksAreRemembered: what comes and goes between two passes does not make the cluster forget a risk that nobody has accepted. Each row
// is a pass with something else in the way, and then one without it.
func TestRisksAreRemembered(t *testing.T) {
	const risk = "* DiskEats: disks are eaten"
	unreachable := func(v *view.View) { v.Workload.Version.Retrieved = because(no, "no route to host") }
	risky := func(v *view.View) {
		v.Workload.Version.Retrieved = yes
		v.Workload.Version.Conditional = []workload.ConditionalRelease{
			{Release: workload.Release{Version: "4.21.2", Image: at("8")}, Risks: map[string]string{"DiskEats": "disks are eaten"}},
		}
	}
	channel := func(v *view.View) { v.ControlPlane.Spec.Upgrade.Channel = "stable-4.20" }
	remembered := upgradeCase{reason: controlplanev1.UpgradeRisksNotAcceptedReason, message: risk}
	requested := upgradeCase{reason: controlplanev1.UpgradeRequestedReason, image: at("8")}
	for name, tc := range map[string]struct {
		before, meanwhile, after func(*view.View)
		want                     upgradeCase
	}{
		"gates could not be read": {
			meanwhile: func(v *view.View) { v.Workload.Gates.Problem = errors.New("EOF") },
			after:     func(v *view.View) { v.Workload.Gates.Problem = nil }, want: remembered,
		},
		"gates could not be read while the update service answered": {
			meanwhile: func(v *view.View) { risky(v); v.Workload.Gates.Problem = errors.New("EOF") },
			after:     func(v *view.View) { unreachable(v); v.Workload.Gates.Problem = nil }, want: remembered,
		},
		"an operator was not ready": {
			meanwhile: func(v *view.View) { v.Workload.Version.Upgradeable = no },
			after:     func(v *view.View) { v.Workload.Version.Upgradeable = yes }, want: remembered,
		},
		"somebody edited the ClusterVersion, which has a channel of the spec": {
			before: channel, meanwhile: func(v *view.View) { v.Workload.Version.Observed = false },
			after: func(v *view.View) { v.Workload.Version.Observed = true }, want: remembered,
		},
		"a new manager asked the registry": {
			meanwhile: func(v *view.View) { v.ControlPlane.Status.Release = controlplanev1.ReleaseStatus{} }, after: minor, want: remembered,
		},
		"another cluster answered": {
			meanwhile: func(v *view.View) { v.Workload.Version, v.Workload.OtherCluster = nil, "other" },
			after:     func(v *view.View) { v.Workload.Version, v.Workload.OtherCluster = upgradeView().Workload.Version, "" }, want: remembered,
		},
		"somebody else upgraded the cluster": {
			meanwhile: func(v *view.View) { runs(v, other(), false, "Working towards 4.20.6") },
			after: func(v *view.View) {
				told(v)
				v.Workload.Version.History[0].Completed, v.Workload.Version.Progressing = true, no
			}, want: remembered,
		},
		"the user wanted another release": {
			meanwhile: func(v *view.View) { want(v, "4.20.8", "v1.33.6"); v.Workload.Version.Upgradeable = no }, after: func(v *view.View) {
				minor(v)
				v.Workload.Version.Upgradeable = yes
			}, want: remembered,
		},
		"the user wanted no other release": {
			meanwhile: func(v *view.View) { want(v, "4.20.4", "v1.33.4") }, after: minor, want: remembered,
		},
		"the user changed something else": {
			meanwhile: func(v *view.View) { v.ControlPlane.Generation++ }, want: remembered,
		},
		"the update service answers, and does not know the release any more": {
			meanwhile: unreachable, after: func(v *view.View) { risky(v); v.Workload.Version.Conditional = nil }, want: remembered,
		},
		"the update service answers, and the risk is still there": {
			meanwhile: unreachable, after: func(v *view.View) {
				risky(v)
				v.Workload.Version.Conditional[0].Risks = map[string]string{"Slow": "it is slow"}
			},
			want: upgradeCase{reason: controlplanev1.UpgradeRisksNotAcceptedReason, message: "* Slow: it is slow"},
		},
		"the update service answers, and the risk applies no more": {
			meanwhile: unreachable, after: func(v *view.View) { risky(v); v.Workload.Version.Conditional[0].Recommended = true }, want: requested,
		},
		"the update service answers, and recommends the release": {
			meanwhile: unreachable, after: func(v *view.View) {
				risky(v)
				v.Workload.Version.Available, v.Workload.Version.Conditional = []workload.Release{{Version: "4.21.2"}}, nil
			}, want: requested,
		},
		"the user has accepted it, and the cluster did not answer meanwhile": {
			meanwhile: func(v *view.View) {
				cp := v.ControlPlane
				cp.Spec.Upgrade.AcceptedRisks = []controlplanev1.UpgradeRisk{{Name: "DiskEats"}}
				cp.Generation++
				cp.Status.ObservedGeneration, v.Workload.Version = cp.Generation, nil
			},
			after: func(v *view.View) { v.Workload.Version = upgradeView().Workload.Version }, want: requested,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.change = func(v *view.View) {
				minor(v)
				for _, change := range []func(*view.View){tc.before, risky, told, unreachable, told, tc.meanwhile, told, tc.after} {
					if change != nil {
						change(v)
					}
				}
			}
			tc.want.check(t)
		})
	}
}

// told is the end of a pass: the control plane gets what is decided about it.
func told(v *view.View) {
	d := plan.DecideUpgrade(v)
	if d.Reason != "" {
		conditions.Set(v.ControlPlane, metav1.Condition{
			Type: controlplanev1.UpgradingCondition, Status: metav1.ConditionFalse, Reason: d.Reason, Message: d.Message,
		})
	}
	if d.Risks != nil {
		v.ControlPlane.Annotations[controlplanev1.KnownRisksAnnotation] = *d.Risks
	}
}

// TestRisksThatAreRecorded: what is recorded is right after one pass, stays within bounds, and goes when it says nothing any more.
func TestRisksThatAreRecorded(t *testing.T) {
	risky := func(v *view.View, risks map[string]string) {
		v.Workload.Version.Retrieved = yes
		v.Workload.Version.Conditional = []workload.ConditionalRelease{{Release: next(), Risks: risks}}
	}
	many := map[string]string{}
	for i := range 1000 {
		many[strings.Repeat("ä", 1000)+strconv.Itoa(i)], many[strconv.Itoa(i)] = "long", "many"
	}
	for name, tc := range map[string]struct {
		before, change func(*view.View)
		want           int
	}{
		"risks":                {change: func(v *view.View) { risky(v, map[string]string{"A": "a", "B": "b"}) }, want: 2},
		"too many":             {change: func(v *view.View) { risky(v, many) }, want: 32},
		"one that is too long": {change: func(v *view.View) { risky(v, map[string]string{strings.Repeat("ä", 1000): "long"}) }, want: 1},
		"none any more": {
			before: func(v *view.View) { risky(v, map[string]string{"A": "a"}) },
			change: func(v *view.View) { v.Workload.Version.Conditional[0].Recommended = true },
		},
		"the cluster has the release": {
			before: func(v *view.View) { risky(v, map[string]string{"A": "a"}) }, change: func(v *view.View) { runs(v, next(), true, "") },
		},
		"another cluster was installed": {
			before: func(v *view.View) { risky(v, map[string]string{"A": "a"}) },
			change: func(v *view.View) {
				v.Record.ClusterID, v.Workload.Version = "9b7e", upgradeView().Workload.Version
				v.Workload.Version.ClusterID = "9b7e"
			},
		},
		"nothing that can be read": {
			before: func(v *view.View) { v.ControlPlane.Annotations[controlplanev1.KnownRisksAnnotation] = "{" }, change: func(*view.View) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := upgradeView()
			if tc.before != nil {
				tc.before(v)
				told(v)
			}
			tc.change(v)
			told(v)
			g.Expect(plan.DecideUpgrade(v).Risks).To(BeNil(), "the record is right")
			g.Expect(view.KnownRisksOf(v.ControlPlane).Risks).To(HaveLen(tc.want))
			g.Expect(len(v.ControlPlane.Annotations[controlplanev1.KnownRisksAnnotation])).To(BeNumerically("<", 50_000))
			v.Workload.Version.Retrieved = no
			g.Expect(plan.DecideUpgrade(v).Risks).To(BeNil(), "also while the updates cannot be read")
		})
	}
}
