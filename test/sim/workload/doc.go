// SPDX-License-Identifier: Apache-2.0

// Package workload simulates installed OpenShift clusters. Each has a real kube-apiserver of its own behind a small
// proxy on the cluster's API address, the OpenShift resources that our providers read, and Nodes that join as those of
// real hosts do (ASSISTED 2.3 and 4).
package workload
