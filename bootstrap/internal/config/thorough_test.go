// SPDX-License-Identifier: Apache-2.0

//go:build !race

package config

// thorough makes the stories of this package try every call: make test-lifecycles builds without the race detector. With it,
// thorough_race_test.go sets the constant.
const thorough = true
