// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	clusterctlclient "sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	"sigs.k8s.io/cluster-api/test/framework"

	"github.com/capi-openshift/agent-providers/test/clusterctl"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// nextVersion is that of this repository as it is, where localVersion is that of an earlier commit.
const nextVersion = "v0.1.1"

// In the place of ClusterctlUpgradeSpec: the management cluster is another one on this machine, not one of kind.
var _ = Describe("Upgrading the providers with clusterctl", Label("clusterctl-upgrade"), func() {
	ctx := context.Background()
	BeforeEach(onlyLocal)
	var earlier *earlierCluster
	s := newOwnSpec(ctx, "clusterctl-upgrade", func() framework.ClusterProxy {
		earlier = startEarlier(ctx)
		return earlier.proxy
	})
	It("Should replace no Machine of a cluster that an earlier release has installed", func() {
		s.createCluster(ctx, 1)
		before := s.servers(ctx)
		earlier.expectVersions(ctx, localVersion)
		earlier.upgrade(ctx)
		earlier.expectVersions(ctx, nextVersion)
		s.expectRunning(ctx)
		Expect(s.servers(ctx)).To(Equal(before), "no Machine was replaced, and no Node")
		s.expectGrowing(ctx, before)
	})
})

// earlierCluster is a management cluster on this machine whose providers are those of localcontrolplane.EarlierCommit, until they are
// upgraded to those of this repository as it is.
type earlierCluster struct {
	localCluster
	proxy framework.ClusterProxy
}

// startEarlier starts one; it ends with the spec.
func startEarlier(ctx context.Context) *earlierCluster {
	GinkgoHelper()
	By("Starting a management cluster with the providers of an earlier release")
	tools, err := localcontrolplane.NewTools(GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	earlier, err := tools.Earlier(ctx)
	Expect(err).NotTo(HaveOccurred())
	repository, err := clusterctl.NewRepository(ctx, tools, GinkgoT().TempDir(),
		clusterctl.Release{Version: localVersion, Tools: earlier}, clusterctl.Release{Version: nextVersion, Tools: tools})
	Expect(err).NotTo(HaveOccurred())
	folder, began := GinkgoT().TempDir(), sets.New[string]()
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{
		Progress: GinkgoWriter, Speed: speed,
		Install: func(ctx context.Context, cp *localcontrolplane.ControlPlane) error {
			return repository.Init(ctx, cp, localVersion)
		},
		// The program that begins is the earlier one, and the one in its place that of this repository.
		Adjust: func(_ *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
			if began.Has(spec.Name) {
				return
			}
			began.Insert(spec.Name)
			program := filepath.Join(folder, spec.Name)
			Expect(earlier.Build(ctx, spec.Package, program)).To(Succeed())
			spec.Binary = program
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(world.Stop)
	e := &earlierCluster{localCluster: localCluster{repository: repository, world: world}}
	e.proxy = framework.NewClusterProxy("earlier", e.kubeconfig(), newScheme())
	DeferCleanup(e.proxy.Dispose)
	return e
}

// upgrade does what clusterctl upgrade apply does. It does not wait for Deployments, whose pods are processes here: those end before it, as
// the pods do, and others start afterwards.
func (e *earlierCluster) upgrade(ctx context.Context) {
	GinkgoHelper()
	By("Upgrading the providers to " + nextVersion)
	Expect(e.world.Bootstrap.Stop()).To(Succeed())
	Expect(e.world.ControlPlane.Stop()).To(Succeed())
	GinkgoT().Setenv("CLUSTERCTL_REPOSITORY_PATH", e.repository.Dir) // Its configuration names it.
	client, err := clusterctlclient.New(ctx, e.repository.Config)
	Expect(err).NotTo(HaveOccurred())
	Expect(client.ApplyUpgrade(ctx, clusterctlclient.ApplyUpgradeOptions{
		Kubeconfig:            clusterctlclient.Kubeconfig{Path: e.kubeconfig()},
		BootstrapProviders:    []string{provider + ":" + nextVersion},
		ControlPlaneProviders: []string{provider + ":" + nextVersion},
	})).To(Succeed())
	Expect(e.world.StartManagers(ctx)).To(Succeed())
}

// expectVersions expects that clusterctl's inventory has both of our providers in a version.
func (e *earlierCluster) expectVersions(ctx context.Context, version string) {
	GinkgoHelper()
	inventory := &clusterctlv1.ProviderList{}
	Expect(e.proxy.GetClient().List(ctx, inventory)).To(Succeed())
	var versions []string
	for i := range inventory.Items {
		if inventory.Items[i].ProviderName == provider {
			versions = append(versions, inventory.Items[i].Version)
		}
	}
	Expect(versions).To(Equal([]string{version, version}))
}
