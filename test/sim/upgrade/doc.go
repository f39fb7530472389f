// SPDX-License-Identifier: Apache-2.0

// Package upgrade simulates how an installed OpenShift cluster gets another release: the cluster-version operator, which takes
// ClusterVersion.spec.desiredUpdate, judges it and lets one operator after the other have the release, and the machine-config operator,
// which brings it to the hosts. It is a state machine that knows no API: the caller tells what the API and the hosts say, and shows what
// the operators answer. One Tick is one look of all of them, and the clock is the caller's. The skew between kubelets and the API server is
// against no minor version here.
package upgrade
