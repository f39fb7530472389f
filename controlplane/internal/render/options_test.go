// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// installOf is the installation of a control plane with changes.
func installOf(change func(*controlplanev1.InstallSpec)) render.Install {
	cp := controlPlane(3)
	change(&cp.Spec.Install)
	return render.Install{ControlPlane: cp, Cluster: &clusterv1.Cluster{}}
}

// everything sets every option once.
func everything(i *controlplanev1.InstallSpec) {
	i.SSHAuthorizedKey = "ssh-ed25519 AAAA"
	i.LoadBalancer.Type = controlplanev1.LoadBalancerUserManaged
	i.SchedulableControlPlane = new(true)
	i.Proxy = bootstrapv1.ProxySpec{HTTPProxy: "http://p", HTTPSProxy: "http://s", NoProxy: []string{".example.com", "192.0.2.0/24"}}
	i.NTPSources = []string{"ntp.example.com"}
	i.DiskEncryption = controlplanev1.DiskEncryptionSpec{
		Mode:        controlplanev1.DiskEncryptionTang,
		Roles:       []controlplanev1.HostRole{controlplanev1.HostRoleControlPlane},
		TangServers: []controlplanev1.TangServer{{URL: "http://tang.example.com:7500", Thumbprint: "AbC-_"}},
	}
	i.ManifestsConfigMapRefs = []controlplanev1.LocalConfigMapReference{{Name: "a"}, {Name: "b"}}
	i.MirrorRegistryRef.Name = "mirrors"
	i.Hyperthreading.Worker = controlplanev1.HyperthreadingDisabled
	i.IgnoredValidations = controlplanev1.IgnoredValidationsSpec{
		Cluster: []string{"ntp-server-configured"}, Host: []string{"has-min-memory", "all"},
	}
}

func TestInstallOptions(t *testing.T) {
	object, err := installOf(everything).Object()
	if err != nil {
		t.Fatal(err)
	}
	spec := object.Object["spec"].(map[string]any)
	want := map[string]any{
		"sshPublicKey":       "ssh-ed25519 AAAA",
		"loadBalancer":       map[string]any{"type": "UserManaged"},
		"mastersSchedulable": true,
		"proxy":              map[string]any{"httpProxy": "http://p", "httpsProxy": "http://s", "noProxy": ".example.com,192.0.2.0/24"},
		"ntpSources":         []any{"ntp.example.com"},
		"diskEncryption": map[string]any{
			"enableOn": "masters", "mode": "tang", "tangServers": `[{"url":"http://tang.example.com:7500","thumbprint":"AbC-_"}]`,
		},
		"manifestsConfigMapRefs": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}},
		"mirrorRegistryRef":      map[string]any{"name": "mirrors", "namespace": "ns"},
		"controlPlane":           map[string]any{"name": "master", "hyperthreading": "Enabled"},
		"compute":                []any{map[string]any{"name": "worker", "hyperthreading": "Disabled"}},
	}
	for field, value := range want {
		if diff := cmp.Diff(value, spec[field]); diff != "" {
			t.Errorf("spec.%s (-want +got):\n%s", field, diff)
		}
	}
	g := NewWithT(t)
	g.Expect(object.GetAnnotations()).To(And(
		HaveKeyWithValue(assisted.IgnoredClusterValidationsAnnotation, `["ntp-server-configured"]`),
		HaveKeyWithValue(assisted.IgnoredHostValidationsAnnotation, `["has-min-memory","all"]`),
	))
	g.Expect(object.Object).NotTo(HaveKey("status"))
}

// TestNoOptions: what is not asked for is not written, for releases of the service that do not know it.
func TestNoOptions(t *testing.T) {
	object, err := installOf(func(*controlplanev1.InstallSpec) {}).Object()
	if err != nil {
		t.Fatal(err)
	}
	g := NewWithT(t)
	g.Expect(object.Object["spec"]).
		To(And(HaveLen(6), HaveKey("clusterDeploymentRef"), HaveKey("imageSetRef"), HaveKey("holdInstallation"), HaveKey("networking"),
			HaveKey("platformType"), HaveKey("provisionRequirements")))
	g.Expect(object.GetAnnotations()).
		NotTo(Or(HaveKey(assisted.IgnoredClusterValidationsAnnotation), HaveKey(assisted.IgnoredHostValidationsAnnotation)))
}

func TestDiskEncryptionRoles(t *testing.T) {
	const master, worker = controlplanev1.HostRoleControlPlane, controlplanev1.HostRoleWorker
	for want, roles := range map[string][]controlplanev1.HostRole{"all": nil, "masters": {master}, "workers": {worker}} {
		install, err := installOf(func(i *controlplanev1.InstallSpec) {
			i.DiskEncryption = controlplanev1.DiskEncryptionSpec{Mode: controlplanev1.DiskEncryptionTPM2, Roles: roles}
		}).AgentClusterInstall()
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(*install.Spec.DiskEncryption.EnableOn).To(Equal(want))
		g.Expect(*install.Spec.DiskEncryption.Mode).To(Equal("tpmv2"))
	}
	both, err := installOf(func(i *controlplanev1.InstallSpec) {
		i.DiskEncryption = controlplanev1.DiskEncryptionSpec{
			Mode: controlplanev1.DiskEncryptionTPM2, Roles: []controlplanev1.HostRole{worker, master},
		}
	}).AgentClusterInstall()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(*both.Spec.DiskEncryption.EnableOn).To(Equal("all"))
}

func TestExternalPlatform(t *testing.T) {
	g := NewWithT(t)
	install, err := installOf(func(i *controlplanev1.InstallSpec) {
		i.Platform = controlplanev1.PlatformExternal
		i.External = controlplanev1.ExternalPlatformSpec{
			PlatformName: "acme", CloudControllerManager: controlplanev1.CloudControllerManagerExternal,
		}
	}).AgentClusterInstall()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(install.Spec.PlatformType).To(Equal(hiveext.ExternalPlatformType))
	g.Expect(install.Spec.ExternalPlatformSpec).
		To(Equal(&hiveext.ExternalPlatformSpec{PlatformName: "acme", CloudControllerManager: "External"}))
	g.Expect(install.Spec.Networking.UserManagedNetworking).To(HaveValue(BeTrue()))
}

// asStored is an AgentClusterInstall as the cache holds it.
func asStored(t *testing.T, object *unstructured.Unstructured) *hiveext.AgentClusterInstall {
	t.Helper()
	install := &hiveext.AgentClusterInstall{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, install); err != nil {
		t.Fatal(err)
	}
	return install
}

func TestInstallUpdate(t *testing.T) {
	g := NewWithT(t)
	full, err := installOf(everything).Object()
	g.Expect(err).NotTo(HaveOccurred())
	stored := asStored(t, full)

	g.Expect(installOf(everything).Update(stored)).To(BeNil(), "nothing has changed")

	update, err := installOf(func(i *controlplanev1.InstallSpec) {
		everything(i)
		i.NTPSources, i.Proxy.HTTPSProxy = []string{"ntp2.example.com"}, ""
	}).Update(stored)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(update.Spec).To(HaveKeyWithValue("ntpSources", []any{"ntp2.example.com"}))
	g.Expect(update.Spec["proxy"]).To(HaveKeyWithValue("httpsProxy", BeNil()))
	g.Expect(update.Annotations[assisted.InstallSpecAnnotation]).NotTo(Equal(stored.Annotations[assisted.InstallSpecAnnotation]))
	for _, other := range []string{"holdInstallation", "provisionRequirements", "imageSetRef", "clusterDeploymentRef", "platformType",
		"external", "clusterMetadata"} {
		g.Expect(update.Spec).NotTo(HaveKey(other))
	}
	g.Expect(update.Spec["networking"]).NotTo(HaveKey("userManagedNetworking"))

	update, err = installOf(func(*controlplanev1.InstallSpec) {}).Update(stored)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(update.Annotations).To(HaveKeyWithValue(assisted.IgnoredHostValidationsAnnotation, BeNil()))
	g.Expect(update.Spec).
		To(And(HaveKeyWithValue("ntpSources", BeNil()), HaveKeyWithValue("manifestsConfigMapRefs", BeNil()),
			HaveKeyWithValue("mastersSchedulable", BeNil()),
			HaveKeyWithValue("diskEncryption", map[string]any{"enableOn": "none", "mode": nil, "tangServers": nil}),
			HaveKeyWithValue("loadBalancer", map[string]any{"type": "ClusterManaged"})))
}
