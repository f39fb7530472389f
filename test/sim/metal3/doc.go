// SPDX-License-Identifier: Apache-2.0

// Package metal3 simulates cluster-api-provider-metal3 (CAPM3) and baremetal-operator (BMO) as a Kubernetes client sees
// them. Its controllers act through the Kubernetes API alone. The rules that they follow are named in the comments by their
// ids in docs/reference/metal3.md (M3-n), and the tests hold them to recordings of the real managers in testdata.
package metal3
