// SPDX-License-Identifier: Apache-2.0

// Package infrastructure installs a cluster on machines of an infrastructure provider that is not Metal3.
package infrastructure

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	"github.com/capi-openshift/agent-providers/test/security"
)

const (
	speed          = 3
	installTimeout = 4 * time.Minute
	deleteTimeout  = 3 * time.Minute
)

// TestOtherInfrastructure: with the ClusterRole of the guide, a cluster comes up on machines of a provider that hands user data to them,
// and goes again. Its Machines have the provider's IDs and addresses, and the managers do nothing that their roles do not allow.
func TestOtherInfrastructure(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	world, err := sandbox.NewWorld(ctx, sandbox.WorldOptions{Progress: t.Output(), Speed: speed})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(world.Stop()).To(Succeed()) }()
	key := types.NamespacedName{Namespace: "example", Name: "demo"}
	apply(t, world, filepath.Join("testdata", "crds.yaml"))
	apply(t, world, roleOfGuide(t))
	mgr, err := ctrl.NewManager(world.Management.Admin(), providerOptions(world.Client.Scheme()))
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- startProvider(ctx, mgr) }()
	g.Expect(world.CreateInputs(ctx, key.Namespace, 1)).To(Succeed())

	apply(t, world, filepath.Join("testdata", "cluster.yaml"))
	infrastructure := newExample("ExampleCluster")
	g.Expect(world.Client.Get(ctx, key, infrastructure)).To(Succeed())
	before := infrastructure.DeepCopy()
	g.Expect(unstructured.SetNestedField(infrastructure.Object, true, "status", "initialization", "provisioned")).To(Succeed())
	g.Expect(world.Client.Status().Patch(ctx, infrastructure, client.MergeFrom(before))).To(Succeed())
	g.Expect(world.AwaitCluster(ctx, key, installTimeout, "the cluster", world.Running(key, 1))).To(Succeed())
	machines, err := world.Machines(ctx, key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(machines[0].Spec.ProviderID).To(Equal("example:///host-0"))
	g.Expect(machines[0].Status.Addresses).To(HaveLen(1))
	g.Expect(machines[0].Status.NodeRef.Name).To(Equal(machines[0].Name))

	g.Expect(world.DeleteCluster(ctx, key, deleteTimeout)).To(Succeed())
	record := security.Record{}
	for _, manager := range []*localcontrolplane.Manager{world.Bootstrap, world.ControlPlane} {
		g.Expect(record.Add(ctx, world.Client, world.Management.AuditLog(), manager.Name(), manager.User)).To(Succeed())
	}
	g.Expect(record.Missing()).To(BeEmpty())
	cancel()
	g.Expect(<-ended).NotTo(HaveOccurred())
}

func apply(t *testing.T, world *sandbox.World, path string) {
	t.Helper()
	absolute, err := filepath.Abs(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = world.Kubectl(t.Context(), "apply", "-f", absolute)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// roleOfGuide returns a file with the ClusterRole of docs/guides/other-infrastructure.md.
func roleOfGuide(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "other-infrastructure.md"))
	g.Expect(err).NotTo(HaveOccurred())
	_, text, found := strings.Cut(string(guide), "```yaml\n")
	g.Expect(found).To(BeTrue())
	text, _, _ = strings.Cut(text, "```")
	path := filepath.Join(t.TempDir(), "role.yaml")
	g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}
