// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"sort"

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
		if c := parsed[a].Compare(parsed[b]); c != 0 {
			return c < 0
		}
		if la, lb := len(parsed[a].Build), len(parsed[b].Build); la != lb {
			return la < lb
		}
		return a < b
	})
	return versions
}
