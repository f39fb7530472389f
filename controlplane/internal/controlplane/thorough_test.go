// SPDX-License-Identifier: Apache-2.0

//go:build !race

package controlplane

// thorough: every story is told with all its seeds, and the manager ends at each of its calls, as make test-lifecycles does. With the race
// detector see thorough_race_test.go.
const thorough = true
