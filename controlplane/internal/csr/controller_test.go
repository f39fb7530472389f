// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload/workloadtest"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

var clusterKey = client.ObjectKey{Namespace: "ns", Name: "c"}

// installed is a cluster whose kubelets have sent the requests; it has the Node of Machine m.
func installed(requests ...*certificatesv1.CertificateSigningRequest) *workloadtest.Certificates {
	f := &workloadtest.Certificates{Nodes: []*corev1.Node{node()}}
	for _, r := range requests {
		f.Requests = append(f.Requests, *r)
	}
	return f
}

// unserved are the CRDs that are not served.
type unserved []string

func (s unserved) Missing(crds ...string) []string {
	return slices.DeleteFunc(crds, func(crd string) bool { return !slices.Contains(s, crd) })
}

// reconciler is one of a Cluster with Machine m of Node n, changed before it starts.
func reconciler(
	t *testing.T, cluster *workloadtest.Certificates,
	change func(*clusterv1.Cluster, *controlplanev1.OpenshiftAssistedControlPlane, *clusterv1.Machine),
) (*Reconciler, *events.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(clusterv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme), assisted.AddToScheme(scheme))).
		To(Succeed())
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "OpenshiftAssistedControlPlane", Name: "cp"}
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"}}
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
	}
	m.Spec.ClusterName = "c"
	m.Status.NodeRef.Name = "n"
	change(c, cp, m)
	recorder := events.NewFakeRecorder(10)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c, cp, m).WithStatusSubresource(m)
	for _, i := range index.All() {
		hub.WithIndex(i.Kind, i.Field, i.Values)
	}
	return &Reconciler{
		Client:       hub.Build(),
		Certificates: cluster, Recorder: recorder, Gate: unserved{}, controller: capicontrollerutil.NewFakeController(),
		reported: lru.New(reportedSize), now: func() time.Time { return now },
	}, recorder
}

func unchanged(*clusterv1.Cluster, *controlplanev1.OpenshiftAssistedControlPlane, *clusterv1.Machine) {
}

func TestReconcile(t *testing.T) {
	foreign := request(t, template())
	foreign.Name, foreign.UID = "csr-2", "2"
	asked := template()
	asked.DNSNames = append(asked.DNSNames, "api.example.com")
	foreign.Spec.Request = encode(t, asked)

	t.Run("a request of a Node is approved, and a foreign one left alone, with one event", func(t *testing.T) {
		g := NewWithT(t)
		cluster := installed(request(t, template()), foreign)
		r, recorder := reconciler(t, cluster, unchanged)
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(lookAgainInterval))
		g.Expect(cluster.Approved).To(ConsistOf("csr-1"))
		g.Expect(recorder.Events).To(Receive(And(ContainSubstring(controlplanev1.EventServingCertificateNotApproved),
			ContainSubstring("csr-2 of system:node:n"), ContainSubstring("api.example.com"))))
		_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(recorder.Events).NotTo(Receive())
	})
	t.Run("an address of another Machine is not the Node's", func(t *testing.T) {
		g := NewWithT(t)
		cluster := installed(request(t, template()))
		r, recorder := reconciler(t, cluster, unchanged)
		other := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		}
		other.Spec.ClusterName = "c"
		g.Expect(r.Client.Create(t.Context(), other)).To(Succeed())
		other.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "192.0.2.21"}}
		g.Expect(r.Client.Status().Update(t.Context(), other)).To(Succeed())
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.Approved).To(BeEmpty())
		g.Expect(recorder.Events).To(Receive(ContainSubstring("192.0.2.21 is an address of Machine other")))
	})
	t.Run("the name of another Machine's Node is not the Node's", func(t *testing.T) {
		g := NewWithT(t)
		asked := template()
		asked.DNSNames = append(asked.DNSNames, "o")
		cluster := installed(request(t, asked))
		cluster.Nodes[0].Status.Addresses = append(cluster.Nodes[0].Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "o"})
		r, recorder := reconciler(t, cluster, unchanged)
		other := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		}
		other.Spec.ClusterName, other.Status.NodeRef.Name = "c", "o"
		g.Expect(r.Client.Create(t.Context(), other)).To(Succeed())
		g.Expect(r.Client.Status().Update(t.Context(), other)).To(Succeed())
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.Approved).To(BeEmpty())
		g.Expect(recorder.Events).To(Receive(ContainSubstring("o is an address of Machine other")))
	})
	t.Run("a name of the cluster's API is no Node's", func(t *testing.T) {
		for _, name := range []string{"api.c.example.com", "api-int.c.example.com", "console.apps.c.example.com"} {
			g := NewWithT(t)
			asked := template()
			asked.DNSNames = append(asked.DNSNames, name)
			cluster := installed(request(t, asked))
			cluster.Nodes[0].Status.Addresses = append(cluster.Nodes[0].Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: name})
			r, recorder := reconciler(t, cluster,
				func(_ *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane, _ *clusterv1.Machine) {
					cp.Spec.Install.BaseDomain = "example.com"
				})
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cluster.Approved).To(BeEmpty())
			g.Expect(recorder.Events).To(Receive(ContainSubstring(name + " is a name or address of the cluster's API or Ingress")))
		}
	})
	t.Run("an address with which another host was discovered", func(t *testing.T) {
		for name, tt := range map[string]struct {
			served  unserved
			uid     types.UID
			node    string
			refused string
		}{
			"that Machine has no Node yet":           {uid: "other", refused: "192.0.2.21 is an address of Machine other"},
			"that Machine's Node has it still":       {uid: "other", node: "192.0.2.21", refused: "192.0.2.21 is an address of Machine other"},
			"that Machine's Node has another by now": {uid: "other", node: "192.0.2.99"},
			"by an earlier Machine of the name":      {uid: "earlier"},
			"and Agents are not served":              {uid: "other", served: unserved{assisted.CRDAgents}},
		} {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				cluster := installed(request(t, template()))
				cluster.Nodes = append(cluster.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "o"}, Status: corev1.NodeStatus{
					Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: tt.node}},
				}})
				r, recorder := reconciler(t, cluster, unchanged)
				r.Gate = tt.served
				other := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "other", UID: "other", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
				}}
				other.Spec.ClusterName = "c"
				if tt.node != "" {
					other.Status.NodeRef.Name = "o"
				}
				g.Expect(r.Client.Create(t.Context(), other)).To(Succeed())
				agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Annotations: map[string]string{
					bootstrapv1.ClaimAnnotation: "other/" + string(tt.uid),
				}}}
				agent.Status.Inventory.Interfaces = []assisted.Interface{{IPV4Addresses: []string{"192.0.2.21/24"}}}
				g.Expect(r.Client.Create(t.Context(), agent)).To(Succeed())
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
				g.Expect(err).NotTo(HaveOccurred())
				if tt.refused == "" {
					g.Expect(cluster.Approved).To(ConsistOf("csr-1"))
					return
				}
				g.Expect(cluster.Approved).To(BeEmpty())
				g.Expect(recorder.Events).To(Receive(ContainSubstring(tt.refused)))
			})
		}
	})
	t.Run("somebody else was faster", func(t *testing.T) {
		g := NewWithT(t)
		conflict := apierrors.NewConflict(schema.GroupResource{Resource: "certificatesigningrequests"}, "csr-1", errors.New("changed"))
		cluster := installed(request(t, template()))
		cluster.Err = fmt.Errorf("approve: %w", conflict)
		r, _ := reconciler(t, cluster, unchanged)
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("a request that cannot be approved is an error", func(t *testing.T) {
		cluster := installed(request(t, template()))
		cluster.Err = errors.New("refused")
		r, _ := reconciler(t, cluster, unchanged)
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("refused")))
	})
	for name, change := range map[string]func(*clusterv1.Cluster, *controlplanev1.OpenshiftAssistedControlPlane, *clusterv1.Machine){
		"paused": func(c *clusterv1.Cluster, _ *controlplanev1.OpenshiftAssistedControlPlane, _ *clusterv1.Machine) {
			c.Spec.Paused = new(true)
		},
		"of another provider": func(c *clusterv1.Cluster, _ *controlplanev1.OpenshiftAssistedControlPlane, _ *clusterv1.Machine) {
			c.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane"
		},
		"without control plane": func(_ *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane, _ *clusterv1.Machine) {
			cp.Name = "other"
		},
	} {
		t.Run("a Cluster "+name+" is left alone", func(t *testing.T) {
			cluster := installed(request(t, template()))
			r, _ := reconciler(t, cluster, change)
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(cluster.Asked).To(BeZero())
		})
	}
	t.Run("a Node of a Machine of another Cluster is left alone", func(t *testing.T) {
		cluster := installed(request(t, template()))
		r, recorder := reconciler(t, cluster, func(_ *clusterv1.Cluster, _ *controlplanev1.OpenshiftAssistedControlPlane, m *clusterv1.Machine) {
			m.Labels[clusterv1.ClusterNameLabel], m.Spec.ClusterName = "d", "d"
		})
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(cluster.Approved).To(BeEmpty())
		NewWithT(t).Expect(recorder.Events).NotTo(Receive())
	})
}

// TestAnotherCluster: a request of another cluster is neither approved nor told of, although one of its Nodes has the name of a Machine's.
// The cluster is asked by a pass that approves or tells something, and by no other.
func TestAnotherCluster(t *testing.T) {
	foreign := template()
	foreign.DNSNames = append(foreign.DNSNames, "api.example.com")
	for name, tt := range map[string]struct {
		recorded, answers string
		refused           bool
		approved          []string
		asked, told       int
		err               string
	}{
		"the installed one": {recorded: "3c1d", answers: "3c1d", approved: []string{"csr-1"}, asked: 1},
		"another one": {
			recorded: "3c1d", answers: "9b7e", asked: 1, err: "cluster 9b7e, which answers as Cluster ns/c: 3c1d was installed",
		},
		"none any more":               {recorded: "3c1d", asked: 1, err: "connection to the workload cluster is down"},
		"one that is being installed": {answers: "9b7e", approved: []string{"csr-1"}},
		"another one, and nothing is approved": {
			recorded: "3c1d", answers: "9b7e", refused: true, asked: 1, err: "cluster 9b7e, which answers as Cluster ns/c: 3c1d was installed",
		},
		"the installed one, and nothing is approved": {recorded: "3c1d", answers: "3c1d", refused: true, asked: 1, told: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := installed(request(t, template()))
			if tt.refused {
				cluster = installed(request(t, foreign))
			}
			change := func(_ *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane, _ *clusterv1.Machine) {
				if tt.recorded != "" {
					cp.Annotations = map[string]string{
						controlplanev1.InstalledClusterAnnotation: view.Installed{ClusterID: tt.recorded, Attempt: view.Attempt(cp)}.String(),
					}
				}
			}
			r, recorder := reconciler(t, cluster, change)
			identity := &workloadtest.Identity{ID: tt.answers}
			r.Identity = identity
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
			if tt.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
			}
			g.Expect(cluster.Approved).To(Equal(tt.approved))
			g.Expect(identity.Asked).To(Equal(tt.asked))
			g.Expect(recorder.Events).To(HaveLen(tt.told))
			if tt.told > 0 {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(identity.Asked).To(Equal(tt.asked), "what was told is no reason to ask again")
			}
		})
	}
}

// TestRivalsAreBounded: a kubelet that somebody has taken over says that its Node has the addresses of all others.
func TestRivalsAreBounded(t *testing.T) {
	g := NewWithT(t)
	cluster := installed(request(t, template()))
	r, _ := reconciler(t, cluster, unchanged)
	for i := range 2 * maxRivals {
		name, address := fmt.Sprintf("o-%02d", i), fmt.Sprintf("192.0.2.%d", 100+i)
		other := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		}
		other.Spec.ClusterName, other.Status.NodeRef.Name = "c", name
		other.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: address}}
		g.Expect(r.Client.Create(t.Context(), other)).To(Succeed())
		cluster.Nodes[0].Status.Addresses = append(cluster.Nodes[0].Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: clusterKey})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Approved).To(ConsistOf("csr-1"))
	g.Expect(slices.Compact(slices.Sorted(slices.Values(cluster.Read)))).To(And(HaveLen(maxRivals+1), ContainElements("n", "o-00", "o-15")))
}

func TestMachineEvents(t *testing.T) {
	g := NewWithT(t)
	without := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}
	with := without.DeepCopy()
	with.Status.NodeRef.Name = "n"
	g.Expect(nodes.Update(event.UpdateEvent{ObjectOld: without, ObjectNew: with})).To(BeTrue())
	g.Expect(nodes.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: with})).To(BeFalse())
	g.Expect(nodes.Create(event.CreateEvent{Object: without})).To(BeFalse())
	g.Expect(ofMachine(t.Context(), with)).To(ConsistOf(ctrl.Request{NamespacedName: clusterKey}))
}
