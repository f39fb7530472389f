// SPDX-License-Identifier: Apache-2.0

// Package e2ecapi runs Cluster API's own specs, of its end-to-end test framework, with this project's providers. It has a module of its
// own, so that nothing of the framework gets into that of the providers.
package e2ecapi

import (
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

var (
	// A flag called kubeconfig exists in every program with controller-runtime.
	managementFile = flag.String("management", "", "kubeconfig of the management cluster; by default one is started on this machine")
	configFile     = flag.String("config", "config/local.yaml", "configuration of Cluster API's test framework")
	artifacts      = flag.String("artifacts", "../../out/e2e-capi", "folder for the logs and objects of every spec")
	keepClusters   = flag.Bool("keep", false, "leave the clusters behind")
)

// environment is what the specs run in.
var environment struct {
	config     *clusterctl.E2EConfig
	clusterctl string
	management framework.ClusterProxy
	artifacts  string
	// local is nil on another management cluster than the one of this machine.
	local *localCluster
}

func TestClusterAPISpecs(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	RegisterFailHandler(Fail)
	RunSpecs(t, "Cluster API's specs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	// What is started here outlives the node that starts it.
	start(context.WithoutCancel(ctx))
})

func start(ctx context.Context) {
	GinkgoHelper()
	folder, err := filepath.Abs(*artifacts)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.RemoveAll(folder)).To(Succeed())
	Expect(os.MkdirAll(folder, 0o750)).To(Succeed())
	environment.artifacts = folder

	kubeconfig, values := *managementFile, map[string]string{"OUT": folder}
	if kubeconfig == "" {
		environment.local = startLocal(ctx)
		kubeconfig = environment.local.kubeconfig()
		repository := environment.local.repository
		maps.Copy(values, localValues(repository.Dir, repository.CoreVersion(), repository.Metal3Version()))
	}
	collectTemporaryFiles(GinkgoT())
	writeTemplates(folder)
	environment.config = loadConfig(ctx, *configFile, values)
	environment.clusterctl = clusterctl.CreateRepository(ctx, clusterctl.CreateRepositoryInput{
		E2EConfig: environment.config, RepositoryFolder: filepath.Join(folder, "repository"),
	})
	environment.management = framework.NewClusterProxy("management", kubeconfig, newScheme())
	DeferCleanup(environment.management.Dispose)
	if environment.local == nil {
		install(ctx)
	}
}

// collectTemporaryFiles has all temporary files made in a folder that is removed at the end. The framework leaves a kubeconfig for each
// look at a workload cluster.
func collectTemporaryFiles(t interface {
	TempDir() string
	Setenv(name, value string)
}) {
	t.Setenv("TMPDIR", t.TempDir())
}

// install installs with clusterctl what the configuration names, unless a provider is installed already, and waits until all of them run.
func install(ctx context.Context) {
	GinkgoHelper()
	config := environment.config
	clusterctl.InitManagementClusterAndWatchControllerLogs(ctx, clusterctl.InitManagementClusterAndWatchControllerLogsInput{
		ClusterProxy: environment.management, ClusterctlConfigPath: environment.clusterctl,
		BootstrapProviders: []string{provider}, ControlPlaneProviders: []string{provider},
		InfrastructureProviders: config.InfrastructureProviders(), IPAMProviders: config.IPAMProviders(),
		LogFolder: filepath.Join(environment.artifacts, "clusters", "management"), DisableMetricsCollection: true,
	}, config.GetIntervals("management", "wait-controllers")...)
}

func newScheme() *runtime.Scheme {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	framework.TryAddDefaultSchemes(scheme)
	Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
	Expect(bmov1alpha1.AddToScheme(scheme)).To(Succeed())
	return scheme
}
