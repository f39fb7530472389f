// SPDX-License-Identifier: Apache-2.0

package e2ecapi

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capi-openshift/agent-providers/test/clusterctl"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	localVersion = "v0.1.0"
	// speed makes an installation take some seconds of simulated time.
	speed = 3
)

// localCluster is a management cluster on this machine.
type localCluster struct {
	repository *clusterctl.Repository
	world      *sandbox.World
}

// startLocal starts a management cluster on this machine, in which clusterctl installs releases of this project and of Cluster API core,
// with simulators in the place of Metal3 and assisted-service.
func startLocal(ctx context.Context) *localCluster {
	GinkgoHelper()
	tools, err := localcontrolplane.NewTools(GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	repository, err := clusterctl.NewRepository(ctx, tools, GinkgoT().TempDir(), clusterctl.Release{Version: localVersion, Tools: tools})
	Expect(err).NotTo(HaveOccurred())
	return newLocal(ctx, repository, nil)
}

// startBeside starts another one of the same data centre: its hosts and installed clusters are those of the first. It ends with the spec.
func (l *localCluster) startBeside(ctx context.Context) *localCluster {
	GinkgoHelper()
	return newLocal(ctx, l.repository, l.world)
}

func newLocal(ctx context.Context, repository *clusterctl.Repository, beside *sandbox.World) *localCluster {
	GinkgoHelper()
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{
		Progress: GinkgoWriter, Speed: speed, Beside: beside,
		Install: func(ctx context.Context, cp *localcontrolplane.ControlPlane) error {
			return repository.Init(ctx, cp, localVersion)
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(world.Stop)
	return &localCluster{repository: repository, world: world}
}

// onlyLocal skips a spec that needs another management cluster beside that of the suite.
func onlyLocal() {
	if environment.local == nil {
		Skip("another management cluster is started on this machine only")
	}
}

func (l *localCluster) kubeconfig() string { return l.world.Management.AdminKubeconfig() }

// localValues are those of the variables that config/local.yaml names, but for OUT: the releases in a folder, and what the simulators know.
func localValues(releases, core, metal3 string) map[string]string {
	return map[string]string{
		"RELEASES": releases, "VERSION": localVersion, "CORE_VERSION": versionOf(core), "METAL3_VERSION": versionOf(metal3),
		"KUBERNETES_VERSION": sandbox.KubernetesVersion, "OPENSHIFT_VERSION": sandbox.OpenShiftVersion,
		"KUBERNETES_VERSION_UPGRADE_TO": sandbox.PatchRelease.KubeletVersion, "OPENSHIFT_VERSION_UPGRADE_TO": sandbox.PatchRelease.Version,
	}
}

// versionOf returns the version of name:version.
func versionOf(reference string) string {
	_, version, _ := strings.Cut(reference, ":")
	return version
}
