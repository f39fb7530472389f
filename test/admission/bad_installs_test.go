// SPDX-License-Identifier: Apache-2.0

package admission

// badInstalls are control planes whose spec.install is wrong in one field each.
var badInstalls = []change{
	{"no base domain", controlPlane, "spec.install.baseDomain", "", "spec.install.baseDomain", "Required value"},
	{"base domain", controlPlane, "spec.install.baseDomain", ".Example.com", "spec.install.baseDomain", "a DNS domain in lower case"},
	{"cluster name", controlPlane, "spec.install.clusterName", "demo.example", "spec.install.clusterName", "must be a DNS label"},
	{"API address", controlPlane, "spec.install.apiVIPs", "[api.example.com]", "spec.install.apiVIPs[0]", "must be an IP address"},
	{
		"three API addresses", controlPlane, "spec.install.apiVIPs", "[192.0.2.10, 192.0.2.12, 192.0.2.13]", "spec.install.apiVIPs",
		"at most 2 items",
	},
	{"two IPv4 API addresses", controlPlane, "spec.install.apiVIPs", "[192.0.2.10, 192.0.2.12]", "apiVIPs", "one address per IP family"},
	{"no API address", controlPlane, "spec.install.apiVIPs", "", "apiVIPs", "must be set together"},
	{"no ingress address", controlPlane, "spec.install.ingressVIPs", "", "ingressVIPs", "must be set together"},
	{"one address twice", controlPlane, "spec.install.ingressVIPs", "[192.0.2.10]", "spec.install.ingressVIPs[0]", "must be another address"},
	{
		"address outside", controlPlane, "spec.install.apiVIPs", "[198.51.100.10]", "spec.install.apiVIPs[0]",
		"must be in networking.machineNetwork: 192.0.2.0/24",
	},
	{"another IP family", controlPlane, "spec.install.ingressVIPs", `["2001:db8::11"]`, "spec.install.ingressVIPs[0]", "same IP family"},
	{"platform", controlPlane, "spec.install.platform", "AWS", "spec.install.platform", "must be BareMetal, None or External"},
	{
		"platform of virtual machines", controlPlane, "spec.install.platform", "VSphere", "spec.install.platform",
		"virtual machines instead of the BareMetalHosts",
	},
	{
		"platform of other virtual machines", controlPlane, "spec.install.platform", "Nutanix", "spec.install.platform",
		"virtual machines instead of the BareMetalHosts",
	},
	{"addresses without platform", controlPlane, "spec.install.platform", "None", "apiVIPs", "must not be set on platform None"},
	{"addresses on a single node", controlPlane, "spec.replicas", "1", "replicas: 1", "needs install.platform None"},
	{
		"machine network", controlPlane, "spec.install.networking.machineNetwork", "[192.0.2.0]", "spec.install.networking.machineNetwork[0]",
		"must be a CIDR",
	},
	{
		"network type", controlPlane, "spec.install.networking.networkType", "OpenShiftSDN", "spec.install.networking.networkType",
		"OpenShiftSDN is in no release from 4.17 on",
	},
	{
		"unknown network type", controlPlane, "spec.install.networking.networkType", "Flannel", "spec.install.networking.networkType",
		"must be OVNKubernetes, Cilium, Calico, CiscoACI or None",
	},
	{
		"host's address as machine network", controlPlane, "spec.install.networking.machineNetwork", "[192.0.2.1/24]",
		"spec.install.networking.machineNetwork[0]", "must be the address of a network: 192.0.2.0/24",
	},
	{
		"two machine networks of a family", controlPlane, "spec.install.networking.machineNetwork", "[192.0.2.0/24, 198.51.100.0/24]",
		"spec.install.networking.machineNetwork[1]", "must be of another IP family",
	},
	{
		"machine network of another family", controlPlane, "spec.install.networking.machineNetwork", `["2001:db8::/64"]`,
		"spec.install.apiVIPs[0]", "must be of the IP families of the networks in their order: IPv6",
	},
	{
		"Pod network", controlPlane, "spec.install.networking.clusterNetwork", "[{cidr: 10.128.0.0}]",
		"spec.install.networking.clusterNetwork[0].cidr", "must be a CIDR",
	},
	{
		"Pod network without CIDR", controlPlane, "spec.install.networking.clusterNetwork", "[{hostPrefix: 23}]",
		"spec.install.networking.clusterNetwork[0].cidr", "Required value",
	},
	{
		"three Pod networks", controlPlane, "spec.install.networking.clusterNetwork",
		"[{cidr: 10.0.0.0/14}, {cidr: 10.4.0.0/14}, {cidr: 10.8.0.0/14}]", "spec.install.networking.clusterNetwork", "at most 2 items",
	},
	{
		"Pod network's prefix", controlPlane, "spec.install.networking.clusterNetwork", "[{cidr: 10.128.0.0/14, hostPrefix: 26}]",
		"spec.install.networking.clusterNetwork[0].hostPrefix", "must be at most 25",
	},
	{
		"Pod network's short prefix", controlPlane, "spec.install.networking.clusterNetwork", "[{cidr: 10.128.0.0/14, hostPrefix: 12}]",
		"spec.install.networking.clusterNetwork[0].hostPrefix", "must be at least 14",
	},
	{
		"Pod network for two Nodes", controlPlane, "spec.install.networking.clusterNetwork", "[{cidr: 10.128.0.0/22}]",
		"spec.install.networking.clusterNetwork[0].hostPrefix", "must be for at least 4 Nodes",
	},
	{
		"Pod network's prefix of nothing", controlPlane, "spec.install.networking.clusterNetwork", "[{cidr: 10.128.0.0/14, hostPrefix: 65}]",
		"spec.install.networking.clusterNetwork[0].hostPrefix", "less than or equal to 64",
	},
	{
		"Pod network in the machine network", controlPlane, "spec.install.networking.clusterNetwork", "[{cidr: 192.0.0.0/16}]",
		"spec.install.networking.clusterNetwork[0].cidr", "must not overlap with spec.install.networking.machineNetwork[0]",
	},
	{
		"Pod network of another family", controlPlane, "spec.install.networking.clusterNetwork", `[{cidr: "fd01::/48"}]`,
		"spec.install.networking.clusterNetwork[0].cidr", "must have the IP families of machineNetwork in their order: IPv4",
	},
	{
		"Service network", controlPlane, "spec.install.networking.serviceNetwork", "[services]", "spec.install.networking.serviceNetwork[0]",
		"must be a CIDR",
	},
	{
		"small Service network", controlPlane, "spec.install.networking.serviceNetwork", "[172.30.0.0/26]",
		"spec.install.networking.serviceNetwork[0]", "must have room for 128 addresses",
	},
	{
		"Service networks of two families", controlPlane, "spec.install.networking.serviceNetwork", `[172.30.0.0/16, "fd02::/112"]`,
		"spec.install.networking.serviceNetwork[1]", "must have the IP families of machineNetwork",
	},
	{
		"external without its platform", controlPlane, "spec.install.external", "{platformName: acme}", "spec.install.external",
		"must not be set but on platform External",
	},
	{
		"cloud controller manager", controlPlane, "spec.install.external", "{cloudControllerManager: Internal}",
		"spec.install.external.cloudControllerManager", `supported values: "External", "None"`,
	},
	{"load balancer without type", controlPlane, "spec.install.loadBalancer", "{}", "spec.install.loadBalancer.type", "Required value"},
	{
		"load balancer's type", controlPlane, "spec.install.loadBalancer.type", "HAProxy", "spec.install.loadBalancer.type",
		`supported values: "ClusterManaged", "UserManaged"`,
	},
	{
		"load balancer on another platform", controlPlane, "spec.install",
		"{baseDomain: example.com, pullSecretRef: {name: a}, platform: None, loadBalancer: {type: UserManaged}}", "spec.install.loadBalancer",
		"must not be set but on platform BareMetal",
	},
	{
		"load balancer of a single node", controlPlane, "spec",
		"{replicas: 1, version: v1.33.4, distributionVersion: 4.20.4, machineTemplate: {spec: {infrastructureRef: {apiGroup: " +
			"infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: masters}}}, install: {baseDomain: example.com, pullSecretRef: " +
			"{name: a}, loadBalancer: {type: UserManaged}}}",
		"install.loadBalancer", "must not be set for a single-node control plane",
	},
	{
		"schedulable control plane", controlPlane, "spec.install.schedulableControlPlane", "sometimes", "spec.install.schedulableControlPlane",
		"of type bool",
	},
	{
		"cluster's proxy",
		controlPlane,
		"spec.install.proxy.httpProxy",
		"https://proxy.example.com",
		"spec.install.proxy.httpProxy",
		"scheme http",
	},
	{"empty cluster's proxy", controlPlane, "spec.install.proxy", "{}", "spec.install.proxy", "at least 1 properties"},
	{"time server", controlPlane, "spec.install.ntpSources", `["http://ntp"]`, "spec.install.ntpSources[0]", "a host name or an IP address"},
	{
		"time servers of two kinds", controlPlane, "spec.install.ntpSources", "[ntp.example.com]", "spec.install.ntpSources",
		"must not be set together with openshiftAssistedConfigSpec.additionalNTPSources",
	},
	{
		"disk encryption without mode", controlPlane, "spec.install.diskEncryption", "{roles: [Worker]}", "spec.install.diskEncryption.mode",
		"Required value",
	},
	{
		"disk encryption's mode", controlPlane, "spec.install.diskEncryption", "{mode: Password}", "spec.install.diskEncryption.mode",
		`supported values: "TPM2", "Tang"`,
	},
	{
		"disk encryption's role", controlPlane, "spec.install.diskEncryption", "{mode: TPM2, roles: [Master]}",
		"spec.install.diskEncryption.roles[0]", `supported values: "ControlPlane", "Arbiter", "Worker"`,
	},
	{
		"disk encryption's role twice", controlPlane, "spec.install.diskEncryption", "{mode: TPM2, roles: [Worker, Worker]}",
		"spec.install.diskEncryption.roles[1]", "Duplicate value",
	},
	{
		"Tang without servers", controlPlane, "spec.install.diskEncryption", "{mode: Tang}", "spec.install.diskEncryption.tangServers",
		"is required for mode Tang",
	},
	{
		"TPM with servers",
		controlPlane,
		"spec.install.diskEncryption",
		"{mode: TPM2, tangServers: [{url: \"http://tang\", thumbprint: a}]}",
		"spec.install.diskEncryption.tangServers",
		"must not be set for mode TPM2",
	},
	{
		"Tang server's URL", controlPlane, "spec.install.diskEncryption", "{mode: Tang, tangServers: [{url: tang.example.com, thumbprint: a}]}",
		"spec.install.diskEncryption.tangServers[0].url", "scheme http or https",
	},
	{
		"Tang server's thumbprint",
		controlPlane,
		"spec.install.diskEncryption",
		"{mode: Tang, tangServers: [{url: \"http://tang\", thumbprint: \"a b\"}]}",
		"spec.install.diskEncryption.tangServers[0].thumbprint",
		"as tang-show-keys prints it",
	},
	{
		"Tang server without thumbprint",
		controlPlane,
		"spec.install.diskEncryption",
		"{mode: Tang, tangServers: [{url: \"http://tang\"}]}",
		"spec.install.diskEncryption.tangServers[0].thumbprint",
		"Required value",
	},
	{
		"manifests' name", controlPlane, "spec.install.manifestsConfigMapRefs", "[{name: Manifests}]",
		"spec.install.manifestsConfigMapRefs[0].name", "must be the name of a ConfigMap",
	},
	{
		"manifests twice", controlPlane, "spec.install.manifestsConfigMapRefs", "[{name: a}, {name: a}]",
		"spec.install.manifestsConfigMapRefs[1]", "Duplicate value",
	},
	{
		"manifests of another namespace", controlPlane, "spec.install.manifestsConfigMapRefs", "[{name: a, namespace: b}]",
		"spec.install.manifestsConfigMapRefs[0].namespace", "unknown field",
	},
	{
		"mirrors' name", controlPlane, "spec.install.mirrorRegistryRef.name", "mirrors/a", "spec.install.mirrorRegistryRef.name",
		"must be the name of a ConfigMap",
	},
	{
		"mirrors of another namespace", controlPlane, "spec.install.mirrorRegistryRef", "{name: a, namespace: b}",
		"spec.install.mirrorRegistryRef.namespace", "unknown field",
	},
	{
		"hyperthreading", controlPlane, "spec.install.hyperthreading.worker", "Sometimes", "spec.install.hyperthreading.worker",
		`supported values: "Enabled", "Disabled"`,
	},
	{"empty hyperthreading", controlPlane, "spec.install.hyperthreading", "{}", "spec.install.hyperthreading", "at least 1 properties"},
	{"hold", controlPlane, "spec.install.holdInstallation", "later", "spec.install.holdInstallation", "of type bool"},
	{
		"baseline", controlPlane, "spec.install.capabilities.baseline", "v4.20", "spec.install.capabilities.baseline",
		"must be None, v4.11 to v4.18, or vCurrent",
	},
	{
		"baseline without a dependency", controlPlane, "spec.install.capabilities.baseline", "v4.11", "spec.install.capabilities.additional",
		"needs OperatorLifecycleManager",
	},
	{
		"capability", controlPlane, "spec.install.capabilities.additional", "[Node Tuning]", "spec.install.capabilities.additional[0]",
		"must be the name of a capability",
	},
	{
		"MachineAPI", controlPlane, "spec.install.capabilities.additional", "[NodeTuning, MachineAPI]", "spec.install.capabilities.additional[1]",
		"cannot be installed on platform BareMetal",
	},
	{
		"feature set", controlPlane, "spec.install.featureSet", "LatencySensitive", "spec.install.featureSet",
		`supported values: "TechPreviewNoUpgrade", "CustomNoUpgrade", "DevPreviewNoUpgrade"`,
	},
	{"FIPS", controlPlane, "spec.install.fips", "140-3", "spec.install.fips", "of type bool"},
	{
		"CPU partitioning", controlPlane, "spec.install.cpuPartitioning", "Workers", "spec.install.cpuPartitioning",
		`supported values: "None", "AllNodes"`,
	},
	{"overrides as text", controlPlane, "spec.install.configOverrides", `"{}"`, "spec.install.configOverrides", "of type object"},
	{
		"overridden networks", controlPlane, "spec.install.configOverrides", "{networking: {networkType: Calico}}",
		"spec.install.configOverrides.networking", "use install.networking",
	},
	{
		"overridden platform", controlPlane, "spec.install.configOverrides", "{platform: {none: {}}}", "spec.install.configOverrides.platform",
		"use install.platform",
	},
	{
		"overridden pull secret", controlPlane, "spec.install.configOverrides", "{pullSecret: a}", "spec.install.configOverrides.pullSecret",
		"use install.pullSecretRef",
	},
	{
		"overridden capabilities", controlPlane, "spec.install.configOverrides", "{capabilities: {baselineCapabilitySet: vCurrent}}",
		"spec.install.configOverrides.capabilities", "use install.capabilities",
	},
	{
		"overridden replicas", controlPlane, "spec.install.configOverrides", "{controlPlane: {replicas: 5}}",
		"spec.install.configOverrides.controlPlane.replicas", "use spec.replicas",
	},
	{"no overrides", controlPlane, "spec.install.configOverrides", "{}", "spec.install.configOverrides", "at least 1 properties"},
	{
		"ignored check", controlPlane, "spec.install.ignoredValidations.host", "[HasMinMemory]", "spec.install.ignoredValidations.host[0]",
		"must be the ID of a check",
	},
	{
		"ignored check of hosts that has to pass", controlPlane, "spec.install.ignoredValidations.host", "[connected]",
		"spec.install.ignoredValidations.host[0]", "cannot be ignored",
	},
	{
		"ignored check of the cluster that has to pass", controlPlane, "spec.install.ignoredValidations.cluster", "[api-vips-defined]",
		"spec.install.ignoredValidations.cluster[0]", "cannot be ignored",
	},
	{
		"five hosts of an old release", controlPlane, "spec",
		"{replicas: 5, version: v1.30.4, distributionVersion: 4.17.4, machineTemplate: {spec: {infrastructureRef: {apiGroup: " +
			"infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: masters}}}, install: {baseDomain: example.com, pullSecretRef: " +
			"{name: a}, apiVIPs: [192.0.2.10], ingressVIPs: [192.0.2.11]}}",
		"spec.replicas", "4 and 5 need release 4.18 or newer",
	},
	{"SSH key", controlPlane, "spec.install.sshAuthorizedKey", "AAAAC3Nz", "spec.install.sshAuthorizedKey", "authorized_keys form"},
	{"no pull secret", controlPlane, "spec.install.pullSecretRef", "", "spec.install.pullSecretRef", "Required value"},
	{"no install", controlPlane, "spec.install", "", "spec.install", "Required value"},
	{
		"negative wait", controlPlane, "spec.install.workerWaitTimeoutSeconds", "-1", "spec.install.workerWaitTimeoutSeconds",
		"greater than or equal to 0",
	},
	{
		"wait of days", controlPlane, "spec.install.workerWaitTimeoutSeconds", "90000", "spec.install.workerWaitTimeoutSeconds",
		"less than or equal to 86400",
	},
}
