// SPDX-License-Identifier: Apache-2.0

//go:build race

package controlplane

// thorough: every story is told with all its seeds, and the manager ends at each of its calls. The race detector makes a story six times as
// long, so it sees few of them.
const thorough = false
