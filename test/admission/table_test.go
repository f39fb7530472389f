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
	{"broken certificate", config, "spec.additionalTrustBundle", `"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`, "spec.additionalTrustBundle", "certificate 1 cannot be parsed"},
	{"architecture", config, "spec.cpuArchitecture", "amd64", "spec.cpuArchitecture", `supported values: "x86_64"`},
	{"selector's operator", config, "spec.nmStateConfigSelector", "{matchExpressions: [{key: rack, operator: Equals, values: [a]}]}", "spec.nmStateConfigSelector", "not a valid label selector operator"},
	{"node name", config, "spec.nodeRegistration.name", "Hostname", "spec.nodeRegistration.name", `supported values: "MachineName", "BareMetalHost"`},
	{"label key", config, "spec.nodeRegistration.labels", `[{key: "a b", value: ""}]`, "spec.nodeRegistration.labels[0].key", "63 letters, digits"},
	{"label value", config, "spec.nodeRegistration.labels", `[{key: a, value: "b c"}]`, "spec.nodeRegistration.labels[0].value", "63 letters, digits"},
	{"label without value", config, "spec.nodeRegistration.labels", "[{key: a}]", "spec.nodeRegistration.labels[0].value", "Required value"},
	{"label twice", config, "spec.nodeRegistration.labels", "[{key: a, value: b}, {key: a, value: c}]", "spec.nodeRegistration.labels[1]", "Duplicate value"},
	{"the provider's label", config, "spec.nodeRegistration.labels", "[{key: metal3.io/uuid, value: a}]", "spec.nodeRegistration.labels[0].key", "set by the provider"},
	{"identity", config, "spec.hostIdentity", "SerialNumber", "spec.hostIdentity", `supported values: "BareMetalHost", "InfraEnv"`},
	{"identity's type", config, "spec.hostIdentity", "1", "spec.hostIdentity", "must be of type string"},

	{"selector's operator", controlPlane, "spec.openshiftAssistedConfigSpec.nmStateConfigSelector", "{matchExpressions: [{key: rack, operator: Equals, values: [a]}]}", "spec.openshiftAssistedConfigSpec.nmStateConfigSelector", "not a valid label selector operator"},
	{"long name", config, "metadata.name", "a-machine-whose-name-is-longer-than-the-name-of-a-host-may-ever-be", "metadata.name", "no more than 63 characters"},

	{"no template", configTemplate, "spec.template", "", "spec.template", "Required value"},
	{"no spec", configTemplate, "spec.template.spec", "", "spec.template.spec", "Required value"},
	{"boot mode", configTemplate, "spec.template.spec.boot.mode", "PXE", "spec.template.spec.boot.mode", `supported values: "LiveISO"`},
	{"label of its configs", configTemplate, "spec.template.metadata.labels", `{pool: "a b"}`, "spec.template.metadata.labels", "valid label"},
	{"broken certificate", configTemplate, "spec.template.spec.additionalTrustBundle", `"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`, "spec.template.spec.additionalTrustBundle", "certificate 1 cannot be parsed"},

	{"long name", controlPlane, "metadata.name", "a-control-plane-whose-name-is-longer-than-a-host-name-can-be-x", "metadata.name", "no more than 60 characters"},
	{"name with dots", controlPlane, "metadata.name", "demo.example.com", "metadata.name", "hostnames"},
	{"two replicas", controlPlane, "spec.replicas", "2", "spec.replicas", `supported values: "1", "3", "4", "5"`},
	{"no replicas", controlPlane, "spec.replicas", "0", "spec.replicas", `supported values: "1", "3", "4", "5"`},
	{"replicas missing", controlPlane, "spec.replicas", "", "spec.replicas", "Required value"},
	{"annotation of the providers for Machines", controlPlane, "spec.machineTemplate.metadata", "{annotations: {controlplane.cluster.x-k8s.io/install-attempt: \"7\"}}", "spec.machineTemplate.metadata.annotations[controlplane.cluster.x-k8s.io/install-attempt]", "is set by the providers"},
	{"number of the installation", controlPlane, "metadata.annotations", "{controlplane.cluster.x-k8s.io/install-attempt: second}", "metadata.annotations[controlplane.cluster.x-k8s.io/install-attempt]", "1, 2, 3"},
	{"version missing", controlPlane, "spec.version", "", "spec.version", "Required value"},
	{"the release as version", controlPlane, "spec.version", "4.20.4", "spec.version", "must be a Kubernetes version such as v1.33.4"},
	{"version without patch", controlPlane, "spec.version", "v1.33", "spec.version", "must be a Kubernetes version such as v1.33.4"},
	{"release with v", controlPlane, "spec.distributionVersion", "v4.20.4", "spec.distributionVersion", "without a leading v"},
	{"old release", controlPlane, "spec.distributionVersion", "4.16.9", "spec.distributionVersion", "4.17 or newer"},
	{"two releases", controlPlane, "spec.release", "{image: quay.io/ocp/release:4.20.4, imageSetRef: {name: ocp}}", "spec.release", "must have at most 1"},
	{"image without tag", controlPlane, "spec.release.image", "quay.io/ocp/release", "spec.release.image", "a tag or sha256 digest"},
	{"image set's name", controlPlane, "spec.release", "{imageSetRef: {name: OCP}}", "spec.release.imageSetRef.name", "lower-case letters, digits"},
	{"no machine template", controlPlane, "spec.machineTemplate", "", "spec.machineTemplate", "Required value"},
	{"no infrastructure", controlPlane, "spec.machineTemplate.spec.infrastructureRef", "", "spec.machineTemplate.spec.infrastructureRef", "Required value"},
	{"infrastructure's version", controlPlane, "spec.machineTemplate.spec.infrastructureRef.apiVersion", "v1beta1", "spec.machineTemplate.spec.infrastructureRef.apiVersion", "unknown field"},
	{"Machine's label", controlPlane, "spec.machineTemplate.metadata.labels", `{pool: "a b"}`, "spec.machineTemplate.metadata.labels", "valid label"},
	{"drain time-out", controlPlane, "spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "-1", "spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "greater than or equal to 0"},
	{"drain time-out's type", controlPlane, "spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "1m", "spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds", "of type int32"},
	{"gate twice", controlPlane, "spec.machineTemplate.spec.readinessGates", "[{conditionType: Racked}, {conditionType: Racked}]", "spec.machineTemplate.spec.readinessGates[1]", "Duplicate value"},
	{"no gate", controlPlane, "spec.machineTemplate.spec.readinessGates", "[]", "spec.machineTemplate.spec.readinessGates", "at least 1 items"},
	{"gate's polarity", controlPlane, "spec.machineTemplate.spec.readinessGates", "[{conditionType: Racked, polarity: Up}]", "spec.machineTemplate.spec.readinessGates[0].polarity", `supported values: "Positive", "Negative"`},
	{"taint twice", controlPlane, "spec.machineTemplate.spec.taints", "[{key: a, effect: NoSchedule, propagation: Always}, {key: a, effect: NoSchedule, propagation: Always}]", "spec.machineTemplate.spec.taints[1]", "Duplicate value"},
	{"taint's propagation", controlPlane, "spec.machineTemplate.spec.taints", "[{key: a, effect: NoSchedule}]", "spec.machineTemplate.spec.taints[0].propagation", "Required value"},
	{"a kubelet's taint", controlPlane, "spec.machineTemplate.spec.taints", "[{key: node.kubernetes.io/not-ready, effect: NoSchedule, propagation: Always}]", "spec.machineTemplate.spec.taints[0].key", "must be a key of your own"},
	{"broken certificate", controlPlane, "spec.openshiftAssistedConfigSpec.additionalTrustBundle", `"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"`, "spec.openshiftAssistedConfigSpec.additionalTrustBundle", "certificate 1 cannot be parsed"},
	{"no base domain", controlPlane, "spec.install.baseDomain", "", "spec.install.baseDomain", "Required value"},
	{"base domain", controlPlane, "spec.install.baseDomain", ".Example.com", "spec.install.baseDomain", "a DNS domain in lower case"},
	{"cluster name", controlPlane, "spec.install.clusterName", "demo.example", "spec.install.clusterName", "must be a DNS label"},
	{"API address", controlPlane, "spec.install.apiVIPs", "[api.example.com]", "spec.install.apiVIPs[0]", "must be an IP address"},
	{"three API addresses", controlPlane, "spec.install.apiVIPs", "[192.0.2.10, 192.0.2.12, 192.0.2.13]", "spec.install.apiVIPs", "at most 2 items"},
	{"two IPv4 API addresses", controlPlane, "spec.install.apiVIPs", "[192.0.2.10, 192.0.2.12]", "apiVIPs", "one address per IP family"},
	{"no API address", controlPlane, "spec.install.apiVIPs", "", "apiVIPs", "must be set together"},
	{"no ingress address", controlPlane, "spec.install.ingressVIPs", "", "ingressVIPs", "must be set together"},
	{"one address twice", controlPlane, "spec.install.ingressVIPs", "[192.0.2.10]", "spec.install.ingressVIPs[0]", "must be another address"},
	{"address outside", controlPlane, "spec.install.apiVIPs", "[198.51.100.10]", "spec.install.apiVIPs[0]", "must be in networking.machineNetwork: 192.0.2.0/24"},
	{"another IP family", controlPlane, "spec.install.ingressVIPs", `["2001:db8::11"]`, "spec.install.ingressVIPs[0]", "same IP family"},
	{"platform", controlPlane, "spec.install.platform", "AWS", "spec.install.platform", `supported values: "BareMetal", "None"`},
	{"addresses without platform", controlPlane, "spec.install.platform", "None", "apiVIPs", "must not be set on platform None"},
	{"addresses on a single node", controlPlane, "spec.replicas", "1", "replicas: 1", "needs install.platform None"},
	{"machine network", controlPlane, "spec.install.networking.machineNetwork", "[192.0.2.0]", "spec.install.networking.machineNetwork[0]", "must be a CIDR"},
	{"network type", controlPlane, "spec.install.networking.networkType", "OpenShiftSDN", "spec.install.networking.networkType", `supported values: "OVNKubernetes"`},
	{"SSH key", controlPlane, "spec.install.sshAuthorizedKey", "AAAAC3Nz", "spec.install.sshAuthorizedKey", "authorized_keys form"},
	{"no pull secret", controlPlane, "spec.install.pullSecretRef", "", "spec.install.pullSecretRef", "Required value"},
	{"no install", controlPlane, "spec.install", "", "spec.install", "Required value"},
	{"negative wait", controlPlane, "spec.install.workerWaitTimeoutSeconds", "-1", "spec.install.workerWaitTimeoutSeconds", "greater than or equal to 0"},
	{"wait of days", controlPlane, "spec.install.workerWaitTimeoutSeconds", "90000", "spec.install.workerWaitTimeoutSeconds", "less than or equal to 86400"},

	{"no spec", controlPlaneTemplate, "spec.template.spec", "", "spec.template.spec", "Required value"},
	{"empty install", controlPlaneTemplate, "spec.template.spec.install", "{}", "spec.template.spec.install", "at least 1 properties"},
	{"release with v", controlPlaneTemplate, "spec.template.spec.distributionVersion", "v4.20.4", "spec.template.spec.distributionVersion", "without a leading v"},
	{"old release", controlPlaneTemplate, "spec.template.spec.distributionVersion", "4.16.9", "spec.template.spec.distributionVersion", "4.17 or newer"},
	{"replicas", controlPlaneTemplate, "spec.template.spec.replicas", "3", "spec.template.spec.replicas", "unknown field"},
	{"address outside", controlPlaneTemplate, "spec.template.spec.install.apiVIPs", "[198.51.100.10]", "spec.template.spec.install.apiVIPs[0]", "must be in networking.machineNetwork"},
	{"base domain", controlPlaneTemplate, "spec.template.spec.install.baseDomain", "Example.com", "spec.template.spec.install.baseDomain", "a DNS domain in lower case"},
	{"boot mode", controlPlaneTemplate, "spec.template.spec.openshiftAssistedConfigSpec.boot.mode", "PXE", "spec.template.spec.openshiftAssistedConfigSpec.boot.mode", `supported values: "LiveISO"`},
}

// badUpdates change what cannot change once a control plane exists.
var badUpdates = []change{
	{"base domain", controlPlane, "spec.install.baseDomain", "example.org", "baseDomain", "is immutable"},
	{"cluster name", controlPlane, "spec.install.clusterName", "", "clusterName", "is immutable"},
	{"platform", controlPlane, "spec.install.platform", "", "platform", "is immutable"},
	{"API address", controlPlane, "spec.install.apiVIPs", "[192.0.2.20]", "apiVIPs", "is immutable"},
	{"ingress address", controlPlane, "spec.install.ingressVIPs", "[192.0.2.20]", "ingressVIPs", "is immutable"},
	{"network", controlPlane, "spec.install.networking", "", "networking", "is immutable"},
	{"SSH key", controlPlane, "spec.install.sshAuthorizedKey", "", "sshAuthorizedKey", "is immutable"},
	{"pull secret", controlPlane, "spec.install.pullSecretRef.name", "another", "pullSecretRef", "is immutable"},
	{"boot mode", config, "spec.boot.mode", "PXE", "spec.boot.mode", `supported values: "LiveISO"`},
	{"replicas", controlPlane, "spec.replicas", "2", "spec.replicas", `supported values: "1", "3", "4", "5"`},
}
