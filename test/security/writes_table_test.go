// SPDX-License-Identifier: Apache-2.0

package security

const (
	noOtherSecret     = "only Secrets of type cluster.x-k8s.io/secret"
	noOtherOwner      = "with label cluster.x-k8s.io/cluster-name that the OpenshiftAssistedConfig of the same name controls"
	noOtherField      = "changes nothing of a BareMetalHost but annotations"
	noOtherAnnotation = "only the annotations reboot.metal3.io and bootstrap.cluster.x-k8s.io/power-cycle of a BareMetalHost"
	noOtherMachine    = "changes nothing of a Metal3Machine but spec.image"
	noDisk            = "only images of format live-iso"
	onlyKubeconfigs   = "only the kubeconfigs of its clusters into Secrets: <cluster>-kubeconfig"
	noHost            = "writes no BareMetalHost"
	onlyItsMachines   = "only Metal3Machines that an OpenshiftAssistedControlPlane owns"
	onlyMetadata      = "changes nothing of a Metal3Machine but labels and annotations"
	noChoice          = "does not choose the BareMetalHost"

	hostStatus = `status: {errorCount: 1, errorMessage: "", operationalStatus: OK, poweredOn: true, provisioning: {ID: "", state: ready}}`

	liveISO = `{url: "http://example.com/live.iso", checksum: "", format: live-iso}`
)

// bootstrapWrites are first what the bootstrap manager does.
var bootstrapWrites = []write{
	{"as it is made", create, "bootstrap data", "", ""},
	{"owner and label of one that lost them", update, "bootstrap data without owner", `metadata: {name: demo-1, labels: {
  cluster.x-k8s.io/cluster-name: world}, ownerReferences: [{apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: OpenshiftAssistedConfig,
  name: demo-1, uid: a, controller: true}]}`, ""},
	{"asks for a power cycle", update, "host", `metadata: {annotations: {reboot.metal3.io: '{"mode":"hard"}',
  bootstrap.cluster.x-k8s.io/power-cycle: '{"boot":1}'}}`, ""},
	{"takes the request back", update, "host", `metadata: {annotations: {reboot.metal3.io: null,
  bootstrap.cluster.x-k8s.io/power-cycle: null}}`, ""},
	{"live ISO", update, "machine", `spec: {image: ` + liveISO + `}`, ""},
	{"live ISO of a worker", update, "worker", `spec: {image: ` + liveISO + `}`, ""},

	{"of another type", create, "bootstrap data", "type: Opaque", noOtherSecret},
	{"a credential", create, "pull-secret", "", noOtherSecret},
	{"without the cluster", create, "bootstrap data", "metadata: {labels: {cluster.x-k8s.io/cluster-name: null}}", noOtherOwner},
	{"without owner", create, "bootstrap data", "metadata: {ownerReferences: null}", noOtherOwner},
	{"of another kind", create, "bootstrap data", "metadata: {ownerReferences: " + ofSomebody + "}", noOtherOwner},
	{"of another config", create, "bootstrap data", "metadata: {name: demo-2}", noOtherOwner},
	{"with another key", create, "bootstrap data", "data: {token: YQ==}", "only the keys value and format"},
	{"other data", update, "bootstrap data", "data: {value: YQ==}", "does not change the data"},
	{"less data", update, "bootstrap data", "data: {format: null}", "does not change the data"},
	{"is made its own", update, "pull-secret", "metadata: {ownerReferences: " + ofConfig + "}", noOtherSecret},
	{"a label", update, "kubeconfig", "metadata: {labels: {a: b}}", noOtherOwner},
	{"its own", remove, "bootstrap data", "", "deletes no Secret"},
	{"somebody's", remove, "kubeconfig", "", "deletes no Secret"},

	{"a new one", create, "host", "", noOtherField},
	{"one that exists", remove, "host", "", noOtherField},
	{"its power", update, "host", "spec: {online: false}", noOtherField},
	{"its image", update, "host", `spec: {image: {url: "http://example.com/live.iso", format: live-iso}}`, noOtherField},
	{"its credentials", update, "host", "spec: {bmc: {credentialsName: other}}", noOtherField},
	{"its consumer", update, "host", "spec: {consumerRef: {name: a, namespace: b}}", noOtherField},
	{"its labels", update, "host", "metadata: {labels: {rack: b}}", noOtherField},
	{"its finalizers", update, "host", "metadata: {finalizers: [example.com/a]}", noOtherField},
	{"its owners", update, "host", "metadata: {ownerReferences: " + ofConfig + "}", noOtherField},
	{"its status", update, "host", hostStatus, noOtherField},
	{"that it is paused", update, "host", "metadata: {annotations: {baremetalhost.metal3.io/paused: a}}", noOtherAnnotation},
	{"that it is detached", update, "host", "metadata: {annotations: {baremetalhost.metal3.io/detached: a}}", noOtherAnnotation},

	{"a new one", create, "machine", "", noOtherMachine},
	{"one that exists", remove, "machine", "", noOtherMachine},
	{"its host", update, "machine", "metadata: {annotations: {metal3.io/BareMetalHost: written/host-1}}", noOtherMachine},
	{"its labels", update, "machine", "metadata: {labels: {rack: b}}", noOtherMachine},
	{"its owners", update, "machine", "metadata: {ownerReferences: null}", noOtherMachine},
	{"its finalizers", update, "machine", "metadata: {finalizers: [example.com/a]}", noOtherMachine},
	{"its selector", update, "machine", "spec: {hostSelector: {matchLabels: {rack: b}}}", noOtherMachine},
	{"one field more", update, "machine", "spec: {providerID: 'metal3://a/b/c'}", noOtherMachine},
	{"one field less", update, "machine", "spec: {hostSelector: null}", noOtherMachine},
	{"its status", update, "machine", "status: {ready: true}", noOtherMachine},
	{"a disk image", update, "machine", `spec: {image: {url: "http://example.com/other.qcow2"}}`, noDisk},
}

// controlPlaneWrites are first what the control plane manager does.
var controlPlaneWrites = []write{
	{"as it is published", create, "kubeconfig", "", ""},
	{"another token", update, "kubeconfig", `{data: {value: YQ==}, metadata: {annotations: {
  controlplane.cluster.x-k8s.io/kubeconfig-token: '{"expires":"2026-01-01T00:00:00Z"}'}}}`, ""},
	{"the installer's credential", update, "kubeconfig", `{data: {value: YQ==}, metadata: {annotations: {
  controlplane.cluster.x-k8s.io/kubeconfig-token: null}}}`, ""},
	{"is published over", update, "kubeconfig of a user", `{data: {value: YQ==}, metadata: {labels: {cluster.x-k8s.io/cluster-name: other},
  ownerReferences: ` + ofControlPlane + `}}`, ""},
	{"as it is copied", create, "installer's credential", "", ""},
	{"another one", update, "installer's credential", "data: {kubeconfig: YQ==}", ""},
	{"as it is shared", create, "admin kubeconfig", "", ""},
	{"another one", update, "admin kubeconfig", "data: {kubeconfig: YQ==}", ""},
	{"as it is made from a template", create, "machine", "metadata: {annotations: {metal3.io/BareMetalHost: null}}", ""},
	{"metadata of the template", update, "machine", "metadata: {labels: {rack: b}, annotations: {note: null, other: b}}", ""},
	{"of no Machine any more", remove, "machine", "", ""},

	{"a credential", create, "pull-secret", "", onlyKubeconfigs},
	{"bootstrap data", create, "bootstrap data", "", onlyKubeconfigs},
	{"of another type", create, "kubeconfig", "type: Opaque", onlyKubeconfigs},
	{"of another cluster", create, "kubeconfig", "metadata: {labels: {cluster.x-k8s.io/cluster-name: other}}", onlyKubeconfigs},
	{"without owner", create, "kubeconfig", "metadata: {ownerReferences: null}", onlyKubeconfigs},
	{"with another key", create, "kubeconfig", "data: {token: YQ==}", onlyKubeconfigs},
	{"with another annotation", create, "kubeconfig", "metadata: {annotations: {a: b}}", "only annotation"},
	{"another key", update, "kubeconfig", "data: {token: YQ==}", onlyKubeconfigs},
	{"a key less", update, "kubeconfig of a user", `{data: {note: null}, metadata: {labels: {cluster.x-k8s.io/cluster-name: other},
  ownerReferences: ` + ofControlPlane + `}}`, onlyKubeconfigs},
	{"another annotation", update, "kubeconfig", "metadata: {annotations: {a: b}}", "only annotation"},
	{"data", update, "pull-secret", "data: {.dockerconfigjson: e30K}", onlyKubeconfigs},
	{"is made its own", update, "pull-secret", "metadata: {ownerReferences: " + ofControlPlane + "}", onlyKubeconfigs},
	{"of another name", create, "installer's credential", "metadata: {name: other-installer-credentials}", onlyKubeconfigs},
	{"of another type", create, "installer's credential", "type: example.com/other", onlyKubeconfigs},
	{"without the cluster", create, "installer's credential", "metadata: {labels: null}", onlyKubeconfigs},
	{"with another key", create, "installer's credential", "data: {token: YQ==}", onlyKubeconfigs},
	{"of another name", create, "admin kubeconfig", "metadata: {name: other-admin-kubeconfig}", onlyKubeconfigs},
	{"without owner", create, "admin kubeconfig", "metadata: {ownerReferences: null}", onlyKubeconfigs},
	{"with another key", create, "admin kubeconfig", "data: {token: YQ==}", onlyKubeconfigs},
	{"its own", remove, "kubeconfig", "", "deletes no Secret"},

	{"a new one", create, "host", "", noHost},
	{"one that exists", remove, "host", "", noHost},
	{"a request to reboot", update, "host", "metadata: {annotations: {reboot.metal3.io: null}}", noHost},
	{"its power", update, "host", "spec: {online: false}", noHost},
	{"its status", update, "host", hostStatus, noHost},

	{"of nobody", create, "machine", "metadata: {ownerReferences: null}", onlyItsMachines},
	{"of somebody", create, "machine", "metadata: {ownerReferences: " + ofSomebody + "}", onlyItsMachines},
	{"of no control plane", create, "machine", "metadata: {labels: {cluster.x-k8s.io/control-plane: null}}", onlyItsMachines},
	{"without the cluster", create, "machine", "metadata: {labels: {cluster.x-k8s.io/cluster-name: null}}", onlyItsMachines},
	{"with a host", create, "machine", "", noChoice},
	{"another host", update, "machine", "metadata: {annotations: {metal3.io/BareMetalHost: written/host-1}}", noChoice},
	{"no host", update, "machine", "metadata: {annotations: {metal3.io/BareMetalHost: null}}", noChoice},
	{"its image", update, "machine", `spec: {image: ` + liveISO + `}`, onlyMetadata},
	{"its owners", update, "machine", "metadata: {ownerReferences: " + ofSomebody + "}", onlyMetadata},
	{"its finalizers", update, "machine", "metadata: {finalizers: [example.com/a]}", onlyMetadata},
	{"its status", update, "machine", "status: {ready: true}", onlyMetadata},
	{"that it is of no control plane", update, "machine", "metadata: {labels: {cluster.x-k8s.io/control-plane: null}}", onlyMetadata},
	{"labels of a worker", update, "worker", "metadata: {labels: {rack: b}}", onlyMetadata},
	{"that a worker is of a control plane", update, "worker", `metadata: {labels: {cluster.x-k8s.io/control-plane: ""}}`, onlyMetadata},
	{"a worker", remove, "worker", "", onlyItsMachines},
}
