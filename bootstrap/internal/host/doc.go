// SPDX-License-Identifier: Apache-2.0

// Package host turns the Agent that a booted host becomes into the Machine's Node: it recognises and claims the Agent, gives it role,
// hostname, labels, cluster and approval in one patch when the cluster takes hosts, and deletes it with its Machine (DESIGN D6-D8, D19).
package host
