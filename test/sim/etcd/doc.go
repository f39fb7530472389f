// SPDX-License-Identifier: Apache-2.0

// Package etcd plays the etcd of an installed OpenShift cluster: its members, cluster-etcd-operator as it works without Machine
// API, and the four etcdctl commands that the control plane provider runs in a pod (DESIGN D24, D25). It is plain data: it
// knows no Kubernetes client and no clock, it starts nothing, and the same seed with the same calls gives the same answers.
// The caller says which hosts there are and what time it is, and carries what the model says about pods, the Etcd resource and
// the ClusterOperator to where a client looks for it.
//
// Rules are those of etcd 3.6, of cluster-etcd-operator 4.18 and later, and of library-go's controllers for static pods. What
// etcdctl prints is held to recordings of the real program in testdata.
package etcd
