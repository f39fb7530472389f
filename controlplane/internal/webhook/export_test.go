// SPDX-License-Identifier: Apache-2.0

package webhook

// ValidateWindows is validateWindows for the tests: changes that other rules refuse too.
var ValidateWindows = validateWindows
