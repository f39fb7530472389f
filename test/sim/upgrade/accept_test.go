// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
)

func image(version string) string {
	r, _ := catalogue().ByVersion(version)
	return r.Image
}

// TestAccept is what becomes of one request. A reason of PayloadLoaded with another target is an update that begins.
func TestAccept(t *testing.T) {
	unknown := "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("ab", 32)
	tests := map[string]struct {
		from    string
		update  configv1.Update
		change  func(*world)
		reason  string
		message string
		invalid string
		risks   string
		// target is empty when nothing begins.
		target string
	}{
		"a z-stream by digest":   {update: configv1.Update{Version: "4.20.8", Image: image("4.20.8")}, target: "4.20.8", reason: "PayloadLoaded"},
		"an image alone":         {update: configv1.Update{Image: image("4.20.8")}, target: "4.20.8", reason: "PayloadLoaded"},
		"a version of the graph": {update: configv1.Update{Version: "4.20.8"}, target: "4.20.8", reason: "PayloadLoaded"},
		"a version that is not recommended": {
			update: configv1.Update{Version: "4.20.9"}, change: func(w *world) { w.Knobs.Signatures = []string{"sha256:" + digest("4.20.9")} },
			target: "4.20.9", reason: "PayloadLoaded", risks: `Precondition "ClusterVersionRecommendedUpdate" failed because of "MultipleReasons"`,
		},
		"a version that the graph does not know": {
			update: configv1.Update{Version: "4.21.3"}, reason: "PayloadLoaded", message: `version="4.20.0"`,
			invalid: `spec.desiredUpdate.version: Invalid value: "4.21.3": when image is empty the update must be a previous version`,
		},
		"a version without a graph": {
			update: configv1.Update{Version: "4.20.8"}, change: func(w *world) { w.Knobs.Unreachable = true }, reason: "PayloadLoaded",
			invalid: "must be a previous version or an available update",
		},
		"nothing at all":        {update: configv1.Update{Force: true}, reason: "PayloadLoaded", invalid: "must specify version or image"},
		"the installed version": {update: configv1.Update{Version: "4.20.0"}, reason: "PayloadLoaded"},
		"a tag": {
			update: configv1.Update{Image: "quay.io/ocp:4.20.8"}, reason: "RetrievePayload",
			message: "The update cannot be verified: release images that are not accessed via digest cannot be verified",
		},
		"an unsigned digest": {
			update: configv1.Update{Version: "4.20.9", Image: image("4.20.9")}, reason: "RetrievePayload",
			message: "The update cannot be verified: unable to verify sha256:" + digest("4.20.9"),
		},
		"an unsigned digest by force": {
			update: configv1.Update{Version: "4.20.9", Image: image("4.20.9"), Force: true}, reason: "PayloadLoaded", target: "4.20.9",
			risks: "cannot be verified, but continuing anyway because the update was forced",
		},
		"an unknown digest": {update: configv1.Update{Image: unknown}, reason: "RetrievePayload", message: "cannot be verified"},
		"an unknown digest by force": {
			update: configv1.Update{Image: unknown, Force: true}, reason: "RetrievePayload", message: "manifest unknown",
		},
		"a version and another image": {
			update: configv1.Update{Version: "4.20.7", Image: image("4.20.8")}, reason: "VerifyPayloadVersion",
			message: "release image version 4.20.8 does not match the expected upstream version 4.20.7",
		},
		"a rollback without a history": {
			update: configv1.Update{Image: image("4.19.30")}, reason: "PreconditionChecks",
			message: `"ClusterVersionRollback" failed because of "LowDesiredVersion"`,
		},
		"two minor versions": {
			update: configv1.Update{Image: image("4.22.0")}, reason: "PreconditionChecks",
			message: `"ClusterVersionGiantHop" failed because of "MultipleMinorVersionsUpdate"`,
		},
		"two minor versions by force": {
			update: configv1.Update{Image: image("4.22.0"), Force: true}, reason: "PayloadLoaded", target: "4.22.0",
			risks: "Forced through blocking failures",
		},
		"5.0 from an early 4.y": {
			update: configv1.Update{
				Image: image("5.0.1"),
			},
			reason:  "PreconditionChecks",
			message: "only updates within the current major version are",
		},
		"5.0 from the first 4.y that leads to it": {
			from: "4.22.0", update: configv1.Update{Image: image("5.0.1")}, reason: "PayloadLoaded", target: "5.0.1",
		},
		"5.0 from a later 4.y": {from: "4.23.1", update: configv1.Update{Image: image("5.0.1")}, reason: "PayloadLoaded", target: "5.0.1"},
		"5.1 from a 4.y that leads to 5.0": {
			from: "4.23.1", update: configv1.Update{Image: image("5.1.0")}, reason: "PreconditionChecks",
			message: `"MajorVersionUpdate": 5.1.0 has a larger major version than the current target 4.23.1 (5 > 4), and only updates within the ` +
				"current major version or to 5.0 are supported.",
		},
		"5.1 from 5.0":    {from: "5.0.1", update: configv1.Update{Image: image("5.1.0")}, reason: "PayloadLoaded", target: "5.1.0"},
		"a minor version": {from: "4.20.7", update: configv1.Update{Image: image("4.21.3")}, reason: "PayloadLoaded", target: "4.21.3"},
		"no acknowledgement": {
			from: "4.20.8", update: configv1.Update{Image: image("4.21.3")}, reason: "PreconditionChecks", message: "AdminAckRequired",
		},
		"no acknowledgement needed": {
			from: "4.20.8", update: configv1.Update{Image: image("4.20.9")},
			change: func(w *world) { w.Knobs.Signatures = []string{"sha256:" + digest("4.20.9")} }, reason: "PayloadLoaded", target: "4.20.9",
		},
		"acknowledged": {
			from: "4.20.8", update: configv1.Update{Image: image("4.21.3")}, change: func(w *world) { w.in.Acks[gate] = "true" },
			reason: "PayloadLoaded", target: "4.21.3",
		},
		"acknowledged by another word": {
			from: "4.20.8", update: configv1.Update{Image: image("4.21.3")}, change: func(w *world) { w.in.Acks[gate] = "yes" },
			reason: "PreconditionChecks", message: "AdminAckRequired",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from := "4.20.0"
			if tc.from != "" {
				from = tc.from
			}
			w := newWorld(t, from, Options{}, "m0")
			if tc.change != nil {
				tc.change(w)
			}
			w.ask(tc.update)
			w.ticks(3)
			accepted := w.condition("ReleaseAccepted")
			w.g.Expect(accepted.Reason).To(Equal(tc.reason), accepted.Message)
			w.g.Expect(w.is("ReleaseAccepted", configv1.ConditionTrue)).To(Equal(tc.reason == "PayloadLoaded"))
			w.g.Expect(accepted.Message).To(ContainSubstring(tc.message))
			w.g.Expect(w.is("Invalid", configv1.ConditionTrue)).To(Equal(tc.invalid != ""))
			w.g.Expect(w.condition("Invalid").Message).To(ContainSubstring(tc.invalid))
			w.g.Expect(w.Status().ObservedGeneration).To(Equal(int64(2)))
			newest := w.Status().History[0]
			w.g.Expect(newest.AcceptedRisks).To(ContainSubstring(tc.risks))
			if tc.target == "" {
				w.g.Expect(w.Status().Desired.Version).To(Equal(from))
				w.g.Expect(w.Status().History).To(HaveLen(1))
				return
			}
			w.g.Expect(w.Status().Desired.Version).To(Equal(tc.target))
			w.g.Expect(newest.Version).To(Equal(tc.target))
			w.g.Expect(newest.Verified).To(Equal(!strings.Contains(tc.risks, "cannot be verified")))
		})
	}
}

func digest(version string) string {
	_, digest, _ := strings.Cut(image(version), "@sha256:")
	return digest
}

// TestRefusedUntilAnswered is a request that waits for its acknowledgement.
func TestRefusedUntilAnswered(t *testing.T) {
	w := newWorld(t, "4.20.8", Options{}, "m0")
	w.askFor("4.21.3")
	w.ticks(5)
	w.g.Expect(w.condition("ReleaseAccepted").Reason).To(Equal("PreconditionChecks"))
	w.g.Expect(w.condition("Progressing").Message).To(Equal("Cluster version is 4.20.8"))
	w.in.Acks[gate] = "true"
	w.completed("4.21.3")
	w.g.Expect(w.condition("ReleaseAccepted").Reason).To(Equal("PayloadLoaded"))
}

// TestUpgradeable is every source of Upgradeable=False.
func TestUpgradeable(t *testing.T) {
	tests := map[string]struct {
		from, reason, message string
		change                func(*world)
	}{
		"nothing": {},
		"a gate":  {from: "4.20.8", reason: "AdminAckRequired", message: "Kubernetes 1.34 removes APIs."},
		"an operator": {
			change: func(w *world) { w.Knobs.NotUpgradeable = map[string]string{"console": "no"} },
			reason: "NotUpgradeable", message: "console",
		},
		"a degraded pool": {change: func(w *world) { w.Knobs.PoolDegraded = map[string]string{Worker: "disk full"} }, reason: "DegradedPool"},
		"an override": {
			change: func(w *world) { w.in.Spec.Overrides = []configv1.ComponentOverride{{Unmanaged: true}} }, reason: "ClusterVersionOverridesSet",
		},
		"an override of nothing": {change: func(w *world) { w.in.Spec.Overrides = []configv1.ComponentOverride{{}} }},
		"an update":              {change: func(w *world) { w.askFor("4.20.7") }, reason: "UpdateInProgress"},
		"two operators": {
			change:  func(w *world) { w.Knobs.NotUpgradeable = map[string]string{"console": "no", "network": "never"} },
			reason:  "ClusterOperatorsNotUpgradeable",
			message: "Cluster operator network",
		},
		"several": {
			from: "4.20.8", change: func(w *world) { w.Knobs.NotUpgradeable = map[string]string{"console": "no"} }, reason: "MultipleReasons",
			message: "multiple reasons: AdminAckRequired,NotUpgradeable\n* Kubernetes 1.34 removes APIs.\n* Cluster operator console",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from := "4.20.0"
			if tc.from != "" {
				from = tc.from
			}
			w := newWorld(t, from, Options{}, "m0", "w0")
			if tc.change != nil {
				tc.change(w)
			}
			w.ticks(2)
			is := w.condition("Upgradeable")
			w.g.Expect(is.Reason).To(Equal(tc.reason), is.Message)
			w.g.Expect(is.Message).To(ContainSubstring(tc.message))
			w.g.Expect(w.is("Upgradeable", configv1.ConditionFalse)).To(Equal(tc.reason != ""))
			// One source has no condition of its own.
			w.g.Expect(w.is("UpgradeableAdminAck", configv1.ConditionFalse)).To(Equal(tc.reason == "MultipleReasons"))
		})
	}
}

// TestGraph is what is offered in a channel.
func TestGraph(t *testing.T) {
	tests := map[string]struct {
		channel, reason string
		unreachable     bool
		available       []string
	}{
		"a channel":         {channel: "stable-4.20", available: []string{"4.20.8", "4.20.7"}},
		"a later channel":   {channel: "fast-4.21", available: []string{"4.20.8", "4.20.7"}},
		"no channel":        {reason: "NoChannel"},
		"an older channel":  {channel: "stable-4.19", reason: "VersionNotFound"},
		"a channel of none": {channel: "stable", reason: "VersionNotFound"},
		"no graph":          {channel: "stable-4.20", unreachable: true, reason: "RemoteFailed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := six(t)
			w.in.Spec.Channel, w.Knobs.Unreachable = tc.channel, tc.unreachable
			w.ticks(1)
			w.g.Expect(w.condition("RetrievedUpdates").Reason).To(Equal(tc.reason))
			w.g.Expect(w.is("RetrievedUpdates", configv1.ConditionTrue)).To(Equal(tc.reason == ""))
			var available []string
			for _, offered := range w.Status().AvailableUpdates {
				available = append(available, offered.Version)
			}
			w.g.Expect(available).To(Equal(tc.available))
			if tc.reason != "" {
				w.g.Expect(w.Status().ConditionalUpdates).To(BeEmpty())
				return
			}
			w.g.Expect(w.Status().ConditionalUpdates).To(HaveLen(1))
			conditional := w.Status().ConditionalUpdates[0]
			w.g.Expect(conditional.Risks).To(HaveLen(3))
			w.g.Expect(conditional.Conditions[0].Status).To(BeEquivalentTo("False"))
			w.g.Expect(conditional.Conditions[0].Message).To(Equal(
				"Hosts boot slowly. https://example.com/1\n\nOld disks fail. https://example.com/2"))
		})
	}
}
