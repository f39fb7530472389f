// SPDX-License-Identifier: Apache-2.0

//go:build !race

package controlplane

// thorough makes the tests of this package run every seed of a lifecycle, and end the manager at each of its API calls: make
// test-lifecycles builds without the race detector. With it, thorough_race_test.go sets the constant.
const thorough = true
