// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/release"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	earlierVersion = "v0.1.0"

	// releaseName is how Helm calls what it has installed, in namespace default.
	releaseName = "providers"

	timeout = 2 * time.Minute
)

// managers are both, with the file of a release that each is in.
var managers = map[string]localcontrolplane.ManagerSpec{
	"bootstrap-components.yaml":     localcontrolplane.BootstrapManager(),
	"control-plane-components.yaml": localcontrolplane.ControlPlaneManager(),
}

// story is the life of the chart in a management cluster. Helm does all the installing; localcontrolplane.RunInstalled runs the managers
// with the arguments, roles and webhooks that Helm has put into the cluster.
type story struct {
	cp      *localcontrolplane.ControlPlane
	client  client.Client
	running []*localcontrolplane.Manager
	// before is what the cluster had before the chart.
	before *sandbox.Snapshot
	// webhooks are the configurations as Helm has made them: while a manager runs, they lead to its process.
	webhooks []*unstructured.Unstructured
}

// TestContractChart installs the chart of an earlier version, upgrades it to this one and uninstalls it; its parts build on each other.
func TestContractChart(t *testing.T) {
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(cp.Stop()).To(Succeed()) }()
	g.Expect(cp.InstallCRDs(t.Context(), localcontrolplane.CRDsCertManager, localcontrolplane.CRDsCore)).To(Succeed())
	s := &story{cp: cp}
	s.client, err = client.New(cp.Admin(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	s.before, err = sandbox.TakeSnapshot(t.Context(), cp.Admin())
	g.Expect(err).NotTo(HaveOccurred())
	for _, part := range []struct {
		name string
		tell func(*testing.T)
	}{
		{"Helm installs an earlier version, and its managers answer", s.install},
		{"Helm upgrades it to this version, whose managers answer", s.upgrade},
		{"Helm uninstalls it, but for the definitions and their objects", s.uninstall},
	} {
		if !t.Run(part.name, part.tell) {
			return
		}
	}
}

func (s *story) helm(t *testing.T, args ...string) {
	t.Helper()
	_, err := s.cp.Run(t.Context(), "helm", nil, append(args, "--namespace=default")...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func (s *story) install(t *testing.T) {
	g := NewWithT(t)
	earlier, err := s.cp.Tools().Earlier(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	released := filepath.Join(dir, "release")
	g.Expect(release.Build(t.Context(), earlier, earlierVersion, released)).To(Succeed())
	folder, err := Build(t.Context(), s.cp.Tools(), Source{earlierVersion, released, overlaid(t, earlier.Root())}, dir)
	g.Expect(err).NotTo(HaveOccurred())
	s.helm(t, "install", releaseName, folder)
	s.expectInstalled(t, released, earlierVersion)
	s.run(t, earlier, dir)
	g.Expect(s.answers(t.Context())).To(Succeed())
	for _, object := range templates(t) {
		g.Expect(s.client.Create(t.Context(), object)).To(Succeed())
	}
}

// overlaid returns a folder with the config/ of an earlier version and the folders of this one that it lacks, without which there is no
// chart. Nothing of them is installed by default.
func overlaid(t *testing.T, root string) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(root, "config")))).To(Succeed())
	for _, folder := range []string{
		"components/monitoring", "components/tracing", "bootstrap/monitoring", "bootstrap/service-ca", "controlplane/monitoring",
		"controlplane/service-ca",
	} {
		added := filepath.Join(dir, "config", folder)
		_, err := os.Stat(added)
		g.Expect(err).To(MatchError(fs.ErrNotExist), "the earlier version has it: take it out of this list")
		g.Expect(os.CopyFS(added, os.DirFS(filepath.Join(suite.tools.Root(), "config", folder)))).To(Succeed())
	}
	return dir
}

func (s *story) upgrade(t *testing.T) {
	g := NewWithT(t)
	s.stop(t)
	g.Expect(s.answers(t.Context())).To(MatchError(ContainSubstring("failed calling webhook")), "it is the managers that answer")
	s.helm(t, "upgrade", releaseName, suite.chart)
	s.expectInstalled(t, suite.released, version)
	s.run(t, s.cp.Tools(), t.TempDir())
	g.Expect(s.answers(t.Context())).To(Succeed())
	s.expectTemplates(t)
}

func (s *story) uninstall(t *testing.T) {
	g := NewWithT(t)
	s.stop(t)
	s.helm(t, "uninstall", releaseName)
	g.Eventually(s.left).WithArguments(t.Context()).WithTimeout(timeout).Should(BeEmpty())
	s.expectTemplates(t)
}

// left lists what the chart has left behind beside the definitions of our kinds, which the API server serves, and the objects of the test.
func (s *story) left(ctx context.Context) ([]string, error) {
	now, err := sandbox.TakeSnapshot(ctx, s.cp.Admin())
	if err != nil {
		return nil, err
	}
	err = s.before.Compare(now)
	if err == nil {
		return nil, errors.New("the definitions are gone")
	}
	return slices.DeleteFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "left behind: ") && slices.ContainsFunc(
			[]string{"customresourcedefinitions", "apiservices", "openshiftassistedconfigtemplates", "openshiftassistedcontrolplanetemplates"},
			func(resource string) bool { return strings.Contains(line, resource) },
		)
	}), nil
}

// expectInstalled checks that everything of a release's components files is in the cluster, and the version of the managers.
func (s *story) expectInstalled(t *testing.T, released, version string) {
	t.Helper()
	g := NewWithT(t)
	for file := range managers {
		data, err := os.ReadFile(filepath.Join(released, file))
		g.Expect(err).NotTo(HaveOccurred())
		for key, manifest := range read(t, data) {
			object := &unstructured.Unstructured{Object: manifest}
			g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
			g.Expect(object.GetLabels()).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "Helm"), key)
		}
	}
	for _, key := range deployments {
		parts := strings.Split(key, "/")
		deployment := &appsv1.Deployment{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: parts[1], Name: parts[2]}, deployment)).To(Succeed())
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix("-openshift-assisted:" + version))
	}
}

// run runs both managers of a version as they are installed.
func (s *story) run(t *testing.T, tools *localcontrolplane.Tools, programs string) {
	t.Helper()
	g := NewWithT(t)
	s.webhooks = nil
	for _, kind := range []string{"MutatingWebhookConfigurationList", "ValidatingWebhookConfigurationList"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("admissionregistration.k8s.io/v1")
		list.SetKind(kind)
		g.Expect(s.client.List(t.Context(), list, client.HasLabels{"cluster.x-k8s.io/provider"})).To(Succeed())
		for i := range list.Items {
			s.webhooks = append(s.webhooks, &list.Items[i])
		}
	}
	g.Expect(s.webhooks).NotTo(BeEmpty())
	for _, spec := range managers {
		spec.Binary = filepath.Join(programs, spec.Name)
		g.Expect(tools.Build(t.Context(), spec.Package, spec.Binary)).To(Succeed())
		manager, err := s.cp.RunInstalled(t.Context(), spec)
		g.Expect(err).NotTo(HaveOccurred())
		s.running = append(s.running, manager)
	}
}

// stop ends the managers, and gives the webhooks their Services back, which Helm finds in every real cluster.
func (s *story) stop(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	for _, manager := range s.running {
		g.Expect(manager.Stop()).To(Succeed())
		g.Expect(manager.DropLease(t.Context(), s.client)).To(Succeed())
	}
	s.running = nil
	for _, configuration := range s.webhooks {
		live := configuration.DeepCopy()
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(live), live)).To(Succeed())
		configuration.SetResourceVersion(live.GetResourceVersion())
		configuration.SetManagedFields(nil)
		g.Expect(s.client.Update(t.Context(), configuration)).To(Succeed())
	}
}

// answers asks the webhooks of both managers about objects that nobody stores.
func (s *story) answers(ctx context.Context) error {
	for _, manifest := range manifests {
		object, err := decode(manifest)
		if err != nil {
			return err
		}
		object.SetName("question")
		if err := s.client.Create(ctx, object, client.DryRunAll); err != nil {
			return err
		}
	}
	return nil
}

// manifests are objects that a webhook of each manager looks at.
var manifests = []string{`
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfigTemplate
metadata: {name: workers, namespace: default}
spec: {template: {spec: {}}}
`, `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlaneTemplate
metadata: {name: masters, namespace: default}
spec: {template: {spec: {distributionVersion: 4.20.4, openshiftAssistedConfigSpec: {}, install: {baseDomain: example.com,
  apiVIPs: [192.0.2.10], ingressVIPs: [192.0.2.11], pullSecretRef: {name: pull-secret}}}}}
`}

func decode(manifest string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	return object, yaml.Unmarshal([]byte(manifest), &object.Object)
}

func templates(t *testing.T) []client.Object {
	t.Helper()
	var objects []client.Object
	for _, manifest := range manifests {
		object, err := decode(manifest)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		objects = append(objects, object)
	}
	return objects
}

func (s *story) expectTemplates(t *testing.T) {
	t.Helper()
	for _, object := range templates(t) {
		NewWithT(t).Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	}
}
