// SPDX-License-Identifier: Apache-2.0

package admission

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
var badCreates = []change{
	{"boot mode", config, "spec.boot.mode", "PXE", "spec.boot.mode", `supported values: "LiveISO"`},
	{"empty boot", config, "spec.boot", "{}", "spec.boot", "at least 1 properties"},
	{"unknown field", config, "spec.bootMode", "LiveISO", "spec.bootMode", "unknown field"},
	{"pull secret's name", config, "spec.pullSecretRef.name", "Pull_Secret", "spec.pullSecretRef.name", "lower-case letters, digits"},
	{"pull secret without name", config, "spec.pullSecretRef", "{}", "spec.pullSecretRef.name", "Required value"},
	{"SSH key", config, "spec.sshAuthorizedKey", "AAAAC3Nz", "spec.sshAuthorizedKey", "authorized_keys form"},
	{"two SSH keys", config, "spec.sshAuthorizedKey", `"ssh-rsa AAAA a\nssh-rsa AAAA b"`, "spec.sshAuthorizedKey", "one public key"},
	{"private SSH key", config, "spec.sshAuthorizedKey", "-----BEGIN OPENSSH PRIVATE KEY-----", "spec.sshAuthorizedKey", "one public key"},
	{"HTTP proxy's scheme", config, "spec.proxy.httpProxy", "https://proxy.example.com", "spec.proxy.httpProxy", "scheme http"},
	{"HTTPS proxy without scheme", config, "spec.proxy.httpsProxy", "proxy.example.com", "spec.proxy.httpsProxy", "http or https"},
	{"no-proxy entry", config, "spec.proxy.noProxy", `["a b"]`, "spec.proxy.noProxy[0]", "a domain, an IP address, a CIDR"},
	{"no-proxy entry twice", config, "spec.proxy.noProxy", "[a, a]", "spec.proxy.noProxy[1]", "Duplicate value"},
	{"empty proxy", config, "spec.proxy", "{}", "spec.proxy", "at least 1 properties"},
	{"NTP source", config, "spec.additionalNTPSources", `["http://ntp"]`, "spec.additionalNTPSources[0]", "a host name or an IP address"},
	{"no NTP source", config, "spec.additionalNTPSources", "[]", "spec.additionalNTPSources", "at least 1 items"},
	{"trust bundle", config, "spec.additionalTrustBundle", "certificate", "spec.additionalTrustBundle", "PEM blocks of type CERTIFICATE"},
	{
		"broken certificate", config, "spec.additionalTrustBundle", `"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`,
		"spec.additionalTrustBundle", "certificate 1 cannot be parsed",
	},
	{"architecture", config, "spec.cpuArchitecture", "amd64", "spec.cpuArchitecture", `supported values: "x86_64"`},
	{
		"selector's operator", config, "spec.nmStateConfigSelector", "{matchExpressions: [{key: rack, operator: Equals, values: [a]}]}",
		"spec.nmStateConfigSelector", "not a valid label selector operator",
	},
	{
		"source of networks", config, "spec", "{staticNetworking: {source: Secrets}}", "spec.staticNetworking.source",
		`supported values: "BareMetalHosts"`,
	},
	{"no source of networks", config, "spec", "{staticNetworking: {}}", "spec.staticNetworking.source", "Required value"},
	{
		"two sources of networks", config, "spec.staticNetworking", "{source: BareMetalHosts}", "spec.staticNetworking",
		"must not be set together with nmStateConfigSelector",
	},
	{
		"two sources of networks", configTemplate, "spec.template.spec.staticNetworking", "{source: BareMetalHosts}",
		"spec.template.spec.staticNetworking", "must not be set together with nmStateConfigSelector",
	},
	{
		"two sources of networks", controlPlane, "spec.openshiftAssistedConfigSpec.staticNetworking", "{source: BareMetalHosts}",
		"spec.openshiftAssistedConfigSpec.staticNetworking", "must not be set together with nmStateConfigSelector",
	},
	{
		"node name", config, "spec.nodeRegistration.name", "Hostname", "spec.nodeRegistration.name",
		`supported values: "MachineName", "BareMetalHost"`,
	},
	{
		"label key", config, "spec.nodeRegistration.labels", `[{key: "a b", value: ""}]`, "spec.nodeRegistration.labels[0].key",
		"63 letters, digits",
	},
	{
		"label value", config, "spec.nodeRegistration.labels", `[{key: a, value: "b c"}]`, "spec.nodeRegistration.labels[0].value",
		"63 letters, digits",
	},
	{"label without value", config, "spec.nodeRegistration.labels", "[{key: a}]", "spec.nodeRegistration.labels[0].value", "Required value"},
	{
		"label twice", config, "spec.nodeRegistration.labels", "[{key: a, value: b}, {key: a, value: c}]", "spec.nodeRegistration.labels[1]",
		"Duplicate value",
	},
	{
		"the provider's label", config, "spec.nodeRegistration.labels", "[{key: metal3.io/uuid, value: a}]",
		"spec.nodeRegistration.labels[0].key", "set by the provider",
	},
	{
		"MachineConfigPool's name", config, "spec.nodeRegistration.machineConfigPool", "Infra", "spec.nodeRegistration.machineConfigPool",
		"the name of a MachineConfigPool",
	},
	{
		"MachineConfigPool of control planes", config, "spec.nodeRegistration.machineConfigPool", "master",
		"spec.nodeRegistration.machineConfigPool", "the name of a custom pool",
	},
	{
		"MachineConfigPool", controlPlane, "spec.openshiftAssistedConfigSpec.nodeRegistration.machineConfigPool", "infra",
		"spec.openshiftAssistedConfigSpec.nodeRegistration.machineConfigPool", "is for workers",
	},
	{"taints", config, "spec.nodeRegistration.taints", "[{key: a, effect: NoSchedule}]", "spec.nodeRegistration.taints", "unknown field"},
	{"no hint", config, "spec.installation.rootDeviceHints", "{}", "spec.installation.rootDeviceHints", "at least 1 properties"},
	{"empty installation", config, "spec.installation", "{}", "spec.installation", "at least 1 properties"},
	{
		"disk's name without folder", config, "spec.installation.rootDeviceHints", "{deviceName: sda}",
		"spec.installation.rootDeviceHints.deviceName", "must be the path of a device, for example /dev/sda",
	},
	{
		"disk's SCSI address", config, "spec.installation.rootDeviceHints", `{hctl: "0:0:0"}`, "spec.installation.rootDeviceHints.hctl",
		"must be four numbers separated by colons",
	},
	{
		"disk's size", config, "spec.installation.rootDeviceHints", "{minSizeGigabytes: 0}", "spec.installation.rootDeviceHints.minSizeGigabytes",
		"greater than or equal to 1",
	},
	{
		"disk's size with a unit", config, "spec.installation.rootDeviceHints", "{minSizeGigabytes: 100Gi}",
		"spec.installation.rootDeviceHints.minSizeGigabytes", "must be of type integer",
	},
	{
		"disk's WWN", config, "spec.installation.rootDeviceHints", "{wwn: 0x5000 c500}", "spec.installation.rootDeviceHints.wwn",
		"must be a World Wide Name",
	},
	{
		"disk's WWN with extension", config, "spec.installation.rootDeviceHints", "{wwnWithExtension: a/b}",
		"spec.installation.rootDeviceHints.wwnWithExtension", "must be a World Wide Name with its extension",
	},
	{
		"disk's WWN extension", config, "spec.installation.rootDeviceHints", "{wwnVendorExtension: a/b}",
		"spec.installation.rootDeviceHints.wwnVendorExtension", "must be the extension of a World Wide Name",
	},
	{
		"empty model", config, "spec.installation.rootDeviceHints", `{model: ""}`, "spec.installation.rootDeviceHints.model",
		"at least 1 chars long",
	},
	{
		"rotational", config, "spec.installation.rootDeviceHints", `{rotational: "yes"}`, "spec.installation.rootDeviceHints.rotational",
		"must be of type boolean",
	},
	{"unknown hint", config, "spec.installation.rootDeviceHints", "{serial: a}", "spec.installation.rootDeviceHints.serial", "unknown field"},
	{"identity", config, "spec.hostIdentity", "SerialNumber", "spec.hostIdentity", `supported values: "BareMetalHost", "InfraEnv"`},
	{"identity's type", config, "spec.hostIdentity", "1", "spec.hostIdentity", "must be of type string"},

	{"image type", config, "spec.boot.imageType", "minimal-iso", "spec.boot.imageType", `supported values: "Minimal", "Full"`},
	{
		"image type of a disk image", config, "spec.boot", "{mode: UserData, imageType: Full}", "spec.boot.imageType",
		"must not be set with mode UserData",
	},
	{"OS image", config, "spec.boot.osImageVersion", "latest", "spec.boot.osImageVersion", "for example 4.20"},
	{
		"OS version of a disk image", config, "spec.boot", `{mode: UserData, osImageVersion: "4.20"}`, "spec.boot.osImageVersion",
		"must not be set with mode UserData",
	},
	{
		"two kinds of NTP sources", config, "spec.ntpSources", "[192.0.2.1]", "spec.ntpSources",
		"must not be set together with additionalNTPSources",
	},
	{
		"only NTP source",
		configTemplate,
		"spec.template.spec",
		`{ntpSources: ["http://ntp"]}`,
		"spec.template.spec.ntpSources[0]",
		"a host name or an IP address",
	},
	{"two trust bundles", config, "spec", `{additionalTrustBundle: "-----BEGIN CERTIFICATE-----
-----END CERTIFICATE-----", additionalTrustBundleRef: {name: ca}}`,
		"spec.additionalTrustBundleRef", "must not be set together with additionalTrustBundle"},
	{
		"trust bundle's name", config, "spec.additionalTrustBundleRef", "{name: CA}", "spec.additionalTrustBundleRef.name",
		"the name of a ConfigMap",
	},
	{"mirrors without a name", config, "spec.mirrorRegistryRef", "{}", "spec.mirrorRegistryRef.name", "Required value"},
	{
		"mirrors in another namespace", config, "spec.mirrorRegistryRef", "{name: mirrors, namespace: other}", "spec.mirrorRegistryRef.namespace",
		"unknown field",
	},
	{
		"no wait for interfaces", config, "spec.networkDiscoveryDelaySeconds", "0", "spec.networkDiscoveryDelaySeconds",
		"greater than or equal to 1",
	},
	{
		"long wait for interfaces", config, "spec.networkDiscoveryDelaySeconds", "4000", "spec.networkDiscoveryDelaySeconds",
		"less than or equal to 3600",
	},
	{
		"wait for interfaces of a full ISO", configTemplate, "spec.template.spec", "{boot: {imageType: Full}, networkDiscoveryDelaySeconds: 5}",
		"spec.template.spec.networkDiscoveryDelaySeconds", "minimal live ISOs only",
	},
	{
		"wait for interfaces of a disk image", configTemplate, "spec.template.spec", "{boot: {mode: UserData}, networkDiscoveryDelaySeconds: 5}",
		"spec.template.spec.networkDiscoveryDelaySeconds", "minimal live ISOs only",
	},
	{"empty discovery", config, "spec.discovery", "{}", "spec.discovery", "at least 1 properties"},
	{
		"discovery kernel argument", config, "spec.discovery.kernelArguments", `["quiet splash"]`, "spec.discovery.kernelArguments[0]",
		"must be one kernel argument",
	},
	{"no discovery kernel argument", config, "spec.discovery.kernelArguments", "[]", "spec.discovery.kernelArguments", "at least 1 items"},
	{
		"kernel arguments of a disk image", configTemplate, "spec.template.spec",
		"{boot: {mode: UserData}, discovery: {kernelArguments: [quiet]}}", "spec.template.spec.discovery.kernelArguments",
		"must not be set with boot.mode UserData",
	},
	{"discovery ignition that is no JSON", config, "spec.discovery.ignition", `"variant: fcos"`, "spec.discovery.ignition", "is no JSON"},
	{
		"discovery ignition's version", config, "spec.discovery.ignition", `'{"ignition":{"version":"3.4.0"}}'`, "spec.discovery.ignition",
		"3.1.0 or 3.2.0",
	},
	{
		"discovery ignition's key", config, "spec.discovery.ignition", `'{"ignition":{"version":"3.2.0"},"files":[]}'`, "spec.discovery.ignition",
		`unknown field "files"`,
	},
	{"empty installation", config, "spec.installation", "{}", "spec.installation", "at least 1 properties"},
	{
		"kernel argument that is a flag", config, "spec.installation.kernelArguments", `["--append-karg"]`,
		"spec.installation.kernelArguments[0]", "must be one kernel argument",
	},
	{
		"kernel argument with a space", config, "spec.installation.kernelArguments", `["a b"]`, "spec.installation.kernelArguments[0]",
		"without spaces",
	},
	{
		"deleted kernel argument", config, "spec.installation.deletedKernelArguments", `["a&b"]`, "spec.installation.deletedKernelArguments[0]",
		"must be one kernel argument",
	},
	{
		"kernel argument deleted twice", config, "spec.installation.deletedKernelArguments", "[a, a]",
		"spec.installation.deletedKernelArguments[1]", "Duplicate value",
	},
	{
		"ignition's path", config, "spec.installation.ignition", `'{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"etc/motd"}]}}'`,
		"spec.installation.ignition", "path not absolute",
	},
	{"ignition that is empty", config, "spec.installation.ignition", `""`, "spec.installation.ignition", "at least 2 chars"},
	{
		"ignition as an object", config, "spec.installation.ignition", "{ignition: {version: 3.2.0}}", "spec.installation.ignition",
		"unknown field",
	},
	{
		"ignition's version", controlPlane, "spec.openshiftAssistedConfigSpec.installation.ignition", `'{"ignition":{"version":"2.2.0"}}'`,
		"spec.openshiftAssistedConfigSpec.installation.ignition", "3.1.0 or 3.2.0",
	},
	{
		"ignition's version", controlPlaneTemplate, "spec.template.spec.openshiftAssistedConfigSpec.discovery.ignition", `'{"ignition":{}}'`,
		"spec.template.spec.openshiftAssistedConfigSpec.discovery.ignition", "3.1.0 or 3.2.0",
	},

	{
		"selector's operator", controlPlane, "spec.openshiftAssistedConfigSpec.nmStateConfigSelector",
		"{matchExpressions: [{key: rack, operator: Equals, values: [a]}]}", "spec.openshiftAssistedConfigSpec.nmStateConfigSelector",
		"not a valid label selector operator",
	},
	{
		"long name", config, "metadata.name", "a-machine-whose-name-is-longer-than-the-name-of-a-host-may-ever-be", "metadata.name",
		"no more than 63 characters",
	},

	{"no template", configTemplate, "spec.template", "", "spec.template", "Required value"},
	{"no spec", configTemplate, "spec.template.spec", "", "spec.template.spec", "Required value"},
	{"boot mode", configTemplate, "spec.template.spec.boot.mode", "PXE", "spec.template.spec.boot.mode", `supported values: "LiveISO"`},
	{"label of its configs", configTemplate, "spec.template.metadata.labels", `{pool: "a b"}`, "spec.template.metadata.labels", "valid label"},
	{
		"broken certificate", configTemplate, "spec.template.spec.additionalTrustBundle",
		`"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`, "spec.template.spec.additionalTrustBundle",
		"certificate 1 cannot be parsed",
	},

	{
		"long name", controlPlane, "metadata.name", "a-control-plane-whose-name-is-longer-than-a-host-name-can-be-x", "metadata.name",
		"no more than 60 characters",
	},
	{"name with dots", controlPlane, "metadata.name", "demo.example.com", "metadata.name", "hostnames"},
	{"two replicas", controlPlane, "spec.replicas", "2", "spec.install.twoNode", "is required with replicas 2"},
	{"no replicas", controlPlane, "spec.replicas", "0", "spec.replicas", `supported values: "1", "2", "3", "4", "5"`},
	{"six replicas", controlPlane, "spec.replicas", "6", "spec.replicas", `supported values: "1", "2", "3", "4", "5"`},
	{"kind of two nodes", controlPlane, "spec.install.twoNode", "Quorum", "spec.install.twoNode", `supported values: "Arbiter", "Fencing"`},
	{"two nodes of three", controlPlane, "spec.install.twoNode", "Arbiter", "spec.install.twoNode", "must not be set with other replicas"},
	{
		"arbiter on a platform without addresses", controlPlane, "spec", twoNodes("4.20.4", "twoNode: Arbiter, platform: None"),
		"spec.install.platform", "must be BareMetal for two nodes with an arbiter",
	},
	{
		"fencing on another platform", controlPlane, "spec", twoNodes("4.22.0", "twoNode: Fencing, platform: External"), "spec.install.platform",
		"must be BareMetal or None for two nodes with fencing",
	},
	{
		"arbiter of an old release", controlPlane, "spec", twoNodes("4.18.4", "twoNode: Arbiter, "+addresses), "spec.install.twoNode",
		"they need release 4.19 or newer",
	},
	{
		"arbiter as a preview", controlPlane, "spec", twoNodes("4.19.4", "twoNode: Arbiter, "+addresses), "spec.install.twoNode",
		"needs install.featureSet TechPreviewNoUpgrade",
	},
	{
		"fencing of an old release", controlPlane, "spec", twoNodes("4.19.4", "twoNode: Fencing, featureSet: TechPreviewNoUpgrade, "+addresses),
		"spec.install.twoNode", "they need release 4.20 or newer",
	},
	{
		"fencing as a preview", controlPlane, "spec", twoNodes("4.21.0", "twoNode: Fencing, "+addresses), "spec.install.twoNode",
		"or release 4.22 or newer",
	},
	{
		"hyperthreading of no arbiter", controlPlane, "spec.install.hyperthreading", "{arbiter: Disabled}", "spec.install.hyperthreading.arbiter",
		"must not be set but for two nodes with an arbiter",
	},
	{
		"encryption of no arbiter", controlPlane, "spec.install.diskEncryption", "{mode: TPM2, roles: [Arbiter]}",
		"spec.install.diskEncryption.roles", "must not have Arbiter but for two nodes with an arbiter",
	},
	{"replicas missing", controlPlane, "spec.replicas", "", "spec.replicas", "Required value"},
	{
		"annotation of the providers for Machines", controlPlane, "spec.machineTemplate.metadata",
		"{annotations: {controlplane.cluster.x-k8s.io/install-attempt: \"7\"}}",
		"spec.machineTemplate.metadata.annotations[controlplane.cluster.x-k8s.io/install-attempt]", "is set by the providers",
	},
	{
		"number of the installation", controlPlane, "metadata.annotations", "{controlplane.cluster.x-k8s.io/install-attempt: second}",
		"metadata.annotations[controlplane.cluster.x-k8s.io/install-attempt]", "1, 2, 3",
	},
	{"version missing", controlPlane, "spec.version", "", "spec.version", "Required value"},
	{"the release as version", controlPlane, "spec.version", "4.20.4", "spec.version", "must be a Kubernetes version such as v1.33.4"},
	{"version without patch", controlPlane, "spec.version", "v1.33", "spec.version", "must be a Kubernetes version such as v1.33.4"},
	{"release with v", controlPlane, "spec.distributionVersion", "v4.20.4", "spec.distributionVersion", "without a leading v"},
	{"old release", controlPlane, "spec.distributionVersion", "4.16.9", "spec.distributionVersion", "4.17 or newer"},
	{
		"two releases", controlPlane, "spec.release", "{image: quay.io/ocp/release:4.20.4, imageSetRef: {name: ocp}}", "spec.release",
		"must have at most 1",
	},
	{"image without tag", controlPlane, "spec.release.image", "quay.io/ocp/release", "spec.release.image", "a tag or sha256 digest"},
	{
		"image set's name", controlPlane, "spec.release", "{imageSetRef: {name: OCP}}", "spec.release.imageSetRef.name",
		"lower-case letters, digits",
	},
	{"no machine template", controlPlane, "spec.machineTemplate", "", "spec.machineTemplate", "Required value"},
	{
		"no infrastructure", controlPlane, "spec.machineTemplate.spec.infrastructureRef", "", "spec.machineTemplate.spec.infrastructureRef",
		"Required value",
	},
	{
		"infrastructure's version", controlPlane, "spec.machineTemplate.spec.infrastructureRef.apiVersion", "v1beta1",
		"spec.machineTemplate.spec.infrastructureRef.apiVersion", "unknown field",
	},
	{
		"Machine's label", controlPlane, "spec.machineTemplate.metadata.labels", `{pool: "a b"}`, "spec.machineTemplate.metadata.labels",
		"valid label",
	},
	{
		"drain time-out", controlPlane, "spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "-1",
		"spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "greater than or equal to 0",
	},
	{
		"drain time-out's type", controlPlane, "spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "1m",
		"spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "of type int32",
	},
	{
		"gate twice", controlPlane, "spec.machineTemplate.spec.readinessGates", "[{conditionType: Racked}, {conditionType: Racked}]",
		"spec.machineTemplate.spec.readinessGates[1]", "Duplicate value",
	},
	{
		"no gate", controlPlane, "spec.machineTemplate.spec.readinessGates", "[]", "spec.machineTemplate.spec.readinessGates", "at least 1 items",
	},
	{
		"gate's polarity", controlPlane, "spec.machineTemplate.spec.readinessGates", "[{conditionType: Racked, polarity: Up}]",
		"spec.machineTemplate.spec.readinessGates[0].polarity", `supported values: "Positive", "Negative"`,
	},
	{
		"taint twice", controlPlane, "spec.machineTemplate.spec.taints",
		"[{key: a, effect: NoSchedule, propagation: Always}, {key: a, effect: NoSchedule, propagation: Always}]",
		"spec.machineTemplate.spec.taints[1]", "Duplicate value",
	},
	{
		"taint's propagation", controlPlane, "spec.machineTemplate.spec.taints", "[{key: a, effect: NoSchedule}]",
		"spec.machineTemplate.spec.taints[0].propagation", "Required value",
	},
	{
		"a kubelet's taint", controlPlane, "spec.machineTemplate.spec.taints",
		"[{key: node.kubernetes.io/not-ready, effect: NoSchedule, propagation: Always}]", "spec.machineTemplate.spec.taints[0].key",
		"must be a key of your own",
	},
	{
		"broken certificate", controlPlane, "spec.openshiftAssistedConfigSpec.additionalTrustBundle",
		`"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`, "spec.openshiftAssistedConfigSpec.additionalTrustBundle",
		"certificate 1 cannot be parsed",
	},
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

	{"no spec", controlPlaneTemplate, "spec.template.spec", "", "spec.template.spec", "Required value"},
	{"empty install", controlPlaneTemplate, "spec.template.spec.install", "{}", "spec.template.spec.install", "at least 1 properties"},
	{
		"release with v", controlPlaneTemplate, "spec.template.spec.distributionVersion", "v4.20.4", "spec.template.spec.distributionVersion",
		"without a leading v",
	},
	{
		"old release", controlPlaneTemplate, "spec.template.spec.distributionVersion", "4.16.9", "spec.template.spec.distributionVersion",
		"4.17 or newer",
	},
	{"replicas", controlPlaneTemplate, "spec.template.spec.replicas", "3", "spec.template.spec.replicas", "unknown field"},
	{
		"address outside", controlPlaneTemplate, "spec.template.spec.install.apiVIPs", "[198.51.100.10]", "spec.template.spec.install.apiVIPs[0]",
		"must be in networking.machineNetwork",
	},
	{
		"base domain", controlPlaneTemplate, "spec.template.spec.install.baseDomain", "Example.com", "spec.template.spec.install.baseDomain",
		"a DNS domain in lower case",
	},
	{
		"boot mode", controlPlaneTemplate, "spec.template.spec.openshiftAssistedConfigSpec.boot.mode", "PXE",
		"spec.template.spec.openshiftAssistedConfigSpec.boot.mode", `supported values: "LiveISO"`,
	},
}

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

// badUpdates change what cannot change once a control plane exists.
var badUpdates = []change{
	{"base domain", controlPlane, "spec.install.baseDomain", "example.org", "baseDomain", "is immutable"},
	{"cluster name", controlPlane, "spec.install.clusterName", "", "clusterName", "is immutable"},
	{"platform", controlPlane, "spec.install.platform", "", "platform", "is immutable"},
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
