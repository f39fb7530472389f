// SPDX-License-Identifier: Apache-2.0

// Package plan holds the pure decisions of the control plane provider: which hosts are installed first, which Machine comes or goes next,
// what is deleted next, whether versions fit. It reads no clock, knows no client, and its output depends on its input alone.
package plan
