// SPDX-License-Identifier: Apache-2.0

package assisted

// lateScenarios are those in which hosts are bound after they have registered.
func lateScenarios() []scenario { return nil }
