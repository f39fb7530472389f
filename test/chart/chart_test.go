// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/release"
)

const (
	version = "v0.1.1"
	// image is what the images of the release begin with, before the name of the manager.
	image = "mirror.example.com:5000/capi/"
)

// suite is what all tests share: the release of this repository, and the chart that is made from it.
var suite struct {
	tools           *localcontrolplane.Tools
	helm, kustomize string
	released, chart string
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chart-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = prepare(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func prepare(ctx context.Context, dir string) (err error) {
	if suite.tools, err = localcontrolplane.NewTools(os.Stderr); err != nil {
		return err
	}
	if suite.helm, err = suite.tools.Path(ctx, "helm"); err != nil {
		return err
	}
	if suite.kustomize, err = suite.tools.Path(ctx, "kustomize"); err != nil {
		return err
	}
	suite.released = filepath.Join(dir, "release")
	if err := release.Build(ctx, suite.tools, version, suite.released, "-registry="+strings.TrimSuffix(image, "/")); err != nil {
		return err
	}
	suite.chart, err = Build(ctx, suite.tools, Source{version, suite.released, suite.tools.Root()}, dir)
	return err
}

// run runs a program and returns its standard output; its standard error is part of the error.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w: %s%s", strings.Join(args, " "), err, exit.Stderr, out)
	}
	return out, err
}

// render returns what Helm makes of the chart with values.
func render(t *testing.T, values string) ([]byte, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	NewWithT(t).Expect(os.WriteFile(file, []byte(values), 0o600)).To(Succeed())
	// The folder is named after the test; without quotes, Helm would take a comma in it as the end of the file's name.
	return run(t.Context(), suite.helm, "template", "providers", suite.chart, `--values="`+file+`"`)
}

// objects are manifests by kind, namespace and name.
type objects map[string]map[string]any

func read(t *testing.T, manifests []byte) objects {
	t.Helper()
	g := NewWithT(t)
	list, err := utilyaml.ToUnstructured(bytes.TrimSpace(manifests))
	g.Expect(err).NotTo(HaveOccurred())
	read := objects{}
	for _, object := range list {
		key := path.Join(object.GetKind(), object.GetNamespace(), object.GetName())
		g.Expect(read).NotTo(HaveKey(key))
		read[key] = object.Object
	}
	return read
}

// components are the objects of both components files, with the annotation by which Helm keeps the CRDs.
func components(t *testing.T) objects {
	t.Helper()
	g := NewWithT(t)
	var all []byte
	for _, file := range []string{"bootstrap-components.yaml", "control-plane-components.yaml"} {
		data, err := os.ReadFile(filepath.Join(suite.released, file))
		g.Expect(err).NotTo(HaveOccurred())
		all = append(append(all, "---\n"...), data...)
	}
	return keep(t, read(t, all))
}

func keep(t *testing.T, all objects) objects {
	t.Helper()
	for key, object := range all {
		if strings.HasPrefix(key, "CustomResourceDefinition/") {
			set(t, object, "keep", "metadata", "annotations", "helm.sh/resource-policy")
		}
	}
	return all
}

func set(t *testing.T, object map[string]any, value any, fields ...string) {
	t.Helper()
	NewWithT(t).Expect(unstructured.SetNestedField(object, value, fields...)).To(Succeed())
}

// expectEqual compares manifests object by object.
func expectEqual(t *testing.T, got, want objects) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chart has other objects (-want +got):\n%s", diff)
	}
}

// TestDefaults: without values, the chart is what the components files of the release are.
func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	rendered, err := render(t, "{}")
	g.Expect(err).NotTo(HaveOccurred())
	want := components(t)
	g.Expect(len(want)).To(BeNumerically(">", 30))
	expectEqual(t, read(t, rendered), want)
	_, err = run(t.Context(), suite.helm, "lint", "--strict", suite.chart)
	g.Expect(err).NotTo(HaveOccurred())
}

// TestReproducible: the same inputs give the same bytes.
func TestReproducible(t *testing.T) {
	g := NewWithT(t)
	again, err := Build(t.Context(), suite.tools, Source{version, suite.released, suite.tools.Root()}, t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = run(t.Context(), "diff", "-r", suite.chart, again)
	g.Expect(err).NotTo(HaveOccurred())
}

// TestFolders: the values that choose a variant give what its kustomize folders give.
func TestFolders(t *testing.T) {
	for name, tt := range map[string]struct{ values, kustomization string }{
		"one namespace":          {"watchNamespace: clusters", "resources: [%s/namespaced]"},
		"OpenShift's service CA": {"webhookCertificates: {issuer: service-ca}", "resources: [%s/openshift]"},
		"metrics":                {"metrics: {serviceMonitor: {enabled: true}}", "resources: [%s/default, %[1]s/monitoring]"},
		"traces": {"tracing: {endpoint: 'http://collector.observability.svc:4317'}",
			"resources: [%s/default]\ncomponents: [%[1]s/../components/tracing]"},
		"all of them": {
			"{watchNamespace: clusters, webhookCertificates: {issuer: service-ca}, metrics: {serviceMonitor: {enabled: true}}, " +
				"tracing: {endpoint: 'http://collector.observability.svc:4317'}}",
			"resources: [%s/namespaced, %[1]s/monitoring]\ncomponents: [%[1]s/service-ca, %[1]s/../components/tracing]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, tt.values)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			expectEqual(t, read(t, rendered), kustomized(t, tt.kustomization))
		})
	}
}

// TestContractServiceCA: the objects of the service CA's variant fit together, which only OpenShift would show otherwise.
func TestContractServiceCA(t *testing.T) {
	t.Run("CTL-51 the webhooks' certificate comes from OpenShift's service CA, for the Service, into the pod", func(t *testing.T) {
		g := NewWithT(t)
		rendered, err := render(t, "webhookCertificates: {issuer: service-ca}")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(rendered)).NotTo(ContainSubstring("cert-manager.io"))
		all := read(t, rendered)
		for _, key := range deployments {
			namespace := strings.Split(key, "/")[1]
			prefix := strings.TrimSuffix(namespace, "-system")
			volumes, _, err := unstructured.NestedSlice(all[key], "spec", "template", "spec", "volumes")
			g.Expect(err).NotTo(HaveOccurred())
			mounted, _, err := unstructured.NestedString(volumes[0].(map[string]any), "secret", "secretName")
			g.Expect(err).NotTo(HaveOccurred())
			service := unstructured.Unstructured{Object: all["Service/"+namespace+"/"+prefix+"-webhook-service"]}
			g.Expect(service.GetAnnotations()).To(HaveKeyWithValue("service.beta.openshift.io/serving-cert-secret-name", mounted))
		}
		configurations := 0
		for key, object := range all {
			if kind, _, _ := strings.Cut(key, "/"); strings.HasSuffix(kind, "WebhookConfiguration") {
				configurations++
				configuration := unstructured.Unstructured{Object: object}
				g.Expect(configuration.GetAnnotations()).To(HaveKeyWithValue("service.beta.openshift.io/inject-cabundle", "true"), key)
			}
		}
		g.Expect(configurations).To(BeNumerically(">=", 2))
	})
}

// kustomized returns both providers' objects of a kustomization, with the images of the release.
func kustomized(t *testing.T, kustomization string) objects {
	t.Helper()
	g := NewWithT(t)
	var all []byte
	for _, provider := range []string{"bootstrap", "controlplane"} {
		dir := t.TempDir()
		config, err := filepath.Rel(dir, filepath.Join(suite.tools.Root(), "config", provider))
		g.Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(dir, "kustomization.yaml")
		g.Expect(os.WriteFile(file, fmt.Appendf(nil, kustomization, config), 0o600)).To(Succeed())
		out, err := run(t.Context(), suite.kustomize, "build", dir)
		g.Expect(err).NotTo(HaveOccurred())
		out = bytes.ReplaceAll(out, []byte("ghcr.io/capi-openshift/"), []byte(image))
		all = append(append(all, "---\n"...), bytes.ReplaceAll(out, []byte("-openshift-assisted:dev"), []byte("-openshift-assisted:"+version))...)
	}
	return keep(t, read(t, all))
}
