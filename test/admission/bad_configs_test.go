// SPDX-License-Identifier: Apache-2.0

package admission

// badConfigs are configs, and templates of them, that are wrong in one field each.
var badConfigs = []change{
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
}
