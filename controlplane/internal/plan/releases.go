// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// Step is the way from the release that a cluster runs to another one, as the version operators of the releases see it (ADR 1).
type Step int

const (
	// StepUnknown: one of the two is no version.
	StepUnknown Step = iota
	// StepBack: the other release is older.
	StepBack
	// StepWithin: it is the same, or a newer one of the same minor version.
	StepWithin
	// StepMinor: it is one of the next minor version.
	StepMinor
	// StepMajor: it is one of the first minor version of the next major one, and the version operator takes that step.
	StepMajor
	// StepJump: it is newer than all of these.
	StepJump
)

// firstToFive is the first release whose version operator lets a cluster go to 5.0: those before it take no other major version. None of
// OpenShift 4 takes 5.1, and which release of OpenShift 5 will lead to another major version is not known yet.
var firstToFive = semver.MustParse("4.22.0-0")

// StepBetween is the step from one release to another.
func StepBetween(from, to string) Step {
	running, errRunning := semver.Parse(from)
	wanted, errWanted := semver.Parse(to)
	switch {
	case errRunning != nil || errWanted != nil:
		return StepUnknown
	case wanted.LT(running):
		return StepBack
	case wanted.Major == running.Major && wanted.Minor == running.Minor:
		return StepWithin
	case wanted.Major == running.Major && wanted.Minor == running.Minor+1:
		return StepMinor
	case leadsToFive(running) && wanted.Major == 5 && wanted.Minor == 0:
		return StepMajor
	default:
		return StepJump
	}
}

func leadsToFive(running semver.Version) bool { return running.Major == 4 && running.GE(firstToFive) }

// LeavesMinor reports whether a step leads to another minor version, which a cluster has to be prepared for.
func (s Step) LeavesMinor() bool { return s == StepMinor || s == StepMajor || s == StepJump }

// NextMinors names the minor versions to which a cluster can be upgraded from a release; empty when that is no version.
func NextMinors(from string) string {
	running, err := semver.Parse(from)
	if err != nil {
		return ""
	}
	next := fmt.Sprintf("%d.%d", running.Major, running.Minor+1)
	if leadsToFive(running) {
		next += " or 5.0"
	}
	return next
}

// wantedStep is the step from the release that the cluster runs to the one that the user wants.
func wantedStep(v *view.View) Step {
	return StepBetween(v.Workload.Version.Desired.Version, v.ControlPlane.Spec.DistributionVersion)
}

// kubernetesMinorOffset is how far the minor version of Kubernetes is ahead of that of the OpenShift 4 release that it is part of.
const kubernetesMinorOffset = 13

// kubernetesMinor is the minor version of the Kubernetes in a release, where it follows from the release's own. That of a release of
// another major version than 4 is told by its image, or by the first Node.
func kubernetesMinor(release string) (minor uint64, known bool) {
	version, err := semver.Parse(release)
	if err != nil || version.Major != 4 {
		return 0, false
	}
	return version.Minor + kubernetesMinorOffset, true
}
