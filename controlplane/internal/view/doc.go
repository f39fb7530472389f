// SPDX-License-Identifier: Apache-2.0

// Package view holds what one pass over a control plane knows, by subject: what the pass has read, and what follows from it without a
// choice, such as names, records in annotations, and where in its life the cluster is. It is read-only once it is filled, knows no client
// and reads no clock. Decisions (package plan) and objects for others (package render) are made from it.
package view
