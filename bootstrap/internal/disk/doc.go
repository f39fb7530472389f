// SPDX-License-Identifier: Apache-2.0

// Package disk chooses the disk that a host is installed on: it compares root device hints with the disks that an Agent reports. It is
// pure, and never guesses: a host is installed only when exactly one of its disks meets the hints.
package disk
