// SPDX-License-Identifier: Apache-2.0

// Package sandbox is a world in which OpenShift clusters are installed on hosts that do not exist: a real management
// cluster, Cluster API core and both of this project's managers as processes, and simulators in the place of Metal3,
// assisted-service, the hosts and the installed clusters.
//
//	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{Progress: os.Stderr})
//	defer world.Stop()
//	err = world.CreateInputs(ctx, "demo", 5)
//	err = world.ApplyCluster(ctx, sandbox.ClusterRequest{Namespace: "demo", Name: "demo", Topology: sandbox.HA, Workers: 2})
//	err = world.Watch.Await(ctx, time.Minute, "the cluster", world.ClusterAvailable(key))
//
// Run takes one cluster from nothing to deleted and verifies every step; command cmd/sandbox is `make sandbox`.
package sandbox
