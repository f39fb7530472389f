// SPDX-License-Identifier: Apache-2.0

package admission

import "slices"

// change makes a manifest from a good one.
type change struct {
	name  string
	base  string // a key of manifests
	path  string // the field that differs
	value string // its value in YAML; empty is without the field
	// What the refusal must say.
	field   string
	allowed string
}

// addresses are those of a cluster's API and ingress.
const addresses = "apiVIPs: [192.0.2.10], ingressVIPs: [192.0.2.11]"

// twoNodes is the spec of a control plane of two hosts of a release, with fields of its installation.
func twoNodes(release, install string) string {
	return "{replicas: 2, version: v1.33.4, distributionVersion: " + release + ", machineTemplate: {spec: {infrastructureRef: " +
		"{apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: masters}}}, " +
		"install: {baseDomain: example.com, pullSecretRef: {name: a}, " + install + "}}"
}

// badCreates are wrong in one field each.
var badCreates = slices.Concat(badConfigs, badControlPlanes, badInstalls)

// lateUpdates change what cannot change once the installation has begun, which the status says.
var lateUpdates = []change{
	{"API address", controlPlane, "spec.install.apiVIPs", "[192.0.2.20]", "spec.install.apiVIPs", "changeable before the installation only"},
	{
		"ingress address", controlPlane, "spec.install.ingressVIPs", "[192.0.2.20]", "spec.install.ingressVIPs",
		"the installation is in phase Installing",
	},
	{"network", controlPlane, "spec.install.networking", "", "spec.install.networking", "changeable before the installation only"},
	{"SSH key", controlPlane, "spec.install.sshAuthorizedKey", "", "spec.install.sshAuthorizedKey", "changeable before the installation only"},
	{"proxy", controlPlane, "spec.install.proxy", "{noProxy: [a]}", "spec.install.proxy", "changeable before the installation only"},
	{
		"overrides", controlPlane, "spec.install.configOverrides", "{publish: Internal}", "spec.install.configOverrides",
		"changeable before the installation only",
	},
	{
		"hold", controlPlane, "spec.install.holdInstallation", "true", "spec.install.holdInstallation", "changeable before the installation only",
	},
	{
		"wait", controlPlane, "spec.install.workerWaitTimeoutSeconds", "5", "spec.install.workerWaitTimeoutSeconds",
		"changeable before the installation only",
	},
}

// sameUpdates say the same in other words, which they may at any time.
var sameUpdates = []change{
	{name: "platform by default", base: controlPlane, path: "spec.install.platform"},
	{name: "cloud controller manager by default", base: external, path: "spec.install.external.cloudControllerManager", value: "None"},
}

// badUpdates change what cannot change once a control plane exists.
var badUpdates = []change{
	{"base domain", controlPlane, "spec.install.baseDomain", "example.org", "baseDomain", "is immutable"},
	{"cluster name", controlPlane, "spec.install.clusterName", "", "clusterName", "is immutable"},
	{"another cluster name", controlPlane, "spec.install.clusterName", "other", "spec.install.clusterName", "is immutable"},
	{"platform", controlPlane, "spec.install.platform", "None", "spec.install.platform", "is immutable"},
	{"provider", external, "spec.install.external.platformName", "other", "spec.install.external", "is immutable"},
	{
		"cloud controller manager", external, "spec.install.external.cloudControllerManager", "External", "spec.install.external",
		"is immutable",
	},
	{"platform by default", external, "spec.install.platform", "", "spec.install.platform", "is immutable"},
	{"release", controlPlane, "spec.distributionVersion", "4.21.0", "spec.distributionVersion", "is fixed until the cluster is installed"},
	{"image", controlPlane, "spec.release", "", "spec.release", "is fixed until the cluster is installed"},
	{"pull secret", controlPlane, "spec.install.pullSecretRef.name", "another", "pullSecretRef", "is immutable"},
	{"boot mode", config, "spec.boot.mode", "PXE", "spec.boot.mode", `supported values: "LiveISO"`},
	{"another boot mode", config, "spec.boot.mode", "UserData", "spec.boot.mode", "replace the Machine"},
	{"image type", config, "spec.boot.imageType", "Full", "spec.boot.imageType", "discovery media of a config are made once"},
	{"OS image", config, "spec.boot.osImageVersion", `"4.20"`, "spec.boot.osImageVersion", "discovery media of a config are made once"},
	{
		"discovery kernel arguments", config, "spec.discovery.kernelArguments", "[quiet]", "spec.discovery.kernelArguments",
		"discovery media of a config are made once",
	},
	{
		"discovery ignition", config, "spec.discovery.ignition", `'{"ignition":{"version":"3.2.0"}}'`, "spec.discovery.ignition",
		"discovery media of a config are made once",
	},
	{"mirrors", config, "spec.mirrorRegistryRef", "{name: mirrors}", "spec.mirrorRegistryRef", "discovery media of a config are made once"},
	{
		"trust bundle by name", config, "spec.additionalTrustBundleRef", "{name: ca}", "spec.additionalTrustBundleRef",
		"discovery media of a config are made once",
	},
	{
		"wait for interfaces", config, "spec.networkDiscoveryDelaySeconds", "5", "spec.networkDiscoveryDelaySeconds",
		"discovery media of a config are made once",
	},
	{
		"pull secret of discovery", config, "spec.pullSecretRef.name", "another", "spec.pullSecretRef",
		"discovery media of a config are made once",
	},
	{"SSH key of discovery", config, "spec.sshAuthorizedKey", "", "spec.sshAuthorizedKey", "discovery media of a config are made once"},
	{"proxy of discovery", config, "spec.proxy.noProxy", "[.example.org]", "spec.proxy", "discovery media of a config are made once"},
	{
		"time servers", config, "spec.additionalNTPSources", "[ntp.example.org]", "spec.additionalNTPSources",
		"discovery media of a config are made once",
	},
	{"architecture", config, "spec.cpuArchitecture", "aarch64", "spec.cpuArchitecture", "discovery media of a config are made once"},
	{
		"static networks", config, "spec.nmStateConfigSelector.matchLabels", "{rack: b}", "spec.nmStateConfigSelector",
		"discovery media of a config are made once",
	},
	{"identity", config, "spec.hostIdentity", "InfraEnv", "spec.hostIdentity", "discovery media of a config are made once"},
	{
		"labels of a recognised host", boundConfig, "spec.nodeRegistration.labels", "[{key: a, value: b}]", "spec.nodeRegistration.labels",
		"the Machine's host was recognised",
	},
	{
		"name of a recognised host", boundConfig, "spec.nodeRegistration.name", "BareMetalHost", "spec.nodeRegistration.name",
		"the Machine's host was recognised",
	},
	{
		"disk of a bound host", boundConfig, "spec.installation.rootDeviceHints", "{model: other}", "spec.installation.rootDeviceHints",
		"immutable once the host is bound",
	},
	{
		"static networking", boundConfig, "spec", "{staticNetworking: {source: BareMetalHosts}}", "spec.staticNetworking",
		"discovery media of a config are made once",
	},
	{
		"no disk for a bound host any more", boundConfig, "spec.installation", "", "spec.installation.rootDeviceHints",
		"immutable once the host is bound",
	},
	{"replicas", controlPlane, "spec.replicas", "6", "spec.replicas", `supported values: "1", "2", "3", "4", "5"`},
	{"fewer replicas", controlPlane, "spec.replicas", "2", "spec", "replicas cannot change from or to 1 or 2"},
}
