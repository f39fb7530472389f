// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/release"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	firstVersion, nextVersion = "v0.1.0", "v0.1.1"

	bootstrapLabel, controlPlaneLabel = "bootstrap-openshift-assisted", "control-plane-openshift-assisted"

	// speed makes an installation take some seconds of simulated time.
	speed = 3

	installTimeout = 4 * time.Minute
	deleteTimeout  = 3 * time.Minute
	settleTimeout  = time.Minute
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(m.Run())
}

// story is the life of one management cluster. clusterctl does all the installing; what it installs cannot run without nodes, so
// localcontrolplane.RunInstalled runs managers in the place of the images: those of localcontrolplane.EarlierCommit for the first version,
// and those of this repository as it is for the next.
type story struct {
	repository *Repository
	// earlier builds the first version.
	earlier *localcontrolplane.Tools
	// upgraded are the names of the managers that run in the next version.
	upgraded sets.Set[string]
	world    *sandbox.World
	client   client.Client
	request  sandbox.ClusterRequest
}

func (s *story) clusterctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.repository.Clusterctl(t.Context(), s.world.Management, nil, args...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return out
}

// newRepository makes a Repository with both versions, and returns what builds the first one too.
func newRepository(t *testing.T) (repository *Repository, earlier *localcontrolplane.Tools) {
	t.Helper()
	g := NewWithT(t)
	tools, err := localcontrolplane.NewTools(t.Output())
	g.Expect(err).NotTo(HaveOccurred())
	earlier, err = tools.Earlier(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	repository, err = NewRepository(t.Context(), tools, t.TempDir(), Release{firstVersion, earlier}, Release{nextVersion, tools})
	g.Expect(err).NotTo(HaveOccurred())
	return repository, earlier
}

// adjust runs the earlier program of a manager that has not been upgraded.
func (s *story) adjust(t *testing.T) func(*localcontrolplane.ControlPlane, *localcontrolplane.ManagerSpec) {
	folder := t.TempDir()
	return func(_ *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
		if s.upgraded.Has(spec.Name) {
			return
		}
		program := filepath.Join(folder, spec.Name)
		NewWithT(t).Expect(s.earlier.Build(t.Context(), spec.Package, program)).To(Succeed())
		spec.Binary = program
	}
}

// TestContractLifecycle follows a management cluster from init to delete; its parts build on each other.
func TestContractLifecycle(t *testing.T) {
	g := NewWithT(t)
	repository, earlier := newRepository(t)
	s := &story{
		repository: repository, earlier: earlier, upgraded: sets.New[string](),
		request: sandbox.ClusterRequest{
			Namespace: "demo", Name: "demo", Topology: sandbox.SNO, Workers: 1, Address: "127.30.4.5",
			Template: filepath.Join(earlier.Root(), "templates", "cluster-template-sno.yaml"),
		},
	}
	install := func(ctx context.Context, cp *localcontrolplane.ControlPlane) error {
		return s.repository.Init(ctx, cp, firstVersion)
	}
	var err error
	s.world, err = sandbox.NewWorld(
		t.Context(), sandbox.WorldOptions{Progress: t.Output(), Speed: speed, Install: install, Adjust: s.adjust(t)},
	)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(s.world.Stop()).To(Succeed()) }()
	s.client = newClient(t, s.world.Management)
	parts := []struct {
		name string
		tell func(*testing.T)
	}{
		{"CTL-1 CTL-2 CTL-12 E2E-30 init has installed both providers from a folder", s.isInstalled},
		{"CTL-10 CTL-11 every object of a release is there, with the labels by which clusterctl finds it", s.hasAllObjects},
		{"CTL-30 E2E-23 a template of the release becomes a cluster", s.createCluster},
		{"CTL-21 E2E-23 upgrade apply replaces one provider after the other, and no Machine", s.upgrade},
		{"CTL-22 delete takes the providers away and leaves the cluster's objects", s.deleteProviders},
		{"CTL-22 init on what is left goes on with the cluster", s.initAgain},
	}
	for _, part := range parts {
		if !t.Run(part.name, part.tell) {
			return
		}
	}
}

// isInstalled checks clusterctl's inventory, and that the upgrade is offered.
func (s *story) isInstalled(t *testing.T) {
	g := NewWithT(t)
	g.Expect(s.versions(t)).To(And(HaveKeyWithValue(bootstrapLabel, firstVersion), HaveKeyWithValue(controlPlaneLabel, firstVersion)))
	g.Expect(s.clusterctl(t, "upgrade", "plan")).To(And(
		MatchRegexp(`bootstrap-openshift-assisted +openshift-assisted-bootstrap-system +BootstrapProvider +v0\.1\.0 +v0\.1\.1`),
		MatchRegexp(`control-plane-openshift-assisted +openshift-assisted-control-plane-system +ControlPlaneProvider +v0\.1\.0 +v0\.1\.1`),
	))
}

// versions returns clusterctl's inventory: version by provider label.
func (s *story) versions(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	list := &clusterctlv1.ProviderList{}
	g.Expect(s.client.List(t.Context(), list)).To(Succeed())
	versions := map[string]string{}
	for _, provider := range list.Items {
		versions[provider.ManifestLabel()] = provider.Version
	}
	return versions
}

// hasAllObjects compares the release's files with the cluster.
func (s *story) hasAllObjects(t *testing.T) {
	g := NewWithT(t)
	for label, file := range map[string]string{bootstrapLabel: "bootstrap-components.yaml",
		controlPlaneLabel: "control-plane-components.yaml"} {
		g.Expect(release.CheckInstalled(t.Context(), s.client, filepath.Join(s.repository.Dir, label, firstVersion, file), label)).To(Succeed())
	}
}

func (s *story) createCluster(t *testing.T) {
	g := NewWithT(t)
	// A host more than Machines is for the worker that is added later.
	g.Expect(s.world.CreateInputsFor(t.Context(), s.request, s.request.Machines()+1)).To(Succeed())
	g.Expect(s.world.ApplyCluster(t.Context(), s.request)).To(Succeed())
	s.expectRunning(t)
	description, err := s.world.Describe(t.Context(), s.request.Namespace, s.request.Name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(description).To(MatchRegexp(`OpenshiftAssistedControlPlane demo/demo-control-plane, v1\.33\.4 .* True +Available`))
}

// expectRunning waits until the cluster is Available with all its Machines.
func (s *story) expectRunning(t *testing.T) {
	t.Helper()
	key := s.request.Key()
	check := s.world.Running(key, s.request.Machines())
	NewWithT(t).Expect(s.world.AwaitCluster(t.Context(), key, installTimeout, key.String(), check)).To(Succeed())
}

// upgrade upgrades one provider at a time, so that for a while their versions differ, and works with the new ones. Meanwhile another
// cluster is being installed.
func (s *story) upgrade(t *testing.T) {
	g := NewWithT(t)
	young := s.startYoung(t)
	before := s.identities(t)
	for _, provider := range []struct {
		label, flag, manager string
		running              func() *localcontrolplane.Manager
		start                func(context.Context) error
	}{
		{bootstrapLabel, "--bootstrap", "bootstrap", func() *localcontrolplane.Manager { return s.world.Bootstrap }, s.world.StartBootstrap},
		{controlPlaneLabel, "--control-plane", "controlplane", func() *localcontrolplane.Manager { return s.world.ControlPlane },
			s.world.StartControlPlane},
	} {
		// The pod ends when clusterctl scales the Deployment down, and another one starts with the new Deployment.
		g.Expect(provider.running().Stop()).To(Succeed())
		s.clusterctl(t, "upgrade", "apply", provider.flag, Provider+":"+nextVersion)
		g.Expect(s.images(t, provider.label)).To(HaveEach(HaveSuffix(":" + nextVersion)))
		s.upgraded.Insert(provider.manager)
		g.Expect(provider.start(t.Context())).To(Succeed())
		g.Expect(s.versions(t)).To(HaveKeyWithValue(provider.label, nextVersion))
		s.expectRunning(t)
		young.awaitInstalling(t)
	}
	g.Expect(s.identities(t)).To(Equal(before), "what existed is still there")
	young.grow(t)
	g.Expect(s.world.AddWorker(t.Context(), s.request.Key())).To(Succeed())
	s.request.Workers++
	s.expectRunning(t)
	after := s.identities(t)
	for object, identity := range before {
		if strings.Contains(object, " "+young.request.Name+"-") {
			continue // It is deleted.
		}
		g.Expect(after).To(HaveKeyWithValue(object, identity), "a new Machine replaces none")
	}
}

// identities returns the UIDs of Machines, of our objects and of our CRDs.
func (s *story) identities(t *testing.T) map[string]types.UID {
	t.Helper()
	g := NewWithT(t)
	identities := map[string]types.UID{}
	for _, list := range []client.ObjectList{
		&clusterv1.MachineList{}, &bootstrapv1.OpenshiftAssistedConfigList{}, &bootstrapv1.OpenshiftAssistedConfigTemplateList{},
		&controlplanev1.OpenshiftAssistedControlPlaneList{}, &apiextensionsv1.CustomResourceDefinitionList{},
	} {
		g.Expect(s.client.List(t.Context(), list)).To(Succeed())
		g.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			identities[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetUID()
			return nil
		})).To(Succeed())
	}
	return identities
}

// images returns the images of a provider's Deployments.
func (s *story) images(t *testing.T, label string) []string {
	t.Helper()
	list := &appsv1.DeploymentList{}
	NewWithT(t).Expect(s.client.List(t.Context(), list, client.MatchingLabels{clusterv1.ProviderNameLabel: label})).To(Succeed())
	var images []string
	for _, deployment := range list.Items {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			images = append(images, container.Image)
		}
	}
	return images
}

func (s *story) deleteProviders(t *testing.T) {
	g := NewWithT(t)
	before := s.identities(t)
	g.Expect(s.world.Bootstrap.Stop()).To(Succeed())
	g.Expect(s.world.ControlPlane.Stop()).To(Succeed())
	s.clusterctl(t, "delete", "--bootstrap", Provider, "--control-plane", Provider)
	for _, label := range []string{bootstrapLabel, controlPlaneLabel} {
		g.Eventually(s.images).WithArguments(t, label).WithTimeout(settleTimeout).Should(BeEmpty())
		g.Expect(s.versions(t)).NotTo(HaveKey(label))
	}
	g.Expect(s.identities(t)).To(Equal(before))
}

func (s *story) initAgain(t *testing.T) {
	g := NewWithT(t)
	before := s.identities(t)
	s.clusterctl(t, "init", "--bootstrap", Provider+":"+nextVersion, "--control-plane", Provider+":"+nextVersion)
	g.Expect(s.world.StartManagers(t.Context())).To(Succeed())
	s.expectRunning(t)
	g.Expect(s.identities(t)).To(Equal(before))

	g.Expect(s.world.DeleteCluster(t.Context(), s.request.Key(), deleteTimeout)).To(Succeed())
	g.Expect(apierrors.IsNotFound(s.client.Get(t.Context(), s.request.Key(), &clusterv1.Cluster{}))).To(BeTrue())
}
