// SPDX-License-Identifier: Apache-2.0

// Package assisted simulates assisted-service and the discovery agents on its hosts.
//
// It acts only through the Kubernetes API: it reads and writes InfraEnv, Agent, AgentClusterInstall, ClusterDeployment and
// Secret as the real service does, and finds the hosts that boot by reading BareMetalHosts. The service's own database is
// a table in memory (backend) whose identifiers are independent of those of the custom resources, so that deleting and
// recreating a custom resource has the same surprising effects as in reality.
//
// The behaviour follows recordings of the real service; the conformance tests of this package replay them. Every
// duration is a knob, so that an installation takes seconds.
package assisted
