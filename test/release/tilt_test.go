// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	versionutil "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// tiltProvider is an entry of tilt-provider.yaml, with those fields of Cluster API's that are used here.
type tiltProvider struct {
	Name   string `json:"name"`
	Config struct {
		Context         string   `json:"context"`
		Image           string   `json:"image"`
		Label           string   `json:"label"`
		Version         string   `json:"version"`
		GoMain          string   `json:"go_main"`
		KustomizeFolder string   `json:"kustomize_folder"`
		LiveReloadDeps  []string `json:"live_reload_deps"`
	} `json:"config"`
}

// TestTiltProvider checks that Cluster API's Tiltfile can build, install and rebuild both providers: only those who run Tilt would see that
// a path or an image is not there.
func TestTiltProvider(t *testing.T) {
	root, err := localcontrolplane.RepositoryRoot()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	file := read(t, root, "tilt-provider.yaml")
	var entries []tiltProvider
	g.Expect(yaml.UnmarshalStrict(file, &entries)).To(Succeed())
	g.Expect(entries).To(HaveLen(len(providers)))
	// Tilt names its resources by the label, and builds into a folder of the context.
	g.Expect(entries[0].Config.Label).NotTo(Equal(entries[1].Config.Label))
	g.Expect(entries[0].Config.Context).NotTo(Equal(entries[1].Config.Context))

	forEachProvider(t, func(t *testing.T, p provider) {
		g := NewWithT(t)
		i := slices.IndexFunc(entries, func(entry tiltProvider) bool { return entry.Name == p.prefix })
		g.Expect(i).NotTo(Equal(-1))
		entry := entries[i].Config
		context := filepath.Join(root, entry.Context)
		g.Expect(filepath.Join(context, entry.KustomizeFolder, "kustomization.yaml")).To(BeARegularFile())
		for _, dep := range entry.LiveReloadDeps {
			g.Expect(filepath.Join(context, dep)).To(BeAnExistingFile())
		}
		deployment := only[appsv1.Deployment](t, installed(t, p, p.namespace()).Objs(), "Deployment")
		image, _, _ := strings.Cut(deployment.Spec.Template.Spec.Containers[0].Image, ":")
		g.Expect(entry.Image).To(Equal(image))
		checkTiltVersion(t, root, entry.Version)
		checkTiltReloads(t, context, entry.GoMain, entry.LiveReloadDeps)
	})
}

// checkTiltVersion checks that metadata.yaml has the series of a version: clusterctl finds the contract of what is installed there.
func checkTiltVersion(t *testing.T, root, version string) {
	t.Helper()
	g := NewWithT(t)
	parsed, err := versionutil.ParseSemantic(version)
	g.Expect(err).NotTo(HaveOccurred())
	metadata := &clusterctlv1.Metadata{}
	g.Expect(yaml.Unmarshal(read(t, root, "metadata.yaml"), metadata)).To(Succeed())
	g.Expect(metadata.GetReleaseSeriesForVersion(parsed)).NotTo(BeNil())
}

// checkTiltReloads checks that what Tilt watches has every folder of this repository that the manager is built from.
func checkTiltReloads(t *testing.T, context, goMain string, watched []string) {
	t.Helper()
	g := NewWithT(t)
	const ours = "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", ours, goMain)
	list.Dir, list.Env = context, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	output, err := list.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	folders := strings.Fields(string(output))
	g.Expect(folders).NotTo(BeEmpty())
	// A main package that is named by its file belongs to no module.
	g.Expect(watched).To(ContainElements(goMain, "../go.mod", "../go.sum"))
	for _, folder := range folders {
		g.Expect(slices.ContainsFunc(watched, func(dep string) bool {
			return strings.HasPrefix(folder+"/", filepath.Join(context, dep)+"/")
		})).To(BeTrue(), "%s is not among %v", folder, watched)
	}
}
