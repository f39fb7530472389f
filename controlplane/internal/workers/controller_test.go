// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
)

// world is a Cluster whose two workers were upgraded in place after its MachineDeployment was bumped: Cluster API has made an empty
// MachineSet of the new version.
type world struct {
	client   client.WithWatch
	recorder *events.FakeRecorder
	// written are the objects that were written, in that order.
	written []string
	// fail decides about a write, by its number from 1; nil lets all of them succeed.
	fail func(write int) error
	// again: the last pass has asked for another one.
	again bool
}

func newWorld(t *testing.T, change func(*clusterv1.Cluster, *clusterv1.MachineDeployment)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme))).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "OpenshiftAssistedControlPlane", Name: "cp"}
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"}}
	md := deployment()
	if change != nil {
		change(cluster, md)
	}
	inUse, empty := machineSet("a", before, machine("a0", before, wanted), machine("a1", before, wanted)), machineSet("b", wanted)
	stranger := machineSet("c", before, machine("c0", before, wanted))
	stranger.set.OwnerReferences[0].UID = "other"
	master := machine("master", before, wanted)
	w := &world{recorder: events.NewFakeRecorder(10)}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		cluster, cp, md, inUse.set, inUse.machines[0], inUse.machines[1], empty.set, stranger.set, stranger.machines[0], master,
	).WithInterceptorFuncs(interceptor.Funcs{Patch: w.patch})
	for _, i := range index.All() {
		hub.WithIndex(i.Kind, i.Field, i.Values)
	}
	w.client = hub.Build()
	return w
}

func (w *world) patch(
	ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	options := &client.PatchOptions{}
	options.ApplyOptions(opts)
	if options.FieldManager != fieldManager {
		return fmt.Errorf("field manager is %q", options.FieldManager)
	}
	if w.fail != nil {
		if err := w.fail(len(w.written) + 1); err != nil {
			return err
		}
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, o, client.RawPatch(patch.Type(), data), opts...); err != nil {
		return err
	}
	w.written = append(w.written, o.GetName())
	return nil
}

func (w *world) reconcile(t *testing.T) error {
	t.Helper()
	r := &Reconciler{Client: w.client, Recorder: w.recorder}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "demo"}})
	w.again = result.RequeueAfter > 0
	return err
}

// versions are those of the Machines and MachineSets, by name.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	machines, sets := &clusterv1.MachineList{}, &clusterv1.MachineSetList{}
	g.Expect(w.client.List(t.Context(), machines)).To(Succeed())
	g.Expect(w.client.List(t.Context(), sets)).To(Succeed())
	versions := map[string]string{}
	for _, m := range machines.Items {
		versions[m.Name] = m.Spec.Version
	}
	for _, s := range sets.Items {
		versions[s.Name] = s.Spec.Template.Spec.Version
	}
	return versions
}

// untouched and done are the versions at the beginning and at the end.
var (
	untouched = map[string]string{"a": before, "a0": before, "a1": before, "b": wanted, "c": before, "c0": before, "master": before}
	done      = map[string]string{"a": wanted, "a0": wanted, "a1": wanted, "b": wanted, "c": before, "c0": before, "master": before}
)

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, nil)
	g.Expect(w.reconcile(t)).To(Succeed())
	g.Expect(w.written).To(Equal([]string{"a0", "a1"}), "Machines first")
	g.Expect(w.recorder.Events).NotTo(Receive())
	g.Expect(w.reconcile(t)).To(Succeed())
	g.Expect(w.written).To(Equal([]string{"a0", "a1", "a"}), "then their MachineSet")
	g.Expect(w.recorder.Events).To(Receive(And(
		ContainSubstring(controlplanev1.EventWorkersFollowed),
		ContainSubstring("MachineSet a has version v1.34.1 now, which all its Nodes run; nothing was reinstalled"),
	)))
	g.Expect(w.versions(t)).To(Equal(done))
	g.Expect(w.reconcile(t)).To(Succeed())
	g.Expect(w.written).To(HaveLen(3), "a steady state writes nothing")
	g.Expect(w.again).To(BeFalse())
	g.Expect(w.recorder.Events).NotTo(Receive())
}

// TestReconcileTopology: the MachineDeployment of a topology gets the version first, which the topology does not give it.
func TestReconcileTopology(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, func(c *clusterv1.Cluster, md *clusterv1.MachineDeployment) {
		upgraded := topology(ahead, wanted)
		c.Spec.Topology, c.Status.ControlPlane = upgraded.Spec.Topology, upgraded.Status.ControlPlane
		md.Labels = topologyLabels()
		md.Spec.Template.Spec.Version = before
	})
	g.Expect(w.reconcile(t)).To(Succeed())
	g.Expect(w.written).To(Equal([]string{"md"}))
	g.Expect(w.recorder.Events).To(Receive(And(
		ContainSubstring(controlplanev1.EventWorkersFollowed),
		ContainSubstring("MachineDeployment md has version v1.34.1 now, which all its Nodes run; nothing was reinstalled"),
	)))
	for range 3 {
		g.Expect(w.reconcile(t)).To(Succeed())
	}
	g.Expect(w.written).To(Equal([]string{"md", "a0", "a1", "a"}), "then the Machines, and their MachineSet")
	g.Expect(w.versions(t)).To(Equal(done))
}

// TestOneField: nothing but the version of an object changes.
func TestOneField(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, nil)
	key := client.ObjectKey{Namespace: "ns", Name: "a0"}
	was, is := &clusterv1.Machine{}, &clusterv1.Machine{}
	g.Expect(w.client.Get(t.Context(), key, was)).To(Succeed())
	g.Expect(w.reconcile(t)).To(Succeed())
	g.Expect(w.client.Get(t.Context(), key, is)).To(Succeed())
	was.Spec.Version, was.ResourceVersion = is.Spec.Version, is.ResourceVersion
	g.Expect(is).To(Equal(was))
}

func TestLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*clusterv1.Cluster, *clusterv1.MachineDeployment){
		"the Cluster is paused": func(c *clusterv1.Cluster, _ *clusterv1.MachineDeployment) { c.Spec.Paused = ptr.To(true) },
		"the Cluster is being deleted": func(c *clusterv1.Cluster, _ *clusterv1.MachineDeployment) {
			c.Finalizers, c.DeletionTimestamp = []string{clusterv1.ClusterFinalizer}, ptr.To(metav1.Now())
		},
		"another control plane provider": func(c *clusterv1.Cluster, _ *clusterv1.MachineDeployment) {
			c.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane"
		},
		"a MachineDeployment of another Cluster": func(_ *clusterv1.Cluster, md *clusterv1.MachineDeployment) {
			md.Labels = map[string]string{clusterv1.ClusterNameLabel: "other"}
		},
		"RollingUpdate": func(_ *clusterv1.Cluster, md *clusterv1.MachineDeployment) {
			md.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, change)
			g.Expect(w.reconcile(t)).To(Succeed())
			g.Expect(w.versions(t)).To(Equal(untouched))
		})
	}
}

// TestStale: an object that was changed after it was read is written by the next pass, and one that is refused is an error. Neither keeps
// the others.
func TestStale(t *testing.T) {
	machines := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"}
	for name, tt := range map[string]struct {
		err    error
		failed bool
	}{
		"changed": {err: apierrors.NewConflict(machines, "a0", errors.New("changed"))},
		"gone":    {err: apierrors.NewNotFound(machines, "a0")},
		"refused": {err: apierrors.NewForbidden(machines, "a0", errors.New("no")), failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, nil)
			once := false
			w.fail = func(int) error {
				if once {
					return nil
				}
				once = true
				return tt.err
			}
			g.Expect(w.reconcile(t) != nil).To(Equal(tt.failed))
			g.Expect(w.written).To(Equal([]string{"a1"}))
			g.Expect(w.again).To(Equal(apierrors.IsConflict(tt.err)), "no event may tell that it can be written now")
			for range 2 {
				g.Expect(w.reconcile(t)).To(Succeed())
			}
			g.Expect(w.versions(t)).To(Equal(done))
		})
	}
}

// TestStaleCache: what is written from an old copy of an object undoes nothing.
func TestStaleCache(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, nil)
	m := &clusterv1.Machine{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a0"}, m)).To(Succeed())
	stale := m.DeepCopy()
	m.Labels["example.com/changed"] = ""
	g.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	r := &Reconciler{Client: w.client, Recorder: w.recorder}
	_, changed, err := r.apply(t.Context(), decision{machines: []machineVersion{{machine: stale, version: wanted}}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(changed).To(BeTrue())
	g.Expect(w.versions(t)).To(HaveKeyWithValue("a0", before))
}

// TestDeath: a manager that ends before or after any of its writes leaves nothing that another one does not finish.
func TestDeath(t *testing.T) {
	for write := range 4 {
		t.Run(fmt.Sprintf("before write %d", write+1), func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, nil)
			w.fail = func(number int) error {
				if number > write {
					return errors.New("the manager has ended")
				}
				return nil
			}
			for range 3 {
				_ = w.reconcile(t)
			}
			g.Expect(w.written).To(HaveLen(min(write, 3)))
			w.fail = nil
			for range 2 {
				g.Expect(w.reconcile(t)).To(Succeed())
			}
			g.Expect(w.versions(t)).To(Equal(done))
			g.Expect(w.written).To(ConsistOf("a0", "a1", "a"), "nothing is written twice")
		})
	}
}
