// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/release"
)

// refusedControlPlane has a name that only the webhook refuses.
const refusedControlPlane = `apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlane
metadata: {name: demo.example.com, namespace: default}
spec:
  replicas: 3
  version: v1.33.4
  distributionVersion: 4.20.0
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: demo}
  install:
    baseDomain: example.com
    apiVIPs: [192.0.2.5]
    ingressVIPs: [192.0.2.6]
    pullSecretRef: {name: pull-secret}
`

// newCluster starts an empty management cluster in which clusterctl need not install cert-manager.
func newCluster(t *testing.T) (*localcontrolplane.ControlPlane, client.Client) {
	t.Helper()
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	g.Expect(cp.InstallCRDs(t.Context(), localcontrolplane.CRDsCertManager)).To(Succeed())
	return cp, newClient(t, cp)
}

// TestContractBootstrapAlone installs the bootstrap provider into an empty cluster, and then the rest the way sites with rules of their own
// do it: another namespace, a mirrored image.
func TestContractBootstrapAlone(t *testing.T) {
	repository, _ := newRepository(t)
	cp, cl := newCluster(t)
	run := func(t *testing.T, args ...string) {
		t.Helper()
		_, err := repository.Clusterctl(t.Context(), cp, nil, args...)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	t.Run("CTL-20 the bootstrap provider is healthy alone", func(t *testing.T) {
		g := NewWithT(t)
		run(t, "init", "--core", repository.CoreVersion(), "--bootstrap", Provider+":"+firstVersion, "--control-plane", "-")
		_, err := cp.RunInstalledCore(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		bootstrap, err := cp.RunInstalled(t.Context(), localcontrolplane.BootstrapManager())
		g.Expect(err).NotTo(HaveOccurred())
		expectWaiting(t, bootstrap)
	})
	t.Run("CTL-17 images come from where clusterctl's configuration says", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(repository.configure(
			"images:\n  all:\n    repository: mirror.example.com/capi\n  " + controlPlaneLabel + ":\n    tag: v0.1.0-patched\n")).To(Succeed())
		run(t, "init", "--control-plane", Provider+":"+firstVersion, "--target-namespace", "elsewhere")
		deployment := deploymentOf(t, cl, controlPlaneLabel)
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).
			To(Equal("mirror.example.com/capi/controlplane-openshift-assisted:v0.1.0-patched"))
	})
	t.Run("CTL-13 CTL-50 in another namespace the manager runs, and its webhooks and their certificate follow it", func(t *testing.T) {
		g := NewWithT(t)
		expectCertificate(t, cl, controlPlaneLabel, "elsewhere")
		_, err := cp.RunInstalled(t.Context(), localcontrolplane.ControlPlaneManager())
		g.Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(t.TempDir(), "refused.yaml")
		g.Expect(os.WriteFile(file, []byte(refusedControlPlane), 0o600)).To(Succeed())
		_, err = cp.Run(t.Context(), "kubectl", nil, "apply", "--dry-run=server", "--filename="+file)
		g.Expect(err).To(MatchError(ContainSubstring("become hostnames")), "the webhook is called, and refuses")
	})
	t.Run("CTL-31 CTL-33 every template renders with its documented variables to what the API server takes", func(t *testing.T) {
		g := NewWithT(t)
		run(t, "init", "--infrastructure", repository.Metal3Version())
		files := t.TempDir()
		g.Expect(release.Build(t.Context(), cp.Tools(), firstVersion, files)).To(Succeed())
		checkTemplates(t, cp, repository, files)
	})
}

// TestContractControlPlaneAlone installs the control plane provider into an empty cluster.
func TestContractControlPlaneAlone(t *testing.T) {
	repository, _ := newRepository(t)
	cp, _ := newCluster(t)
	t.Run("CTL-20 the control plane provider is healthy alone", func(t *testing.T) {
		g := NewWithT(t)
		_, err := repository.Clusterctl(t.Context(), cp, nil,
			"init", "--core", repository.CoreVersion(), "--control-plane", Provider+":"+firstVersion, "--bootstrap", "-")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = cp.RunInstalledCore(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		controlPlane, err := cp.RunInstalled(t.Context(), localcontrolplane.ControlPlaneManager())
		g.Expect(err).NotTo(HaveOccurred())
		expectWaiting(t, controlPlane)
	})
	generate := func(t *testing.T, environment ...string) string {
		t.Helper()
		out, err := repository.Clusterctl(t.Context(), cp, environment, "generate", "provider", "--bootstrap", Provider+":"+firstVersion)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return out
	}
	t.Run("CTL-16 without any variable the components are complete", func(t *testing.T) {
		NewWithT(t).Expect(generate(t)).NotTo(ContainSubstring("${"))
	})
	t.Run("CTL-19 a file in the overrides folder takes the place of the release's", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(bootstrapLabel, firstVersion, "bootstrap-components.yaml")
		components, err := os.ReadFile(filepath.Join(repository.Dir, path))
		g.Expect(err).NotTo(HaveOccurred())
		overrides := t.TempDir()
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(overrides, path)), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(overrides, path), []byte(strings.ReplaceAll(string(components), "--v=2", "--v=5")), 0o600)).
			To(Succeed())
		g.Expect(generate(t)).To(ContainSubstring("--v=2"))
		// The setting overridesFolder of clusterctl's configuration, as an environment variable.
		g.Expect(generate(t, "OVERRIDESFOLDER="+overrides)).To(And(ContainSubstring("--v=5"), Not(ContainSubstring("--v=2"))))
	})
}

// deploymentOf returns a provider's only Deployment.
func deploymentOf(t *testing.T, cl client.Client, label string) *appsv1.Deployment {
	t.Helper()
	g := NewWithT(t)
	list := &appsv1.DeploymentList{}
	g.Expect(cl.List(t.Context(), list, client.MatchingLabels{clusterv1.ProviderNameLabel: label})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

// expectCertificate checks that cert-manager would issue the certificate that the pod mounts, for the Service that the webhooks call.
func expectCertificate(t *testing.T, cl client.Client, label, namespace string) {
	t.Helper()
	g := NewWithT(t)
	mine := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{clusterv1.ProviderNameLabel: label}}
	certificates := &unstructured.UnstructuredList{}
	certificates.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateList"})
	g.Expect(cl.List(t.Context(), certificates, mine...)).To(Succeed())
	g.Expect(certificates.Items).To(HaveLen(1))
	services := &corev1.ServiceList{}
	g.Expect(cl.List(t.Context(), services, mine...)).To(Succeed())
	g.Expect(services.Items).To(HaveLen(1))
	host := services.Items[0].Name + "." + namespace + ".svc"
	deployment := deploymentOf(t, cl, label)
	g.Expect(deployment.Namespace).To(Equal(namespace))
	g.Expect(certificates.Items[0].Object["spec"]).To(And(
		HaveKeyWithValue("dnsNames", ConsistOf(host, host+".cluster.local")),
		HaveKeyWithValue("secretName", deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName),
	))
	webhooks := &unstructured.UnstructuredList{}
	webhooks.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfigurationList",
	})
	g.Expect(cl.List(t.Context(), webhooks, client.MatchingLabels{clusterv1.ProviderNameLabel: label})).To(Succeed())
	g.Expect(webhooks.Items).To(HaveLen(1))
	g.Expect(webhooks.Items[0].GetAnnotations()).
		To(HaveKeyWithValue("cert-manager.io/inject-ca-from", namespace+"/"+certificates.Items[0].GetName()))
	called, err := webhooks.Items[0].MarshalJSON()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(called)).To(ContainSubstring(`"namespace":"` + namespace + `"`))
}
