// SPDX-License-Identifier: Apache-2.0

// Package operator installs this project's releases with the Cluster API operator on a local management cluster, without a network.
package operator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/release"
)

const (
	firstVersion, nextVersion, lastVersion = "v0.1.0", "v0.1.1", "v0.1.2"
	coreNamespace                          = "capi-system"

	timeout = 4 * time.Minute
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(m.Run())
}

// provider is one of the two that the operator installs.
type provider struct {
	kind       string // of the operator's resource
	label      string // of the release's objects
	components string // file of the release
	configMap  string // file of the release
	configs    string // the operator's type in the ConfigMap's labels
	namespace  string
	// concurrency is a kind of the provider, as an argument is called after it.
	concurrency string
	manager     localcontrolplane.ManagerSpec
}

var providers = []provider{
	{
		kind: "BootstrapProvider", label: "bootstrap-openshift-assisted", configs: "bootstrap", namespace: "openshift-assisted-bootstrap-system",
		components: "bootstrap-components.yaml", configMap: "bootstrap-configmap.yaml",
		concurrency: "openshiftassistedconfig", manager: localcontrolplane.BootstrapManager(),
	},
	{
		kind: "ControlPlaneProvider", label: "control-plane-openshift-assisted", configs: "control-plane",
		namespace: "openshift-assisted-control-plane-system", components: "control-plane-components.yaml",
		configMap: "control-plane-configmap.yaml", concurrency: "openshiftassistedcontrolplane",
		manager: localcontrolplane.ControlPlaneManager(),
	},
}

// selector makes the operator install a version from the ConfigMap of its release.
func (p provider) selector(version string) string {
	return fmt.Sprintf(`selector:
      matchLabels:
        provider.cluster.x-k8s.io/type: %s
        provider.cluster.x-k8s.io/name: openshift-assisted
        provider.cluster.x-k8s.io/version: %s`, p.configs, version)
}

// url makes the operator download a version.
func (p provider) url(version string) string {
	return fmt.Sprintf("url: https://github.com/capi-openshift/agent-providers/releases/%s/%s", version, p.components)
}

// manifest is the operator's resource as a user writes it, with all settings of the manager that become arguments; source is a selector or
// a url. The addresses are those of a pod: localcontrolplane.RunInstalled replaces them by free ports of loopback.
func (p provider) manifest(version, source string) string {
	return fmt.Sprintf(`apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: %s
metadata: {name: openshift-assisted, namespace: %s}
spec:
  version: %s
  fetchConfig:
    %s
  manager:
    verbosity: 4
    maxConcurrentReconciles: 7
    syncPeriod: 5m
    profilerAddress: localhost:6060
    featureGates: {AllAlpha: false, AllBeta: true}
    controller: {groupKindConcurrency: {%s: 3}}
    health: {healthProbeBindAddress: ":9441"}
    metrics: {diagnosticsAddress: ":8444", insecureDiagnostics: true}
    webhook: {port: 9444, host: 0.0.0.0, certDir: /tmp/k8s-webhook-server/serving-certs}
    leaderElection:
      leaderElect: true
      leaseDuration: 30s
      renewDeadline: 25s
      retryPeriod: 1s
      resourceLock: leases
      resourceName: ""
      resourceNamespace: ""
`, p.kind, p.namespace, version, source, p.concurrency)
}

// story is the life of a management cluster with the operator. The operator does all the installing; what it installs cannot run without
// nodes, so localcontrolplane.RunInstalled runs the managers with the arguments, roles and webhooks that the operator has put into the
// cluster, and makes the Deployments Available, which the operator waits for. The first version is that of localcontrolplane.EarlierCommit,
// the others are this repository as it is.
type story struct {
	cp     *localcontrolplane.ControlPlane
	client client.Client
	// earlier builds the first version.
	earlier *localcontrolplane.Tools
	// releases is the folder of what the operator takes for GitHub, with a folder for each version; programs is that of the managers.
	releases, programs string
	// managers are those that run, by the kind of their provider.
	managers map[string]*localcontrolplane.Manager
}

// TestContractOperator follows both providers from the first ConfigMap to an upgrade; its parts build on each other.
func TestContractOperator(t *testing.T) {
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(cp.Stop()).To(Succeed()) }()
	g.Expect(cp.InstallCRDs(t.Context(), localcontrolplane.CRDsCertManager, localcontrolplane.CRDsCore)).To(Succeed())
	earlier, err := cp.Tools().Earlier(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	s := &story{
		cp: cp, earlier: earlier, releases: t.TempDir(), programs: t.TempDir(), managers: map[string]*localcontrolplane.Manager{},
	}
	_, err = cp.StartOperator(t.Context(), startGitHub(t, s.releases)...)
	g.Expect(err).NotTo(HaveOccurred())
	s.client, err = client.New(cp.Admin(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	parts := []struct {
		name string
		tell func(*testing.T)
	}{
		{
			"OP-1 a provider that does not say where its release is cannot be installed, because the operator does not know its name",
			s.needsFetchConfig,
		},
		{"OP-6 providers wait for Cluster API core", s.waitForCore},
		{"OP-1 OP-2 OP-5 E2E-30 both providers are installed from the ConfigMaps of a release", s.install},
		{"OP-4 the managers take all arguments that the operator has written into their Deployments", s.run},
		{"OP-2 OP-6 the ConfigMap of the next release is an upgrade", s.upgrade},
		{"OP-2 OP-6 the address of the release after that is an upgrade, which the operator downloads", s.download},
		{"OP-6 there is no way back to an older series", s.downgrade},
	}
	for _, part := range parts {
		if !t.Run(part.name, part.tell) {
			return
		}
	}
}

// apply applies a file of manifests in a namespace, as a user does.
func (s *story) apply(t *testing.T, namespace, file string) {
	t.Helper()
	_, err := s.cp.Run(t.Context(), "kubectl", nil, "apply", "--server-side", "--namespace="+namespace, "--filename="+file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func (s *story) applyManifest(t *testing.T, namespace, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	NewWithT(t).Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	s.apply(t, namespace, file)
}

// get returns a resource of the operator.
func (s *story) get(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("operator.cluster.x-k8s.io/v1alpha2")
	object.SetKind(kind)
	return object, s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
}

// condition returns status and reason of a condition of a resource of the operator, as "True/Reason".
func (s *story) condition(ctx context.Context, kind, namespace, name, conditionType string) (string, error) {
	object, err := s.get(ctx, kind, namespace, name)
	if err != nil {
		return "", err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return "", err
	}
	for _, entry := range conditions {
		if condition := entry.(map[string]any); condition["type"] == conditionType {
			return fmt.Sprintf("%s/%s", condition["status"], condition["reason"]), nil
		}
	}
	return "", nil
}

// expect waits for a condition of one of our providers.
func (s *story) expect(t *testing.T, p provider, conditionType, want string) {
	t.Helper()
	NewWithT(t).Eventually(s.condition).WithArguments(t.Context(), p.kind, p.namespace, "openshift-assisted", conditionType).
		WithTimeout(timeout).Should(HavePrefix(want), p.kind)
}

func (s *story) needsFetchConfig(t *testing.T) {
	g := NewWithT(t)
	for _, p := range providers {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
		g.Expect(s.client.Create(t.Context(), namespace)).To(Succeed())
		s.applyManifest(t, p.namespace, fmt.Sprintf(
			"{apiVersion: operator.cluster.x-k8s.io/v1alpha2, kind: %s, metadata: {name: openshift-assisted}, spec: {version: v0.1.0}}", p.kind))
		s.expect(t, p, "PreflightCheckPassed", "False/FetchConfigValidationError")
	}
}

func (s *story) waitForCore(t *testing.T) {
	g := NewWithT(t)
	for _, p := range providers {
		s.applyManifest(t, p.namespace, p.manifest(firstVersion, p.selector(firstVersion)))
		s.expect(t, p, "PreflightCheckPassed", "False/WaitingForCoreProviderReady")
	}
	s.installCore(t)
	_, err := s.cp.RunInstalledCore(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(s.condition).WithArguments(t.Context(), "CoreProvider", coreNamespace, "cluster-api", "Ready").
		WithTimeout(timeout).Should(HavePrefix("True/"))
}

// installCore gives the operator Cluster API core's release without its CRDs, which are installed already: with them it is too large for a
// ConfigMap that is not compressed.
func (s *story) installCore(t *testing.T) {
	g := NewWithT(t)
	core, err := s.cp.Tools().CoreRelease(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := utilyaml.ToUnstructured(core.Components)
	g.Expect(err).NotTo(HaveOccurred())
	var kept []unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			kept = append(kept, object)
		}
	}
	components, err := utilyaml.FromUnstructured(kept)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: coreNamespace}})).To(Succeed())
	g.Expect(s.client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: coreNamespace, Name: core.Version, Labels: map[string]string{"release": "core"}},
		Data:       map[string]string{"components": string(components), "metadata": string(core.Metadata)},
	})).To(Succeed())
	s.applyManifest(t, coreNamespace, fmt.Sprintf(`{apiVersion: operator.cluster.x-k8s.io/v1alpha2, kind: CoreProvider,
  metadata: {name: cluster-api}, spec: {version: %s, fetchConfig: {selector: {matchLabels: {release: core}}}}}`, core.Version))
	g.Eventually(s.condition).WithArguments(t.Context(), "CoreProvider", coreNamespace, "cluster-api", "ProviderInstalled").
		WithTimeout(timeout).Should(HavePrefix("True/"))
}

// install gives the operator the ConfigMaps, and compares the release's files with the cluster.
func (s *story) install(t *testing.T) {
	g := NewWithT(t)
	files := t.TempDir()
	g.Expect(release.Build(t.Context(), s.earlier, firstVersion, files)).To(Succeed())
	for _, p := range providers {
		s.apply(t, p.namespace, filepath.Join(files, p.configMap))
		s.expect(t, p, "ProviderInstalled", "True/")
		s.expectObjects(t, p, filepath.Join(files, p.components))
		s.expectInstalled(t, p, firstVersion)
	}
}

// expectObjects checks that every object of a release is in the cluster, and that the CRDs are those of this release and no other.
func (s *story) expectObjects(t *testing.T, p provider, components string) {
	t.Helper()
	g := NewWithT(t)
	// The Namespace is the user's own: the operator leaves out the release's.
	g.Expect(release.CheckInstalled(t.Context(), s.client, components, p.label, "Namespace")).To(Succeed())
	content, err := os.ReadFile(components)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := utilyaml.ToUnstructured(content)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range objects {
		crd := &objects[i]
		if crd.GetKind() != "CustomResourceDefinition" {
			continue
		}
		released := versionsOf(t, crd)
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(Succeed())
		g.Expect(cmp.Diff(released, versionsOf(t, crd))).To(BeEmpty(), "%s is not that of %s", crd.GetName(), components)
	}
}

// versionsOf returns the versions of a CRD with their schemas.
func versionsOf(t *testing.T, object *unstructured.Unstructured) []apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd)).To(Succeed())
	return crd.Spec.Versions
}

// expectInstalled checks the version that the operator reports and the image that it has installed.
func (s *story) expectInstalled(t *testing.T, p provider, version string) {
	t.Helper()
	g := NewWithT(t)
	installed := func(ctx context.Context) (string, error) {
		object, err := s.get(ctx, p.kind, p.namespace, "openshift-assisted")
		if err != nil {
			return "", err
		}
		installed, _, err := unstructured.NestedString(object.Object, "status", "installedVersion")
		return installed, err
	}
	g.Eventually(installed).WithArguments(t.Context()).WithTimeout(timeout).Should(Equal(version), p.kind)
	g.Expect(s.deployment(t, p).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix("-openshift-assisted:" + version))
}

func (s *story) deployment(t *testing.T, p provider) *appsv1.Deployment {
	t.Helper()
	g := NewWithT(t)
	list := &appsv1.DeploymentList{}
	g.Expect(s.client.List(t.Context(), list, client.InNamespace(p.namespace))).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

// run starts the managers with what the operator has made of their arguments.
func (s *story) run(t *testing.T) {
	g := NewWithT(t)
	for _, p := range providers {
		g.Expect(s.deployment(t, p).Spec.Template.Spec.Containers[0].Args).To(ConsistOf(
			"--v=4", "--max-concurrent-reconciles=7", "--sync-period=300s", "--profiler-address=localhost:6060",
			"--feature-gates=AllAlpha=false,AllBeta=true", "--"+p.concurrency+"-concurrency=3", "--health-addr=:9441",
			"--diagnostics-address=:8444", "--insecure-diagnostics=true", "--webhook-port=9444", "--webhook-host=0.0.0.0",
			"--webhook-cert-dir=/tmp/k8s-webhook-server/serving-certs", "--leader-elect=true", "--leader-elect-lease-duration=30s",
			"--leader-elect-renew-deadline=25s", "--leader-elect-retry-period=1s",
		))
		s.start(t, p, s.earlier, firstVersion)
	}
}

// start builds the program of a version and runs it as the operator has installed it.
func (s *story) start(t *testing.T, p provider, tools *localcontrolplane.Tools, version string) {
	t.Helper()
	g := NewWithT(t)
	spec := p.manager
	spec.Binary = filepath.Join(s.programs, version, spec.Name)
	g.Expect(tools.Build(t.Context(), spec.Package, spec.Binary)).To(Succeed())
	// Both profilers have one address here, which in a cluster is one in each pod.
	spec.Args = append(slices.Clone(spec.Args), "--profiler-address=")
	var err error
	s.managers[p.kind], err = s.cp.RunInstalled(t.Context(), spec)
	g.Expect(err).NotTo(HaveOccurred())
	s.expect(t, p, "Ready", "True/")
}

// upgrade goes from the earlier version to this one, and runs what the operator has installed then.
func (s *story) upgrade(t *testing.T) {
	g := NewWithT(t)
	files := t.TempDir()
	g.Expect(release.Build(t.Context(), s.cp.Tools(), nextVersion, files)).To(Succeed())
	for _, p := range providers {
		// The pod ends when the operator replaces the Deployment, and another one starts with the new one.
		former := s.managers[p.kind]
		g.Expect(former.Stop()).To(Succeed())
		g.Expect(former.DropLease(t.Context(), s.client)).To(Succeed())
		s.apply(t, p.namespace, filepath.Join(files, p.configMap))
		s.applyManifest(t, p.namespace, p.manifest(nextVersion, p.selector(nextVersion)))
		s.expectInstalled(t, p, nextVersion)
		s.expectObjects(t, p, filepath.Join(files, p.components))
		s.start(t, p, s.cp.Tools(), nextVersion)
	}
}

// download has the operator fetch a release by its address, as docs/guides/install.md does with a network.
func (s *story) download(t *testing.T) {
	g := NewWithT(t)
	g.Expect(release.Build(t.Context(), s.cp.Tools(), lastVersion, filepath.Join(s.releases, lastVersion))).To(Succeed())
	for _, p := range providers {
		s.applyManifest(t, p.namespace, p.manifest(lastVersion, p.url(lastVersion)))
		s.expectInstalled(t, p, lastVersion)
	}
}

func (s *story) downgrade(t *testing.T) {
	for _, p := range providers {
		s.applyManifest(t, p.namespace, p.manifest("v0.0.9", p.url("v0.0.9")))
		s.expect(t, p, "PreflightCheckPassed", "False/UnsupportedProviderDowngradeReason")
		s.expectInstalled(t, p, lastVersion)
	}
}
