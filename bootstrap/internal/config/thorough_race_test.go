// SPDX-License-Identifier: Apache-2.0

//go:build race

package config

// thorough is false with the race detector, which makes each story six times as long: a few of their calls fail.
const thorough = false
