// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestContractInstances runs the manager again, and in other ways than the rest of the package.
func TestContractInstances(t *testing.T) {
	s := shared
	ours, theirs := newPublishedLab(t, "ours", 0), newPublishedLab(t, "theirs", 0)
	NewWithT(t).Expect(s.Bootstrap.Stop()).To(Succeed())
	t.Run("BOOT-42 a manager with a filter acts on objects with its label only", func(t *testing.T) {
		for _, object := range []client.Object{ours.cluster(t.Context(), NewWithT(t)), ours.machine(t.Context(), NewWithT(t), "m-0"), ours.config(t.Context(), NewWithT(t), "m-0")} {
			ours.change(t, object, func() { object.SetLabels(with(object.GetLabels(), clusterv1.WatchLabel, "ours")) })
		}
		expectOneSided(t, s, "--watch-filter=ours", ours, theirs)
	})
	t.Run("BOOT-42 a manager with a namespace acts there only", func(t *testing.T) {
		expectOneSided(t, s, "--namespace="+theirs.namespace, theirs, ours)
	})
	t.Run("BOOT-54 a manager that starts anew writes nothing where nothing has changed", func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		versions := func(g Gomega) map[string]string {
			found := map[string]string{}
			for _, config := range s.configs(ctx, g, s.installed.Namespace) {
				found[config.Name] = config.ResourceVersion
			}
			return found
		}
		before := versions(g)
		ours.disown(t, "m-0")
		g.Expect(s.Bootstrap.Start(ctx)).To(Succeed())
		// It has looked at every config when it has repaired this one, or does so in the next moments.
		ours.expectOwned(t, "m-0")
		consistently(t, func(g Gomega) { g.Expect(versions(g)).To(Equal(before)) })
	})
}

func with(labels map[string]string, key, value string) map[string]string {
	meta := metav1.ObjectMeta{Labels: labels}
	metav1.SetMetaDataLabel(&meta, key, value)
	return meta.Labels
}

// expectOneSided runs a manager with a flag and checks that it acts in one lab and not in the other.
func expectOneSided(t *testing.T, s *scene, flag string, mine, other *lab) {
	t.Helper()
	g := NewWithT(t)
	spec := localcontrolplane.BootstrapManager()
	spec.Name = "bootstrap-" + mine.namespace
	spec.Binary = filepath.Join(s.Management.Dir(), "bin", s.Bootstrap.Name())
	spec.Args = []string{flag, resyncPeriod, "--leader-elect=false"}
	manager, err := s.Management.StartManager(t.Context(), spec)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(manager.Stop()).To(Succeed()) }()
	other.disown(t, "m-0")
	mine.disown(t, "m-0")
	mine.expectOwned(t, "m-0")
	consistently(t, func(g Gomega) { g.Expect(other.secret(t.Context(), g, "m-0").OwnerReferences).To(BeEmpty()) })
}
