// SPDX-License-Identifier: Apache-2.0

package admission

// badControlPlanes are control planes, and templates of them, that are wrong in one field. Those with a wrong spec.install are badInstalls.
var badControlPlanes = []change{
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
	{"old major version", controlPlane, "spec.distributionVersion", "3.18.9", "spec.distributionVersion", "4.17 or newer"},
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
		"address outside", controlPlaneTemplate, "spec.template.spec.install", `
loadBalancer: {type: ClusterManaged}
apiVIPs: [198.51.100.10]
ingressVIPs: [192.0.2.11]
networking: {machineNetwork: [192.0.2.0/24]}
`, "spec.template.spec.install.apiVIPs[0]", "must be in networking.machineNetwork",
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
