// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"net"
	"os"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// speed makes an installation take some seconds of simulated time.
	speed = 3

	installTimeout = 4 * time.Minute
)

// TestContractInstallation installs a cluster from each template for special networks, all at the same time.
func TestContractInstallation(t *testing.T) {
	g := NewWithT(t)
	world, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{Progress: os.Stderr, Speed: speed})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Error(err) // Of what ends a test at once, Go shows nothing here: it runs after parallel sub-tests.
		}
	})
	t.Run(
		"CTL-33 hosts without DHCP are installed", func(t *testing.T) { install(t, world, "static-ip", "127.30.5.40", checkStaticAddresses) },
	)
	t.Run("CTL-33 hosts without IPv4 are installed", func(t *testing.T) {
		requireIPv6(t)
		install(t, world, "ipv6", "::1", checkIPv6)
	})
	t.Run("CTL-33 BOOT-26 hosts that boot a disk image with user data are installed", func(t *testing.T) {
		install(t, world, "userdata", "127.30.5.60", checkUserData)
	})
	t.Run("CTL-33 a cluster is installed from a registry of its owner", func(t *testing.T) {
		install(t, world, "disconnected", "127.30.5.50", checkRegistry)
	})
	t.Run("CP-70 a release of OpenShift 5 is installed with the Kubernetes version of its kubelets", func(t *testing.T) {
		installRequest(t, world, sandbox.ClusterRequest{
			Namespace: "five", Name: "five", Topology: sandbox.SNO, Release: sandbox.FiveRelease, Address: "127.30.5.70",
		}, checkFive)
	})
}

// requireIPv6 fails a test at once on a machine where an API cannot listen on IPv6: the installation would only run out of time.
func requireIPv6(t *testing.T) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred(), "clusters without IPv4 need the loopback address ::1: turn IPv6 on for the interface lo")
	g.Expect(listener.Close()).To(Succeed())
}

// installed is a cluster that a template has become.
type installed struct {
	client.Reader
	request sandbox.ClusterRequest
}

// install installs a flavor with three control-plane hosts and a worker, beside the other flavors, and checks what is special about it.
func install(t *testing.T, world *sandbox.World, flavor, address string, check func(*testing.T, installed)) {
	t.Helper()
	installRequest(t, world, sandbox.ClusterRequest{
		Namespace: flavor, Name: flavor, Topology: sandbox.HA, Template: flavor, Workers: 1, Address: address,
	}, check)
}

// installRequest installs a cluster beside the others, and checks what is special about it.
func installRequest(t *testing.T, world *sandbox.World, request sandbox.ClusterRequest, check func(*testing.T, installed)) {
	t.Helper()
	t.Parallel()
	key := request.Key()
	g := NewWithT(t)
	g.Expect(world.CreateInputsFor(t.Context(), request, request.Machines())).To(Succeed())
	g.Expect(world.ApplyCluster(t.Context(), request)).To(Succeed())
	g.Expect(world.AwaitCluster(t.Context(), key, installTimeout, key.String(), world.Running(key, request.Machines()))).To(Succeed())
	_, err := world.VerifyHosts(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	check(t, installed{Reader: world.Client, request: request})
}

// infraEnvs are those of the cluster.
func (c installed) infraEnvs(t *testing.T) []assisted.InfraEnv {
	t.Helper()
	list := &assisted.InfraEnvList{}
	g := NewWithT(t)
	g.Expect(c.List(t.Context(), list, client.InNamespace(c.request.Namespace),
		client.MatchingLabels{bootstrapv1.InfraEnvClusterLabel: c.request.Name})).
		To(Succeed())
	g.Expect(list.Items).NotTo(BeEmpty())
	return list.Items
}

// agentClusterInstall is the cluster's.
func (c installed) agentClusterInstall(t *testing.T) *hiveext.AgentClusterInstall {
	t.Helper()
	install := &hiveext.AgentClusterInstall{}
	NewWithT(t).Expect(c.Get(t.Context(), sandbox.InstallKey(c.request.Key()), install)).To(Succeed())
	return install
}

// checkStaticAddresses checks that all images have the NMStateConfigs in them.
func checkStaticAddresses(t *testing.T, c installed) {
	g := NewWithT(t)
	for _, infraEnv := range c.infraEnvs(t) {
		selected := &assisted.NMStateConfigList{}
		g.Expect(infraEnv.Spec.NMStateConfigLabelSelector.MatchLabels).To(HaveLen(1))
		labels := client.MatchingLabels(infraEnv.Spec.NMStateConfigLabelSelector.MatchLabels)
		g.Expect(c.List(t.Context(), selected, client.InNamespace(c.request.Namespace), labels)).To(Succeed())
		g.Expect(len(selected.Items)).To(BeNumerically(">=", c.request.Machines()), "one for every host")
	}
}

// checkFive checks that the release is the one that was asked for, and that nothing about the versions is wrong.
func checkFive(t *testing.T, c installed) {
	g := NewWithT(t)
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	g.Expect(c.Get(t.Context(), sandbox.InstallKey(c.request.Key()), controlPlane)).To(Succeed())
	g.Expect(controlPlane.Status.DistributionVersion).To(Equal(sandbox.FiveRelease.Version))
	g.Expect(conditions.IsTrue(controlPlane, controlplanev1.VersionsMatchCondition)).To(BeTrue())
	imageSet := &hivev1.ClusterImageSet{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: c.agentClusterInstall(t).Spec.ImageSetRef.Name}, imageSet)).To(Succeed())
	g.Expect(imageSet.Spec.ReleaseImage).To(Equal("quay.io/openshift-release-dev/ocp-release:5.0.1-x86_64"))
}

// checkIPv6 checks that the cluster has IPv6 networks, and its Nodes addresses of that family alone.
func checkIPv6(t *testing.T, c installed) {
	networking := c.agentClusterInstall(t).Spec.Networking
	g := NewWithT(t)
	g.Expect(networking.ClusterNetwork).To(Equal([]hiveext.ClusterNetworkEntry{{CIDR: "fd01::/48", HostPrefix: 64}}))
	g.Expect(networking.ServiceNetwork).To(Equal([]string{"fd02::/112"}))
	machines := &clusterv1.MachineList{}
	g.Expect(c.List(t.Context(), machines, client.InNamespace(c.request.Namespace))).To(Succeed())
	for i := range machines.Items {
		for _, address := range machines.Items[i].Status.Addresses {
			if address.Type == clusterv1.MachineInternalIP {
				g.Expect(address.Address).To(ContainSubstring(":"))
			}
		}
	}
}

// checkUserData checks that every host booted the disk image of its template, and got as user data what assisted-service serves.
func checkUserData(t *testing.T, c installed) {
	g := NewWithT(t)
	hosts := &bmov1alpha1.BareMetalHostList{}
	g.Expect(c.List(t.Context(), hosts, client.InNamespace(c.request.Namespace))).To(Succeed())
	for i := range hosts.Items {
		g.Expect(hosts.Items[i].Status.Provisioning.Image.URL).To(HaveSuffix("coreos-openstack.qcow2"))
	}
	configs := &bootstrapv1.OpenshiftAssistedConfigList{}
	g.Expect(c.List(t.Context(), configs, client.InNamespace(c.request.Namespace))).To(Succeed())
	g.Expect(configs.Items).To(HaveLen(c.request.Machines()))
	for i := range configs.Items {
		secret := &corev1.Secret{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: c.request.Namespace, Name: configs.Items[i].Status.DataSecretName}, secret)).
			To(Succeed())
		g.Expect(string(secret.Data["format"])).To(Equal("ignition"))
		g.Expect(string(secret.Data["value"])).To(ContainSubstring("agent.service"))
	}
}

// checkRegistry checks that the release and the trust in its registry are the owner's.
func checkRegistry(t *testing.T, c installed) {
	g := NewWithT(t)
	imageSet := &hivev1.ClusterImageSet{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: c.agentClusterInstall(t).Spec.ImageSetRef.Name}, imageSet)).To(Succeed())
	g.Expect(imageSet.Spec.ReleaseImage).To(HavePrefix("registry.sandbox.example.com/"))
	mirrors := &hiveext.MirrorRegistryConfigMapReference{Name: c.request.Name + "-mirrors", Namespace: c.request.Namespace}
	g.Expect(c.agentClusterInstall(t).Spec.MirrorRegistryRef).To(Equal(mirrors))
	for _, infraEnv := range c.infraEnvs(t) {
		g.Expect(infraEnv.Spec.MirrorRegistryRef).NotTo(BeNil())
		g.Expect(infraEnv.Spec.MirrorRegistryRef.Name).To(Equal(mirrors.Name))
		g.Expect(infraEnv.Spec.AdditionalTrustBundle).To(ContainSubstring("BEGIN CERTIFICATE"))
	}
}
