// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload/workloadtest"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const providerID = "dev:///m-0"

var born = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func machine() *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m-0", Namespace: "ns", CreationTimestamp: born, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
	}}
	m.Spec.ClusterName, m.Spec.ProviderID = "demo", providerID
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: metal3.InfrastructureGroup, Kind: "DevMachine", Name: "m-0",
	}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: "m-0",
	}
	return m
}

// story is what a pass meets: a Machine that waits, its Cluster and the cluster's Nodes.
type story struct {
	cluster *clusterv1.Cluster
	machine *clusterv1.Machine
	nodes   *workloadtest.Nodes
	// controlPlane is the Cluster's, and identity the cluster that answers.
	controlPlane *controlplanev1.OpenshiftAssistedControlPlane
	identity     workload.Identity
}

func newStory() *story {
	s := &story{
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns"}}, machine: machine(),
		nodes: &workloadtest.Nodes{Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "m-0", CreationTimestamp: born}}}},
	}
	s.cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "OpenshiftAssistedControlPlane", Name: "cp"}
	s.controlPlane = &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "cp", Namespace: "ns"}}
	return s
}

// reconcile returns what became of the pass, and the events.
func (s *story) reconcile(t *testing.T) (*events.FakeRecorder, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme))).To(Succeed())
	recorder := events.NewFakeRecorder(1)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.cluster, s.controlPlane, s.machine).Build()
	r := &Reconciler{Client: c, Nodes: s.nodes, Identity: s.identity, Recorder: recorder}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.machine)})
	return recorder, err
}

func TestReconcile(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*story)
		set    string
		event  bool
	}{
		{name: "the Node has none", change: func(*story) {}, set: providerID},
		{name: "the Node has it", change: func(s *story) { s.nodes.Nodes[0].Spec.ProviderID = providerID }},
		{name: "the Node has another one", change: func(s *story) { s.nodes.Nodes[0].Spec.ProviderID = "other" }, event: true},
		{name: "there is no Node", change: func(s *story) { s.nodes.Nodes = nil }},
		{name: "the Node is of another Machine", change: func(s *story) { s.nodes.Nodes[0].Name = "m-1" }},
		{name: "the Node is of an earlier Machine of this name", change: func(s *story) {
			s.nodes.Nodes[0].CreationTimestamp = metav1.NewTime(born.Add(-time.Minute))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStory()
			tt.change(s)
			recorder, err := s.reconcile(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.nodes.Set).To(Equal(tt.set))
			if tt.event {
				g.Expect(recorder.Events).To(Receive(ContainSubstring(controlplanev1.EventProviderIDMismatch)))
			}
			g.Expect(recorder.Events).NotTo(Receive())
		})
	}
}

// TestIdle: a Machine that does not wait costs no request to its cluster.
func TestIdle(t *testing.T) {
	for name, change := range map[string]func(*story){
		"infrastructure has given no provider ID": func(s *story) { s.machine.Spec.ProviderID = "" },
		"core knows the Node":                     func(s *story) { s.machine.Status.NodeRef.Name = "m-0" },
		"Metal3 sets it itself":                   func(s *story) { s.machine.Spec.InfrastructureRef.Kind = metal3.MachineKind },
		"another bootstrap provider":              func(s *story) { s.machine.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig" },
		"another control plane provider":          func(s *story) { s.cluster.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane" },
		"paused":                                  func(s *story) { s.cluster.Spec.Paused = ptr.To(true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStory()
			change(s)
			_, err := s.reconcile(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.nodes.Asked).To(BeZero())
			g.Expect(s.nodes.Set).To(BeEmpty())
		})
	}
}

// TestAnotherCluster: another cluster has a Node of the Machine's name. The Node gets no provider ID, which could never be changed, and a
// provider ID that the Node has causes no event about the Machine. Only a pass that would write asks the cluster for its ID.
func TestAnotherCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		answers string
		node    string
		set     string
		event   bool
		asked   int
		err     string
	}{
		"the installed one": {answers: "3c1d", set: providerID, asked: 1},
		"another one": {
			answers: "9b7e", asked: 1, err: "cluster 9b7e, which answers as Cluster ns/demo: 3c1d was installed",
		},
		"another one, with another ID":     {answers: "9b7e", node: "other", asked: 1, err: "3c1d was installed"},
		"the installed one has another ID": {answers: "3c1d", node: "other", asked: 1, event: true},
		"none any more":                    {asked: 1, err: "connection to the workload cluster is down"},
		"one that has the provider ID":     {answers: "9b7e", node: providerID},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStory()
			s.controlPlane.Annotations = map[string]string{
				controlplanev1.InstalledClusterAnnotation: view.Installed{ClusterID: "3c1d", Attempt: view.Attempt(s.controlPlane)}.String(),
			}
			identity := &workloadtest.Identity{ID: tt.answers}
			s.identity, s.nodes.Nodes[0].Spec.ProviderID = identity, tt.node
			recorder, err := s.reconcile(t)
			if tt.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
			}
			g.Expect(s.nodes.Set).To(Equal(tt.set))
			g.Expect(identity.Asked).To(Equal(tt.asked))
			if tt.event {
				g.Expect(recorder.Events).To(Receive(ContainSubstring(controlplanev1.EventProviderIDMismatch)))
			}
			g.Expect(recorder.Events).NotTo(Receive())
		})
	}
}

// TestRefusedProviderID: a Node that changed after it was read triggers the next pass; anything else is an error.
func TestRefusedProviderID(t *testing.T) {
	g := NewWithT(t)
	s := newStory()
	s.nodes.Err = apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "m-0", errors.New("changed"))
	_, err := s.reconcile(t)
	g.Expect(err).NotTo(HaveOccurred())
	s.nodes.Err = errors.New("refused")
	_, err = s.reconcile(t)
	g.Expect(err).To(MatchError("refused"))
}

// TestWaiting: when a cluster connects, those of its Machines that wait are looked at, and no others.
func TestWaiting(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	joined, other := machine(), machine()
	joined.Name, joined.Status.NodeRef.Name = "m-1", "m-1"
	other.Name, other.Labels = "m-2", map[string]string{clusterv1.ClusterNameLabel: "other"}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine(), joined, other).Build()}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns"}}
	g.Expect(r.waiting(t.Context(), cluster)).To(ConsistOf(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m-0"}}))
}
