// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineVersion is the Kubernetes version that a Machine runs: its Node's when that is known, else the one that it is meant to run
// (CONTRACT CP-71).
func MachineVersion(m *clusterv1.Machine) string {
	return cmp.Or(KubeletVersion(m), m.Spec.Version)
}

// KubeletVersion is what the Machine's Node reports, with its build metadata; empty while there is no Node.
func KubeletVersion(m *clusterv1.Machine) string {
	if m.Status.NodeInfo == nil {
		return ""
	}
	return m.Status.NodeInfo.KubeletVersion
}

// HasNode reports whether a Machine has, or has had, a Node.
func HasNode(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() || KubeletVersion(m) != ""
}
