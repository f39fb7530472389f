// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func TestContractAdmission(t *testing.T) {
	cl := startAPI(t)
	t.Run("accepted", func(t *testing.T) { testAccepted(t, cl) })
	t.Run("CP-9 CP-63 refused", func(t *testing.T) { testRefused(t, cl, badCreates, client.DryRunAll) })
	t.Run("CP-8 CP-63 KCP-8 refused as scale", func(t *testing.T) { testScale(t, cl) })
	t.Run("CP-63 refused as scale of an older release", func(t *testing.T) { testScaleOfOlderRelease(t, cl) })
	t.Run("refused as update", func(t *testing.T) { testRefusedUpdates(t, cl, badUpdates) })
	t.Run("accepted as update", func(t *testing.T) { testAcceptedUpdates(t, cl, slices.Concat(lateUpdates, sameUpdates)) })
	t.Run("refused as update of an installation", func(t *testing.T) {
		begin(t, cl)
		testRefusedUpdates(t, cl, lateUpdates)
		testAcceptedUpdates(t, cl, sameUpdates)
	})
	t.Run("a policy refuses what would install workers anew", func(t *testing.T) { testPolicy(t, cl) })
	t.Run("CP-9 a version gets its leading v", func(t *testing.T) {
		object := with(t, good(t, controlPlane), "spec.version", "1.33.4")
		object.SetName("without-v")
		g := NewWithT(t)
		g.Expect(cl.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
		version, _, err := unstructured.NestedString(object.Object, "spec", "version")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version).To(Equal("v1.33.4"))
	})
}

// testAccepted stores the good manifests, which the updates change later.
func testAccepted(t *testing.T, cl client.Client) {
	for name := range manifests {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(cl.Create(t.Context(), good(t, name))).To(Succeed()) })
	}
	quoted, err := yaml.Marshal(certificate(t) + certificate(t))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	variants := []change{
		{name: "nothing set", base: config, path: "spec", value: "{}"},
		{name: "two certificates", base: config, path: "spec.additionalTrustBundle", value: string(quoted)},
		{name: "proxy without scheme https", base: config, path: "spec.proxy.httpsProxy", value: "http://proxy.example.com"},
		{name: "IPv6 NTP source", base: config, path: "spec.additionalNTPSources", value: `["2001:db8::1"]`},
		{name: "MachineConfigPool", base: config, path: "spec.nodeRegistration.machineConfigPool", value: "infra"},
		{name: "disk image", base: config, path: "spec.boot", value: "{mode: UserData}"},
		{name: "media", base: config, path: "spec.boot", value: `{mode: LiveISO, imageType: Minimal, osImageVersion: "4.20"}`},
		{name: "mirrors", base: config, path: "spec", value: `
ntpSources: [ntp.example.com]
additionalTrustBundleRef: {name: ca}
mirrorRegistryRef: {name: mirrors}
boot: {imageType: Minimal}
networkDiscoveryDelaySeconds: 30
`},
		{name: "discovery", base: config, path: "spec.discovery", value: `
kernelArguments: [console=ttyS0, 'name="a b"', "isolcpus=1,2,10-20,100-2000:2/25"]
ignition: '{"ignition":{"version":"3.1.0"}}'
`},
		{name: "installation", base: config, path: "spec.installation", value: `
kernelArguments: ["console=tty0", "console=ttyS0,115200n8", "isolcpus=1,2,10-20", "rd.luks.options=[a]"]
deletedKernelArguments: [quiet]
ignition: '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,demo"}}]}}'
`},
		{name: "networks of the hosts", base: config, path: "spec", value: "{staticNetworking: {source: BareMetalHosts}}"},
		{name: "all defaults", base: configTemplate, path: "spec.template.spec", value: "{}"},
		{name: "left to a ClusterClass's patches", base: controlPlaneTemplate, path: "spec.template.spec", value: "{}"},
		{name: "image by digest", base: controlPlane, path: "spec.release.image", value: "quay.io/ocp/release@sha256:" + strings.Repeat("a", 64)},
		{name: "release by name", base: controlPlane, path: "spec.release", value: "{imageSetRef: {name: ocp-4.20}}"},
		{name: "default release", base: controlPlane, path: "spec.release"},
		{name: "candidate", base: controlPlane, path: "spec.distributionVersion", value: "4.21.0-rc.1"},
		{name: "OpenShift 5", base: controlPlane, path: "spec.distributionVersion", value: "5.0.1"},
		{name: "OpenShift 5 in a template", base: controlPlaneTemplate, path: "spec.template.spec.distributionVersion", value: "5.1.0-ec.2"},
		{name: "upgrade of OpenShift 5", base: controlPlane, path: "spec.upgrade", value: `
channel: stable-5.1
acknowledgements: [ack-4.23-removals-in-5.0, ack-5.0-removals-in-5.1]
`},
		{name: "five hosts", base: controlPlane, path: "spec.replicas", value: "5"},
		{name: "no worker is waited for", base: controlPlane, path: "spec.install.workerWaitTimeoutSeconds", value: "0"},
		{name: "single node", base: controlPlane, path: "spec", value: `
replicas: 1
version: v1.33.4
distributionVersion: 4.20.4
machineTemplate:
  spec:
    infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: masters}
install:
  baseDomain: example.com
  pullSecretRef: {name: pull-secret}
`},
		{name: "platform External", base: controlPlane, path: "spec.install", value: `
baseDomain: example.com
pullSecretRef: {name: pull-secret}
platform: External
external: {platformName: acme, cloudControllerManager: External}
`},
		{name: "load balancer of the user", base: controlPlane, path: "spec.install", value: `
baseDomain: example.com
pullSecretRef: {name: pull-secret}
apiVIPs: [198.51.100.10]
ingressVIPs: [198.51.100.10]
loadBalancer: {type: UserManaged}
networking: {machineNetwork: [192.0.2.0/24]}
`},
		{name: "IPv6 only", base: controlPlane, path: "spec.install", value: `
baseDomain: example.com
pullSecretRef: {name: pull-secret}
apiVIPs: ["2001:db8::10"]
ingressVIPs: ["2001:db8::11"]
networking: {machineNetwork: ["2001:db8::/64"], clusterNetwork: [{cidr: "fd01::/48", hostPrefix: 64}], serviceNetwork: ["fd02::/112"]}
`},
		{name: "every option", base: controlPlane, path: "spec.install", value: `
baseDomain: example.com
pullSecretRef: {name: pull-secret}
apiVIPs: [192.0.2.10]
ingressVIPs: [192.0.2.11]
loadBalancer: {type: ClusterManaged}
schedulableControlPlane: true
networking: {machineNetwork: [192.0.2.0/24], clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 24}],
  serviceNetwork: [172.30.0.0/16], networkType: Cilium}
proxy: {httpProxy: "http://proxy.example.com:3128", httpsProxy: "http://proxy.example.com:3128", noProxy: [.example.com]}
diskEncryption: {mode: Tang, roles: [ControlPlane], tangServers: [{
  url: "http://tang.example.com:7500", thumbprint: PLjNyRdGw03zlRoGjQYMahSZGu9}]}
manifestsConfigMapRefs: [{name: manifests}]
mirrorRegistryRef: {name: mirrors}
hyperthreading: {controlPlane: Enabled, worker: Disabled}
holdInstallation: true
capabilities: {baseline: v4.18, additional: [NodeTuning]}
featureSet: TechPreviewNoUpgrade
fips: true
cpuPartitioning: AllNodes
configOverrides: {publish: Internal, controlPlane: {unknown: 1}}
ignoredValidations: {cluster: [ntp-server-configured], host: [has-min-memory, all]}
`},
		{name: "dual stack", base: controlPlane, path: "spec.install", value: `
baseDomain: example.com
pullSecretRef: {name: pull-secret}
apiVIPs: [192.0.2.10, "2001:db8::10"]
ingressVIPs: [192.0.2.11, "2001:db8::11"]
networking: {machineNetwork: [192.0.2.0/24, "2001:db8::/64"]}
`},
	}
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			object := with(t, good(t, variant.base), variant.path, variant.value)
			object.SetName(object.GetName() + "-variant")
			NewWithT(t).Expect(cl.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
		})
	}
}

func testRefused(t *testing.T, cl client.Client, changes []change, opts ...client.CreateOption) {
	t.Helper()
	for _, bad := range changes {
		t.Run(bad.base+" "+bad.name, func(t *testing.T) {
			object := with(t, good(t, bad.base), bad.path, bad.value)
			if bad.path != "metadata.name" {
				object.SetName(object.GetName() + "-bad")
			}
			checkRefusal(t, cl.Create(t.Context(), object, opts...), bad)
		})
	}
}

// testScaleOfOlderRelease: what the CRD allows and the release does not is refused by the webhook, to which requests for a scale are other
// ones.
func testScaleOfOlderRelease(t *testing.T, cl client.Client) {
	g := NewWithT(t)
	older := with(t, with(t, good(t, controlPlane), "spec.distributionVersion", "4.17.9"), "spec.version", "v1.30.4")
	older.SetName("older")
	g.Expect(cl.Create(t.Context(), older)).To(Succeed())
	scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale"}}
	g.Expect(cl.SubResource("scale").Get(t.Context(), older, scale)).To(Succeed())
	err := cl.SubResource("scale").Update(t.Context(), older, client.WithSubResourceBody(with(t, scale, "spec.replicas", "5")))
	g.Expect(err).To(MatchError(And(ContainSubstring("spec.replicas"), ContainSubstring("4 and 5 need release 4.18 or newer"))))
}

// testAcceptedUpdates takes what is refused once the installation has begun, and what means the same.
func testAcceptedUpdates(t *testing.T, cl client.Client, changes []change) {
	t.Helper()
	for _, c := range changes {
		t.Run(c.base+" "+c.name, func(t *testing.T) {
			g := NewWithT(t)
			stored := good(t, c.base)
			g.Expect(cl.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
			g.Expect(cl.Update(t.Context(), with(t, stored, c.path, c.value), client.DryRunAll)).To(Succeed())
		})
	}
}

// begin says that the installation of the control plane has begun.
func begin(t *testing.T, cl client.Client) {
	t.Helper()
	g := NewWithT(t)
	stored := good(t, controlPlane)
	g.Expect(cl.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
	g.Expect(cl.Status().Update(t.Context(), with(t, stored, "status.install", "{phase: Installing}"))).To(Succeed())
}

func testRefusedUpdates(t *testing.T, cl client.Client, changes []change) {
	t.Helper()
	for _, bad := range changes {
		t.Run(bad.base+" "+bad.name, func(t *testing.T) {
			stored := good(t, bad.base)
			NewWithT(t).Expect(cl.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
			checkRefusal(t, cl.Update(t.Context(), with(t, stored, bad.path, bad.value), client.DryRunAll), bad)
		})
	}
}

func checkRefusal(t *testing.T, err error, bad change) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(err).To(HaveOccurred())
	t.Log(err)
	g.Expect(err.Error()).To(ContainSubstring(bad.field), "the message must name the field")
	g.Expect(err.Error()).To(ContainSubstring(bad.allowed), "the message must say what is allowed")
}

// testScale checks that the scale subresource passes through the same rules.
func testScale(t *testing.T, cl client.Client) {
	scaled := good(t, controlPlane)
	scale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": scaled.GetName(), "namespace": scaled.GetNamespace()},
	}}
	g := NewWithT(t)
	g.Expect(cl.SubResource("scale").Get(t.Context(), scaled, scale)).To(Succeed())
	for replicas, works := range map[string]bool{"2": false, "0": false, "1": false, "5": true} {
		t.Run(replicas, func(t *testing.T) {
			err := cl.SubResource("scale").
				Update(t.Context(), scaled, client.WithSubResourceBody(with(t, scale.DeepCopy(), "spec.replicas", replicas)), client.DryRunAll)
			if works {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("replicas")))
		})
	}
}
