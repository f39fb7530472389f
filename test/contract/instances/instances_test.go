// SPDX-License-Identifier: Apache-2.0

// Package instances runs several managers of a kind in one management cluster.
package instances

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	"github.com/capi-openshift/agent-providers/test/security"
)

const (
	// speed makes an installation take some seconds of simulated time.
	speed = 3

	installTimeout = 4 * time.Minute
	deleteTimeout  = 3 * time.Minute
	cleanTimeout   = time.Minute

	// watched is the namespace in config/*/namespaced.
	watched = "clusters"
)

// TestContractInstances: managers that are told to leave clusters alone do so. The subtests share a world and build on each other: the
// second one's managers have the release's roles.
func TestContractInstances(t *testing.T) {
	g := NewWithT(t)
	w, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{
		Progress: t.Output(), Speed: speed, WithoutManagers: true,
		Adjust: func(_ *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
			spec.Kustomize = "config/" + spec.Name + "/namespaced"
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(w.Stop()).To(Succeed()) }()

	t.Run("BOOT-42 CP-66 managers of one namespace, with rights in that namespace only, leave others alone", func(t *testing.T) {
		inside, outside := newTenant(t, w, watched, 10, ""), newTenant(t, w, "outside", 20, "")
		g := NewWithT(t)
		g.Expect(w.StartManagers(t.Context())).To(Succeed())
		outside.create(t)
		inside.create(t)
		inside.expectRunning(t)
		outside.expectUntouched(t)
		inside.delete(t)
		record := security.Record{}
		for _, manager := range []*localcontrolplane.Manager{w.Bootstrap, w.ControlPlane} {
			g.Expect(record.Add(t.Context(), w.Client, w.Management.AuditLog(), manager.Name(), manager.User)).To(Succeed())
			g.Expect(manager.Stop()).To(Succeed())
		}
		g.Expect(record.Missing()).To(BeEmpty())
	})
	t.Run("BOOT-42 CP-66 managers with different filters leave each other's clusters and hosts alone", func(t *testing.T) {
		one, two := newTenant(t, w, "one", 30, "one"), newTenant(t, w, "two", 40, "two")
		managers := startFiltered(t, w, one.filter)
		two.create(t)
		one.create(t)
		one.expectRunning(t)
		two.expectUntouched(t)

		startFiltered(t, w, two.filter)
		two.expectRunning(t)
		for _, manager := range managers {
			NewWithT(t).Expect(manager.Stop()).To(Succeed())
		}
		left, deleted := one.leaveBehind(t), two.leaveBehind(t)
		for i := range deleted {
			g := NewWithT(t)
			g.Eventually(func() bool {
				return apierrors.IsNotFound(w.Client.Get(t.Context(), client.ObjectKeyFromObject(deleted[i]), deleted[i]))
			}).WithTimeout(cleanTimeout).Should(BeTrue(), "%T", deleted[i])
			g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(left[i]), left[i])).To(Succeed())
			g.Expect(left[i].GetDeletionTimestamp()).To(BeNil(), "%T", left[i])
		}
	})
}

// startFiltered runs both managers for the objects with a label. They share a Lease with those of other labels, so there is no election.
func startFiltered(t *testing.T, w *sandbox.World, filter string) []*localcontrolplane.Manager {
	t.Helper()
	var managers []*localcontrolplane.Manager
	for _, spec := range []localcontrolplane.ManagerSpec{localcontrolplane.BootstrapManager(), localcontrolplane.ControlPlaneManager()} {
		if spec.Name == localcontrolplane.ControlPlaneManager().Name {
			spec.Args = append(spec.Args, "--clustercache-retry-interval=2s")
		}
		spec.Name += "-" + filter
		spec.Args = append(spec.Args, "--watch-filter="+filter, "--leader-elect=false")
		manager, err := w.Management.StartManager(t.Context(), spec)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		managers = append(managers, manager)
	}
	return managers
}

// tenant is a single-node cluster in a namespace of its own.
type tenant struct {
	world   *sandbox.World
	request sandbox.ClusterRequest
	filter  string
}

// newTenant makes the inputs of a cluster. address is the last byte of its API's loopback address; filter is the label of all its objects.
func newTenant(t *testing.T, w *sandbox.World, namespace string, address int, filter string) tenant {
	t.Helper()
	request := sandbox.ClusterRequest{
		Namespace: namespace,
		Name:      namespace,
		Topology:  sandbox.SNO,
		Address:   fmt.Sprintf("127.30.6.%d", address),
	}
	NewWithT(t).Expect(w.CreateInputs(t.Context(), namespace, request.Machines())).To(Succeed())
	return tenant{world: w, request: request, filter: filter}
}

// create creates the objects of the template, with the filter's label on all of them and on what is made from the control plane.
func (o tenant) create(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	manifests, err := o.world.Render(t.Context(), o.request)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := utilyaml.ToUnstructured(manifests)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range objects {
		object := &objects[i]
		if o.filter != "" {
			object.SetLabels(map[string]string{clusterv1.WatchLabel: o.filter})
		}
		if object.GetKind() == "OpenshiftAssistedControlPlane" {
			g.Expect(unstructured.SetNestedStringMap(object.Object, object.GetLabels(), "spec", "machineTemplate", "metadata", "labels")).
				To(Succeed())
		}
		g.Expect(o.world.Client.Create(t.Context(), object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

func (o tenant) expectRunning(t *testing.T) {
	t.Helper()
	key := o.request.Key()
	check := o.world.Running(key, o.request.Machines())
	NewWithT(t).Expect(o.world.AwaitCluster(t.Context(), key, installTimeout, key.String(), check)).To(Succeed())
}

// expectUntouched checks that no manager of ours has seen the cluster.
func (o tenant) expectUntouched(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	in := client.InNamespace(o.request.Namespace)
	controlPlanes := &controlplanev1.OpenshiftAssistedControlPlaneList{}
	g.Expect(o.world.Client.List(t.Context(), controlPlanes, in)).To(Succeed())
	g.Expect(controlPlanes.Items).To(HaveLen(1))
	g.Expect(controlPlanes.Items[0].OwnerReferences).NotTo(BeEmpty(), "core has seen it")
	g.Expect(controlPlanes.Items[0].Finalizers).To(BeEmpty())
	g.Expect(controlPlanes.Items[0].Status.Conditions).To(BeEmpty())
	for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &assisted.InfraEnvList{}, &hiveext.AgentClusterInstallList{},
		&bootstrapv1.OpenshiftAssistedConfigList{}} {
		g.Expect(o.world.Client.List(t.Context(), list, in)).To(Succeed())
		g.Expect(list).To(HaveField("Items", BeEmpty()))
	}
}

// leaveBehind makes an Agent that is claimed for a Machine that does not exist, and installation objects of a control plane that does not.
func (o tenant) leaveBehind(t *testing.T) []client.Object {
	t.Helper()
	g := NewWithT(t)
	infraEnvs := &assisted.InfraEnvList{}
	g.Expect(o.world.Client.List(t.Context(), infraEnvs, client.InNamespace(o.request.Namespace))).To(Succeed())
	g.Expect(infraEnvs.Items).To(HaveLen(1))
	filtered := map[string]string{clusterv1.WatchLabel: o.filter}
	objects := append(sandbox.Leftovers(o.request.Namespace, "left", filtered), sandbox.LeftAgent(&infraEnvs.Items[0], "left"))
	for _, object := range objects {
		g.Expect(o.world.Client.Create(t.Context(), object)).To(Succeed())
	}
	return objects
}

// delete deletes the cluster and waits until it is gone.
func (o tenant) delete(t *testing.T) {
	t.Helper()
	NewWithT(t).Expect(o.world.DeleteCluster(t.Context(), o.request.Key(), deleteTimeout)).To(Succeed())
}
