// SPDX-License-Identifier: Apache-2.0

// Package admission checks that both managers' CRDs and webhooks, in a real API server, take good manifests and refuse
// bad ones with a message that names the field and what is allowed.
package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// startTimeout covers the build of both managers.
const startTimeout = 10 * time.Minute

const (
	config               = "config"
	boundConfig          = "boundConfig"
	configTemplate       = "configTemplate"
	controlPlane         = "controlPlane"
	external             = "control plane on platform External"
	controlPlaneTemplate = "controlPlaneTemplate"
)

const configSpec = `
boot: {mode: LiveISO}
pullSecretRef: {name: pull-secret}
sshAuthorizedKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample admin@example.com
proxy: {httpProxy: "http://proxy.example.com:3128", httpsProxy: "https://proxy.example.com:3129", noProxy: [.example.com, 192.0.2.0/24]}
additionalNTPSources: [ntp.example.com, 192.0.2.1]
cpuArchitecture: x86_64
nmStateConfigSelector: {matchLabels: {rack: a}}
installation: {rootDeviceHints: {deviceName: /dev/disk/by-path/pci-0000:00:1f.2-ata-1, hctl: "0:0:0:0", model: MZ7LH480, vendor: ATA,
  serialNumber: S1, minSizeGigabytes: 100, wwn: "0x5002538e00000001",
  wwnWithExtension: "0x600508b1001c4b31a1b2c3d4e5f60718", wwnVendorExtension: "0xa1b2c3d4e5f60718", rotational: false}}
nodeRegistration: {name: MachineName, labels: [{key: example.com/rack, value: a}, {key: node-role.kubernetes.io/infra, value: ""}]}
hostIdentity: BareMetalHost
`

const installSpec = `
baseDomain: example.com
clusterName: demo
apiVIPs: [192.0.2.10]
ingressVIPs: [192.0.2.11]
platform: BareMetal
networking: {machineNetwork: [192.0.2.0/24], networkType: OVNKubernetes}
sshAuthorizedKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample admin@example.com
pullSecretRef: {name: pull-secret}
workerWaitTimeoutSeconds: 600
`

// The good manifests, by the names above. Every bad one differs from one of these in one field.
var manifests = map[string]string{
	config: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfig
metadata: {name: worker-0, namespace: default}
spec:` + indent(2, configSpec),
	boundConfig: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfig
metadata: {name: worker-1, namespace: default, annotations: {
  bootstrap.cluster.x-k8s.io/agent: worker-1, bootstrap.cluster.x-k8s.io/installation-disk: /dev/disk/by-id/wwn-0x5002538e00000001}}
spec:` + indent(2, configSpec) + `
`,
	configTemplate: `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfigTemplate
metadata: {name: workers, namespace: default}
spec:
  template:
    metadata: {labels: {example.com/pool: workers}}
    spec:` + indent(6, configSpec),
	controlPlane: `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlane
metadata: {name: demo, namespace: default}
spec:
  replicas: 3
  version: v1.33.4
  distributionVersion: 4.20.4
  release: {image: "quay.io/openshift-release-dev/ocp-release:4.20.4-x86_64"}
  machineTemplate:
    metadata: {labels: {example.com/pool: masters}}
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: masters}
      readinessGates: [{conditionType: example.com/Racked, polarity: Positive}]
      deletion: {nodeDrainTimeoutSeconds: 60}
      taints: [{key: node.kubernetes.io/out-of-service, value: nodeshutdown, effect: NoExecute, propagation: OnInitialization}]
  openshiftAssistedConfigSpec:` + indent(4, configSpec) + `
  install:` + indent(4, installSpec),
	external: `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlane
metadata: {name: external, namespace: default}
spec:
  replicas: 3
  version: v1.33.4
  distributionVersion: 4.20.4
  machineTemplate: {spec: {infrastructureRef: {
    apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: masters}}}
  install: {baseDomain: example.com, pullSecretRef: {name: pull-secret}, platform: External, external: {platformName: acme}}
`,
	controlPlaneTemplate: `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlaneTemplate
metadata: {name: demo, namespace: default}
spec:
  template:
    spec:
      distributionVersion: 4.20.4
      machineTemplate: {spec: {taints: [{key: example.com/masters, effect: NoSchedule, propagation: Always}]}}
      openshiftAssistedConfigSpec:` + indent(8, configSpec) + `
      install:` + indent(8, installSpec),
}

func indent(spaces int, text string) string {
	prefix := "\n" + strings.Repeat(" ", spaces)
	return prefix + strings.ReplaceAll(strings.TrimSpace(text), "\n", prefix)
}

// good returns a manifest that must be accepted.
func good(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(manifests[name]), &object.Object)).To(Succeed())
	return object
}

// with sets one field, at a path with dots, to a value in YAML; an empty value removes the field.
func with(t *testing.T, object *unstructured.Unstructured, path, value string) *unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	fields := strings.Split(path, ".")
	if value == "" {
		unstructured.RemoveNestedField(object.Object, fields...)
		return object
	}
	var parsed any
	g.Expect(yaml.Unmarshal([]byte(value), &parsed)).To(Succeed())
	g.Expect(unstructured.SetNestedField(object.Object, parsed, fields...)).To(Succeed())
	return object
}

// startAPI runs a control plane with both managers and returns a client of it.
func startAPI(t *testing.T) client.Client {
	t.Helper()
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cp, err := localcontrolplane.Start(ctx, localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	g.Expect(cp.InstallCRDs(ctx, localcontrolplane.CRDsCore, localcontrolplane.CRDsProviders)).To(Succeed())
	for _, manager := range []localcontrolplane.ManagerSpec{localcontrolplane.BootstrapManager(), localcontrolplane.ControlPlaneManager()} {
		_, err := cp.StartManager(ctx, manager)
		g.Expect(err).NotTo(HaveOccurred())
	}
	cl, err := client.New(cp.Admin(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	// As kubectl does it: a field that does not exist is an error.
	return client.WithFieldValidation(cl, metav1.FieldValidationStrict)
}

// certificate returns a PEM certificate that parses.
func certificate(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
