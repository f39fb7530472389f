// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"sort"
	"strconv"

	"github.com/blang/semver/v4"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineVersion is the Kubernetes version that a Machine runs: its Node's when that is known, else the one that it is meant to run
// (CONTRACT CP-71).
func MachineVersion(m *clusterv1.Machine) string {
	if m.Status.NodeInfo != nil && m.Status.NodeInfo.KubeletVersion != "" {
		return m.Status.NodeInfo.KubeletVersion
	}
	return m.Spec.Version
}

// StatusVersions counts the versions of Machines, older ones first and plain versions before those with build metadata; Cluster API refuses
// any other order and what is no semantic version (CONTRACT CP-10), which is therefore left out.
func StatusVersions(machines []*clusterv1.Machine) []clusterv1.StatusVersion {
	counts := map[string]int32{}
	parsed := map[string]semver.Version{}
	for _, m := range machines {
		version := MachineVersion(m)
		v, err := semver.ParseTolerant(version)
		if err != nil {
			continue
		}
		counts[version]++
		parsed[version] = v
	}
	if len(counts) == 0 {
		return nil
	}
	versions := make([]clusterv1.StatusVersion, 0, len(counts))
	for version, n := range counts {
		versions = append(versions, clusterv1.StatusVersion{Version: version, Replicas: n})
	}
	sort.Slice(versions, func(i, j int) bool {
		a, b := versions[i].Version, versions[j].Version
		return cmp.Or(parsed[a].Compare(parsed[b]), slices.CompareFunc(parsed[a].Build, parsed[b].Build, compareBuild), cmp.Compare(a, b)) < 0
	})
	return versions
}

// compareBuild orders two identifiers of build metadata as Cluster API does: numbers by value, and before everything else. Others have no
// order there; any that is always the same will do.
func compareBuild(a, b string) int {
	numberA, errA := strconv.ParseUint(a, 10, 64)
	numberB, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(numberA, numberB)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	default:
		return cmp.Compare(a, b)
	}
}
