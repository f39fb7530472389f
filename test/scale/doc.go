// SPDX-License-Identifier: Apache-2.0

// Package scale measures what both managers cost with many clusters and many hosts: CPU, memory, goroutines, connections, requests and
// writes, and how each of them grows. A real etcd and kube-apiserver hold the objects of healthy clusters, copied as often as asked for
// from one that the sandbox installed; both managers run as processes, as their releases run them. Neither Cluster API core nor a simulator
// runs beside them, so that what is measured is theirs, and every kubeconfig leads to one kube-apiserver that plays the API of an installed
// cluster.
//
// The profile install is another world: clusters are installed in it from nothing, by Cluster API core, by both managers and by the
// simulators, and each has an API of its own in this process, as package light plays it.
package scale
