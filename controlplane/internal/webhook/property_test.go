// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

// randomSpecs is how many control planes TestRendering makes up.
const randomSpecs = 1000

// TestRendering makes up control planes that admission accepts, and renders each twice, from copies: the install objects are the same, byte
// for byte. A number that fails makes the same control plane again.
func TestRendering(t *testing.T) {
	for n := range uint64(randomSpecs) {
		g := NewWithT(t)
		cp := randomControlPlane(rand.New(rand.NewPCG(n, 0)))
		g.Expect(validateControlPlane(cp)).To(BeEmpty(), "control plane %d", n)
		first, second := rendered(g, cp.DeepCopy()), rendered(g, cp.DeepCopy())
		g.Expect(second).To(Equal(first), "control plane %d", n)
	}
}

func rendered(g *WithT, cp *controlplanev1.OpenshiftAssistedControlPlane) []string {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cp.Namespace, Name: "demo"}}
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.128.0.0/14"}
	cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"172.30.0.0/16"}
	objects := render.Install{ControlPlane: cp, Cluster: cluster, Workers: 2}
	install, err := objects.AgentClusterInstall()
	g.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, object := range []any{objects.ImageSet(), objects.ClusterDeployment(), install} {
		data, err := json.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())
		out = append(out, string(data))
	}
	return out
}

// pick returns one of the values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// some returns some of the values, in another order.
func some[T any](r *rand.Rand, values ...T) []T {
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values[:r.IntN(len(values)+1)]
}

func randomControlPlane(r *rand.Rand) *controlplanev1.OpenshiftAssistedControlPlane {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: fmt.Sprintf("cp-%d", r.IntN(100))},
	}
	cp.Spec.Version = "v1.33.4"
	cp.Spec.DistributionVersion = pick(r, "4.18.3", "4.19.0", "4.20.4", "4.20.0-okd-scos.1", "4.21.0-rc.1")
	cp.Spec.Replicas = ptr.To(pick[int32](r, 1, 2, 3, 4, 5))
	if r.IntN(2) == 0 {
		cp.Spec.Release.Image = "registry.example.com/ocp/release:" + cp.Spec.DistributionVersion
	}
	cp.Spec.OpenshiftAssistedConfigSpec.CPUArchitecture = pick[bootstrapv1.CPUArchitecture](r, "", "x86_64", "aarch64")
	install := &cp.Spec.Install
	install.BaseDomain, install.PullSecretRef.Name = "example.com", "pull-secret"
	install.ClusterName = pick(r, "", "other")
	randomNetworking(r, cp)
	randomOptions(r, install)
	randomOverrides(r, install)
	randomTwoNode(r, cp)
	return cp
}

// randomTwoNode is one of the ways in which two control-plane hosts can be installed.
func randomTwoNode(r *rand.Rand, cp *controlplanev1.OpenshiftAssistedControlPlane) {
	if *cp.Spec.Replicas != 2 {
		return
	}
	cp.Spec.DistributionVersion, cp.Spec.Install.FeatureSet = "4.20.4", "TechPreviewNoUpgrade"
	if cp.Spec.Install.TwoNode = controlplanev1.TwoNodeFencing; cp.Spec.Install.Platform != controlplanev1.PlatformNone && r.IntN(2) == 0 {
		cp.Spec.Install.TwoNode = controlplanev1.TwoNodeArbiter
		cp.Spec.Install.Hyperthreading.Arbiter = pick[controlplanev1.Hyperthreading](r, "", "Enabled", "Disabled")
	}
}

// randomNetworking is of one family or both, on the platforms that the number of hosts allows.
func randomNetworking(r *rand.Rand, cp *controlplanev1.OpenshiftAssistedControlPlane) {
	install := &cp.Spec.Install
	if *cp.Spec.Replicas == 1 || r.IntN(3) == 0 {
		install.Platform = controlplanev1.PlatformNone
		return
	}
	four := controlplanev1.NetworkingSpec{
		MachineNetwork: []string{"192.0.2.0/24"}, ServiceNetwork: []string{"172.30.0.0/16"},
		ClusterNetwork: []controlplanev1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: pick[int32](r, 0, 23, 25)}},
	}
	install.APIVIPs, install.IngressVIPs, install.Networking = []string{"192.0.2.10"}, []string{"192.0.2.11"}, four
	if r.IntN(2) == 0 {
		return
	}
	install.APIVIPs, install.IngressVIPs = append(install.APIVIPs, "2001:db8::a"), append(install.IngressVIPs, "2001:db8::b")
	install.Networking.MachineNetwork = append(install.Networking.MachineNetwork, "2001:db8::/64")
	install.Networking.ServiceNetwork = append(install.Networking.ServiceNetwork, "fd02::/112")
	install.Networking.ClusterNetwork = append(install.Networking.ClusterNetwork, controlplanev1.ClusterNetworkEntry{CIDR: "fd01::/48"})
}

func randomOptions(r *rand.Rand, install *controlplanev1.InstallSpec) {
	if r.IntN(2) == 0 {
		install.Proxy = bootstrapv1.ProxySpec{
			HTTPProxy: "http://proxy.example.com:3128",
			NoProxy:   some(r, ".example.com", "192.0.2.0/24", "localhost"),
		}
	}
	if r.IntN(2) == 0 {
		install.DiskEncryption = controlplanev1.DiskEncryptionSpec{
			Mode:  controlplanev1.DiskEncryptionMode("Tang"),
			Roles: some(r, controlplanev1.HostRole("ControlPlane"), controlplanev1.HostRole("Worker")),
			TangServers: []controlplanev1.TangServer{
				{URL: "http://tang1.example.com:7500", Thumbprint: "PLjNyRdGw03zlRoGjQYMahSZGu9"},
				{URL: "http://tang2.example.com:7500", Thumbprint: "XYjNyRdGw03zlRoGjQYMahSZGu3"},
			},
		}
	}
	for _, name := range some(r, "manifests-a", "manifests-b", "manifests-c") {
		install.ManifestsConfigMapRefs = append(install.ManifestsConfigMapRefs, controlplanev1.LocalConfigMapReference{Name: name})
	}
	install.MirrorRegistryRef.Name = pick(r, "", "mirrors")
	install.SchedulableControlPlane = pick(r, nil, ptr.To(true), ptr.To(false))
	install.Hyperthreading.Worker = pick[controlplanev1.Hyperthreading](r, "", "Enabled", "Disabled")
	install.HoldInstallation = pick(r, nil, ptr.To(true))
	install.IgnoredValidations.Host = some(r, "has-min-memory", "ntp-synced")
}

func randomOverrides(r *rand.Rand, install *controlplanev1.InstallSpec) {
	install.Capabilities.Additional = some(r, "Console", "NodeTuning", "Insights", "Storage")
	install.FIPS = pick(r, nil, ptr.To(true))
	install.FeatureSet = pick[controlplanev1.FeatureSet](r, "", "TechPreviewNoUpgrade")
	install.CPUPartitioning = pick[controlplanev1.CPUPartitioning](r, "", "AllNodes")
	if r.IntN(2) == 0 {
		install.ConfigOverrides = runtime.RawExtension{Raw: []byte(`{"publish":"External","credentialsMode":"Manual"}`)}
	}
}
