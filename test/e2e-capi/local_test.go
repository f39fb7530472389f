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

// startLocal starts a management cluster on this machine, in which clusterctl installs releases of this project and of Cluster API core,
// with simulators in the place of Metal3 and assisted-service. It returns its kubeconfig, and adds to values what config/local.yaml names.
func startLocal(ctx context.Context, values map[string]string) string {
	GinkgoHelper()
	tools, err := localcontrolplane.NewTools(GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	repository, err := clusterctl.NewRepository(ctx, tools, GinkgoT().TempDir(), clusterctl.Release{Version: localVersion, Tools: tools})
	Expect(err).NotTo(HaveOccurred())
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{
		Progress: GinkgoWriter, Speed: speed,
		Install: func(ctx context.Context, cp *localcontrolplane.ControlPlane) error {
			return repository.Init(ctx, cp, localVersion)
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(world.Stop)
	values["RELEASES"], values["VERSION"] = repository.Dir, localVersion
	values["CORE_VERSION"], values["METAL3_VERSION"] = versionOf(repository.CoreVersion()), versionOf(repository.Metal3Version())
	values["KUBERNETES_VERSION"], values["OPENSHIFT_VERSION"] = sandbox.KubernetesVersion, sandbox.OpenShiftVersion
	return world.Management.AdminKubeconfig()
}

// versionOf returns the version of name:version.
func versionOf(reference string) string {
	_, version, _ := strings.Cut(reference, ":")
	return version
}
