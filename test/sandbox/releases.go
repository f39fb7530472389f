// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"time"

	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// Acknowledgement is the key of what a user has to acknowledge before the cluster is upgraded to MinorRelease.
const Acknowledgement = "ack-4.20-kube-1.34-api-removals-in-4.21"

// The releases to which the clusters of a World can be upgraded: one of the same minor version as OpenShiftVersion, the next minor one, a
// newer one of that, and the minor one after it.
var (
	PatchRelease = newRelease("4.20.8", "v1.33.6", "8", map[string]string{
		Acknowledgement: "Kubernetes 1.34 removes APIs: move workloads and tools to those that stay.",
	})
	MinorRelease = newRelease("4.21.2", "v1.34.3", "2", nil)
	LaterRelease = newRelease("4.21.4", "v1.34.5", "4", nil)
	NextRelease  = newRelease("4.22.1", "v1.35.2", "1", nil)
)

// FiveRelease is one of OpenShift 5, with which a cluster of a World can be installed in the place of OpenShiftVersion.
var FiveRelease = newRelease("5.0.1", "v1.36.3", "5", nil)

// Releases returns what Options.Release may be.
func Releases() []string { return []string{OpenShiftVersion, FiveRelease.Version} }

func newRelease(version, kubelet, digit string, gates map[string]string) upgrade.Release {
	return upgrade.Release{
		Version: version, Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat(digit, 64), KubeletVersion: kubelet,
		OSImage: "Red Hat Enterprise Linux CoreOS " + version, Signed: true, Gates: gates,
	}
}

// catalogue is what the clusters of a World know of releases.
func catalogue() upgrade.Catalogue {
	return upgrade.Catalogue{
		Releases: []upgrade.Release{PatchRelease, MinorRelease, LaterRelease, NextRelease, FiveRelease},
		Edges: []upgrade.Edge{
			{From: OpenShiftVersion, To: PatchRelease.Version}, {From: PatchRelease.Version, To: MinorRelease.Version},
			{From: MinorRelease.Version, To: LaterRelease.Version}, {From: OpenShiftVersion, To: MinorRelease.Version},
			{From: MinorRelease.Version, To: NextRelease.Version},
		},
	}
}

// upgradeDelays are how long the operators of a cluster take for a release.
func upgradeDelays(speed float64) upgrade.Options {
	return upgrade.Options{
		Load: scaled(500*time.Millisecond, speed), Operator: scaled(time.Second, speed), Restart: scaled(2*time.Second, speed),
	}
}
