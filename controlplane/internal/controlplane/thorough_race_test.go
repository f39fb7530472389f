// SPDX-License-Identifier: Apache-2.0

//go:build race

package controlplane

// thorough is false with the race detector, which makes each test six times as long: the tests of lifecycles run a few of their seeds, and
// end the manager at a few of its API calls.
const thorough = false
