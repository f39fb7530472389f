// SPDX-License-Identifier: Apache-2.0

// Package render makes what the control plane provider writes for others: hive's and assisted-service's objects, Machines with what they
// refer to, and kubeconfigs. It is pure: output depends on input alone, is deterministic, and is compared byte by byte with what exists.
package render
