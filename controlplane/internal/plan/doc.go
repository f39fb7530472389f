// SPDX-License-Identifier: Apache-2.0

// Package plan holds the pure decisions of the control plane provider: what objects look like, which hosts are installed first, what is
// deleted next. It reads no clock, knows no client, and its output depends on its input alone.
package plan
