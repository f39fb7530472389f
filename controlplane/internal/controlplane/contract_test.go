// SPDX-License-Identifier: Apache-2.0

package controlplane

import "testing"

func TestContractMachines(t *testing.T) {
	t.Run("CP-68 KCP-2 the finalizer is there before anything else is made", testFinalizerFirst)
	t.Run("CP-6 KCP-3 nothing is made before infrastructure and a good endpoint are there", testWaits)
	t.Run("KCP-4 all Machines are made in one pass, before any host is there", testMachinesAtOnce)
	t.Run("CP-33 CP-34 an infrastructure machine has its Machine's name, labels, origin and a plain owner", testInfraMachine)
	t.Run("CP-35 KCP-26 a creation that fails anywhere is taken up again and leaves nothing behind", testFailedCreates)
	t.Run("CP-36 KCP-26 a stale cache makes no Machine twice", testStaleCache)
	t.Run("CP-37 the Cluster owns the infrastructure template", testTemplateOwner)
	t.Run("CP-38 Machines are spread over the failure domains for control planes", testFailureDomains)
	t.Run("CP-39 KCP-27 a Machine without a controller is adopted", testAdoption)
	t.Run("CP-39 a control plane that was just deleted adopts nothing", testNoAdoptionWhileDeleting)
	t.Run("CP-39 a Machine of somebody else blocks everything and is named", testMixedOwnership)
	t.Run("CP-43 CP-45 a change that core refuses makes the Machine out of date, with the reason", testRefusedChange)
	t.Run("CP-63 KCP-8 a number of replicas that is not followed is never ignored silently", testScalingIsExplained)
}

func TestContractInitialization(t *testing.T) {
	t.Run("CP-50 CORE-16 what was initialized stays so when the API is lost", testInitializedStays)
	t.Run("CP-51 KCP-5 an API that answers during an installation that fails initializes nothing", testNotInitializedByAPI)
	t.Run("CP-55 a kubeconfig of somebody else is told from ours", testMayWriteKubeconfig)
	t.Run("CP-55 a kubeconfig Secret is made, adopted or left alone", testKubeconfigSecret)
	t.Run("CP-56 the kubeconfig is there while no Machine has a Node", testKubeconfigIsEarly)
	t.Run("CORE-17 the cache keeps the data of kubeconfigs alone", testKeepKubeconfigs)
	t.Run("CORE-17 the cache keeps no more of a kubeconfig than is read", testBoundKubeconfigs)
}

func TestContractLifecycle(t *testing.T) {
	t.Run("CP-60 a paused control plane does nothing, also while it is deleted", testPaused)
	t.Run("CP-62 KCP-25 the deletion goes step by step, whenever it begins", testDeletion)
	t.Run("CP-66 a control plane of another manager is left alone", testWatchFilter)
}

func TestContractConditions(t *testing.T) {
	t.Run("CP-80 Available follows the quorums of Nodes, etcd and the API", testAvailable)
	t.Run("CP-80 CORE-16 what an earlier manager knew stands until the cluster was asked", testAvailableOfAnEarlierManager)
	t.Run("CP-80 CORE-16 what operators said stands while they cannot be asked", testAvailableWithoutOperators)
	t.Run("CP-81 rolling out and scaling are told while they happen", testProgressConditions)
	t.Run("CP-81 ScalingDown and Deleting say why a host is not freed", testUnfreedHosts)
	t.Run("CP-82 KCP-29 the health of etcd and the components is what their operators say", testOperatorConditions)
	t.Run("CP-82 unhealthy Machines are named", testRemediating)
	t.Run("CP-83 CORE-6 replicas are counted by the conditions of their Machines", testCounters)
	t.Run("KCP-2 the status is written also when a pass fails", testStatusOfAFailedPass)
}
