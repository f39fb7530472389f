// SPDX-License-Identifier: Apache-2.0

// Package index finds objects in the manager's cache by what connects them: the Agents and BareMetalHosts that share a hardware address or
// a serial number, the Agent of a claim, the Machine of a config. A pass, and the mapping of an event, costs as much as it concerns,
// however many objects there are in the namespace.
package index
