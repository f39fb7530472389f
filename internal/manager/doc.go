// SPDX-License-Identifier: Apache-2.0

// Package manager builds both controller managers: flags, TLS, diagnostics, cache rules and the start of watches on kinds whose CRDs
// may not be installed yet. It knows nothing of what the controllers do.
package manager
