// SPDX-License-Identifier: Apache-2.0

package security

// Enforcement is a permission that no request shows: the API server asks for it while it admits another request, when
// OwnerReferencesPermissionEnforcement is on, as it is on OpenShift. TestContractRoles proves each one: without it, the request is refused.
type Enforcement struct {
	Permission
	// Why names the request that needs it.
	Why string
}

// Enforced are those permissions, by the name of the manager.
var Enforced = map[string][]Enforcement{
	"bootstrap": {
		{
			Permission{"update", "openshiftassistedconfigs/finalizers", "bootstrap.cluster.x-k8s.io"},
			"create the bootstrap data Secret, which its config controls",
		},
		{Permission{"delete", "secrets", ""}, "give a bootstrap data Secret without an owner back to its config"},
	},
	"controlplane": {
		{
			Permission{"update", "openshiftassistedcontrolplanes/finalizers", "controlplane.cluster.x-k8s.io"},
			"create a Machine, which its control plane controls",
		},
		{Permission{"delete", "secrets", ""}, "give a kubeconfig Secret without an owner back to its control plane"},
		{
			Permission{"delete", "metal3machinetemplates", "infrastructure.cluster.x-k8s.io"},
			"make the Cluster an owner of a template, so that it moves with it",
		},
	},
}

// Occasional are permissions whose requests a run of the end-to-end tests may never make, by the name of the manager.
var Occasional = map[string][]Enforcement{
	"bootstrap": {
		{events, "count an event that was recorded before"},
		{Permission{"get", "configmaps", ""}, "read the certificates of spec.additionalTrustBundleRef, which no template sets"},
		{
			Permission{"get", "openshiftassistedcontrolplanes", "controlplane.cluster.x-k8s.io"},
			"choose the OS image of a host that comes after the installation, as the sandbox's story upgrade has it (DESIGN D32)",
		},
		{Permission{"get", "agentserviceconfigs", "agent-install.openshift.io"}, "the same"},
		{
			Permission{"create", "nmstateconfigs", "agent-install.openshift.io"},
			"make a host's static network configuration, for configs with spec.staticNetworking",
		},
		{Permission{"patch", "nmstateconfigs", "agent-install.openshift.io"}, "change it, and give it to its InfraEnv"},
		{Permission{"delete", "nmstateconfigs", "agent-install.openshift.io"}, "delete it when its host is gone, and give it to its InfraEnv"},
	},
	"controlplane": {
		{events, "count an event that was recorded before"},
		{
			Permission{"get", "configmaps", ""},
			"read the certificates of additionalTrustBundleRef before a registry is asked, which no template sets",
		},
		{
			Permission{"list", "imagedigestmirrorsets", "config.openshift.io"},
			"find mirrors of release images, where the management cluster is OpenShift",
		},
		{Permission{"list", "imagetagmirrorsets", "config.openshift.io"}, "find mirrors of release images that are named by tags, there"},
		{
			Permission{"patch", "agents", "agent-install.openshift.io"},
			"unbind a host that is not ready when day 1 is closed, as test/faults has it (DESIGN D8)",
		},
		{Permission{"get", "machines", "cluster.x-k8s.io"}, "take a Machine that was created before a crash for its own, as test/chaos has it"},
		{Permission{"get", "openshiftassistedconfigs", "bootstrap.cluster.x-k8s.io"}, "the same for its config"},
		{Permission{"get", "metal3machines", "infrastructure.cluster.x-k8s.io"}, "the same for its infrastructure machine"},
		{
			Permission{"delete", "openshiftassistedconfigs", "bootstrap.cluster.x-k8s.io"},
			"discard what was made for a Machine that was never created, and is not wanted any more (CONTRACT CP-35)",
		},
		{Permission{"delete", "metal3machines", "infrastructure.cluster.x-k8s.io"}, "discard what was made with such a config"},
		{
			Permission{"patch", "clusterdeployments", "hive.openshift.io"},
			"mark a cluster as installed whose AgentClusterInstall somebody deleted (DESIGN D22)",
		},
		{
			Permission{"patch", "machinesets", "cluster.x-k8s.io"},
			"set the version of a MachineSet whose Nodes were upgraded in place, as test/contract/machines has it (DESIGN D33)",
		},
		{
			Permission{"patch", "machinedeployments", "cluster.x-k8s.io"},
			"the same for a MachineDeployment of a topology, as test/contract/topology has it",
		},
	},
}

var events = Permission{"patch", "events", "events.k8s.io"}
