// SPDX-License-Identifier: Apache-2.0

// Package controlplane reconciles OpenshiftAssistedControlPlanes: Machines, the objects of hive and assisted-service, the kubeconfig, the
// deletion and the status. A pass reads everything into a view (observe.go), decides without side effects (decide.go, package plan), writes
// (apply.go, which returns outcomes), and computes conditions and counters once, at the end (status.go).
package controlplane
