// SPDX-License-Identifier: Apache-2.0

// Package report writes one HTML page about one cluster: when each Machine passed which phase, what was or is wrong, the conditions, and
// what the managers wrote where that is known. Collect reads Kubernetes objects, New makes a Report of them and Write renders it: the same
// input makes the same page. It never reads a Secret, and texts that carry credentials are shortened (see redact).
package report
