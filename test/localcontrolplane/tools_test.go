// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestUnknownTool(t *testing.T) {
	g := NewWithT(t)
	tools, err := NewTools(nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = tools.Path(t.Context(), "kubelet")
	g.Expect(err).To(MatchError(ContainSubstring("known are etcd, kube-apiserver")))
}

func TestLinkerFlagsStampTheVersion(t *testing.T) {
	g := NewWithT(t)
	const p = "k8s.io/component-base/version"
	g.Expect(kubernetesTool("kubectl").linkerFlags("v1.36.3")).To(Equal(
		"-s -w -X " + p + ".gitVersion=v1.36.3 -X " + p + ".gitMajor=1 -X " + p + ".gitMinor=36 -X " + p + ".gitTreeState=clean"))
	g.Expect(tool{name: "etcd"}.linkerFlags("v3.6.14")).To(Equal("-s -w"))
}

func TestInterruptedBuildIsNotKept(t *testing.T) {
	g := NewWithT(t)
	tools := &Tools{cache: t.TempDir()}
	path := filepath.Join(tools.cache, "tool")
	interrupted := errors.New("interrupted")
	err := tools.once(t.Context(), path, func(draft string) error {
		g.Expect(os.WriteFile(draft, []byte("half"), 0o600)).To(Succeed())
		return interrupted
	})
	g.Expect(err).To(MatchError(interrupted))
	g.Expect(path).NotTo(BeAnExistingFile())
	builds := 0
	build := func(draft string) error {
		builds++
		return os.WriteFile(draft, []byte("whole"), 0o600)
	}
	g.Expect(tools.once(t.Context(), path, build)).To(Succeed())
	g.Expect(tools.once(t.Context(), path, build)).To(Succeed())
	g.Expect(builds).To(Equal(1), "what is cached is not built again")
}

// The CRDs of one project come from two modules; they must be of one version.
func TestToolModulePinsTheSameAPIs(t *testing.T) {
	g := NewWithT(t)
	root, err := RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	version := func(dir string) string {
		pinned, err := goCommand(t.Context(), dir, "list", "-m", "-f", "{{.Replace.Version}}", "github.com/openshift/assisted-service/api")
		g.Expect(err).NotTo(HaveOccurred())
		return pinned
	}
	g.Expect(version(filepath.Join(root, "hack/tools/crds"))).To(Equal(version(root)))
}
