// SPDX-License-Identifier: Apache-2.0

// Package webhook defaults and validates control planes and their templates at admission, where CEL rules in the CRD cannot. It looks at
// the object alone: no other object has to exist (CONTRACT CTL-47).
package webhook
