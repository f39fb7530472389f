// SPDX-License-Identifier: Apache-2.0

// Package config turns an OpenshiftAssistedConfig into boot media: it makes or joins an InfraEnv, hands its live ISO to the infrastructure
// machine, and only then publishes the bootstrap data Secret, so that no host can boot anything else (DESIGN D4, D5).
package config
