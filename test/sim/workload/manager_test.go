// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// clusterVIP is the API address of the cluster under test.
const clusterVIP = "127.31.7.5"

// TestCluster takes one cluster from its first Apply to its deletion.
func TestCluster(t *testing.T) {
	g := NewWithT(t)
	m := startManager(t, g, Options{APIDelay: time.Second, OperatorDelay: 300 * time.Millisecond, ServingCSRs: true})

	s := &story{WithT: g, t: t, m: m, key: types.NamespacedName{Namespace: "default", Name: "demo"}}
	s.spec = assisted.ClusterSpec{
		Key: s.key, Name: "demo", BaseDomain: "example.com", APIVIPs: []string{clusterVIP}, ClusterID: "0d3c9a52", ReleaseImage: "release:1",
	}
	t.Run("kubeconfig before the API", s.kubeconfigFirst)
	t.Run("no operator before a Node", s.noOperators)
	t.Run("nodes join", s.nodesJoin)
	t.Run("operators come one after the other", s.operatorsCome)
	t.Run("no API in the pivot", s.pivot)
	t.Run("a credential is accepted or refused", s.accepts)
	t.Run("day 2 waits for its certificate, and labels wait for Ready", s.dayTwo)
	t.Run("a dead machine's Node is not ready", s.deadMachine)
	t.Run("a Machine API of its own", s.machineAPI)
	t.Run("completion", s.completion)
	t.Run("API down and up", s.outage)
	t.Run("deletion", s.deletion)
}

// startManager runs a manager with a control plane of its own.
func startManager(t *testing.T, g *WithT, opts Options) *Manager {
	t.Helper()
	ctx := t.Context()
	cp, err := localcontrolplane.Start(ctx, localcontrolplane.Options{Progress: os.Stderr})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	opts.Report = func(_ types.NamespacedName, err error) { t.Log(err) }
	m := New(Local(cp), opts)
	managerCtx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- m.Start(managerCtx) }()
	t.Cleanup(func() { stop(); g.Expect(<-done).To(Succeed()) })
	return m
}

type story struct {
	*WithT
	t    *testing.T
	m    *Manager
	key  types.NamespacedName
	spec assisted.ClusterSpec
	// installing is the kubeconfig of before the completion.
	installing []byte
}

func (s *story) client() client.Client {
	config, err := s.m.Config(s.key)
	s.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: scheme})
	s.Expect(err).NotTo(HaveOccurred())
	return c
}

func (s *story) node(name string) *corev1.Node {
	node := &corev1.Node{}
	err := s.client().Get(s.t.Context(), types.NamespacedName{Name: name}, node)
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return node
}

func (s *story) kubeconfigFirst(*testing.T) {
	s.m.Apply(s.spec)
	s.Eventually(func() bool {
		var ok bool
		s.installing, ok = s.m.Kubeconfig(s.key, false)
		return ok
	}, time.Minute).Should(BeTrue())
	config, err := clientcmd.Load(s.installing)
	s.Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		s.Expect(cluster.Server).To(Equal("https://api.demo.example.com:6443"))
	}
	s.Expect(s.m.Status(s.key).APIUp).To(BeFalse(), "the API must not answer before the state is installing")
	s.Expect(s.dial()).NotTo(Succeed())
}

// dial connects to the cluster's public address.
func (s *story) dial() error {
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", net.JoinHostPort(clusterVIP, "6443"))
	if err != nil {
		return err
	}
	return conn.Close()
}

// available lists the ClusterOperators that are available, in the order of operators.
func (s *story) available() []string {
	list := &configv1.ClusterOperatorList{}
	s.Expect(s.client().List(s.t.Context(), list)).To(Succeed())
	var out []string
	for _, name := range operators {
		for i := range list.Items {
			conditions := list.Items[i].Status.Conditions
			if list.Items[i].Name == name && len(conditions) > 0 && conditions[0].Status == configv1.ConditionTrue {
				out = append(out, name)
			}
		}
	}
	return out
}

func (s *story) noOperators(*testing.T) {
	s.spec.Installing = true
	s.m.Apply(s.spec)
	s.Eventually(s.dial, time.Minute).Should(Succeed())
	s.Consistently(s.available, time.Second).Should(BeEmpty())
}

// operatorsCome expects never one before those that come before it.
func (s *story) operatorsCome(*testing.T) {
	s.Eventually(func(g Gomega) {
		available := s.available()
		s.Expect(strings.Join(available, " ")).To(Equal(strings.Join(operators[:len(available)], " ")))
		g.Expect(available).To(HaveLen(len(operators)))
	}, time.Minute).Should(Succeed())
}

func (s *story) pivot(*testing.T) {
	// What the simulator says comes after what it does: who waits for a connection only is too early for what it refuses without its API.
	up := func() bool { return s.m.Status(s.key).APIUp }
	s.spec.Pivoting = true
	s.m.Apply(s.spec)
	s.Eventually(up, time.Minute).Should(BeFalse())
	s.Expect(s.dial()).NotTo(Succeed())
	s.spec.Pivoting = false
	s.m.Apply(s.spec)
	s.Eventually(up, time.Minute).Should(BeTrue())
	s.Expect(s.dial()).To(Succeed())
}

func (s *story) nodesJoin(*testing.T) {
	s.spec.Nodes = []assisted.NodeSpec{{
		Name: "m0", Role: "master", Addresses: []string{"10.0.0.1"}, Architecture: "aarch64", Labels: map[string]string{"metal3.io/uuid": "u0"},
		Running: true,
	}}
	s.m.Apply(s.spec)
	s.Eventually(func() assisted.NodeStatus { return s.m.Status(s.key).Nodes["m0"] }, time.Minute).
		Should(Equal(assisted.NodeStatus{Joined: true, Ready: true}))
	s.Expect(s.dial()).To(Succeed())
	node := s.node("m0")
	s.Expect(node.Spec.ProviderID).To(BeEmpty(), "nobody but CAPM3 sets provider IDs")
	s.Expect(node.Labels).To(HaveKeyWithValue("metal3.io/uuid", "u0"))
	s.Expect(node.Labels).To(HaveKey("node-role.kubernetes.io/control-plane"))
	s.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal("v1.33.4"))
	s.Expect(node.Status.NodeInfo.Architecture).To(Equal("arm64"))
	s.Expect(node.Status.Addresses).To(ContainElement(corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}))
	requests := &certificatesv1.CertificateSigningRequestList{}
	s.Expect(s.client().List(s.t.Context(), requests)).To(Succeed())
	s.Expect(requests.Items).To(HaveLen(1))
	s.Expect(requests.Items[0].Spec.Username).To(Equal("system:node:m0"))
	s.renewal(s.asked(requests.Items[0].Name))
}

// renewal expects of a running kubelet another request like the first, and one for a foreign name and a foreign address.
func (s *story) renewal(first *x509.CertificateRequest) {
	s.Expect(first.DNSNames).To(ConsistOf("m0"))
	s.Expect(first.IPAddresses).To(ConsistOf(BeEquivalentTo(net.IPv4(10, 0, 0, 1).To4())))
	name, err := s.m.RequestServing(s.t.Context(), s.key, "m0")
	s.Expect(err).NotTo(HaveOccurred())
	renewed := s.asked(name)
	s.Expect(renewed.DNSNames).To(Equal(first.DNSNames))
	s.Expect(renewed.IPAddresses).To(Equal(first.IPAddresses))
	s.Expect(renewed.PublicKey).NotTo(Equal(first.PublicKey))
	name, err = s.m.RequestServing(s.t.Context(), s.key, "m0", "api.example.com", "10.0.0.2")
	s.Expect(err).NotTo(HaveOccurred())
	foreign := s.asked(name)
	s.Expect(foreign.DNSNames).To(ConsistOf("m0", "api.example.com"))
	s.Expect(foreign.IPAddresses).To(HaveLen(2))
	_, err = s.m.RequestServing(s.t.Context(), s.key, "m1")
	s.Expect(err).To(MatchError(ContainSubstring("m1")), "a Node that is not there has no kubelet")
}

// asked reads what a request for a serving certificate of m0 asks for.
func (s *story) asked(name string) *x509.CertificateRequest {
	request := &certificatesv1.CertificateSigningRequest{}
	s.Expect(s.client().Get(s.t.Context(), types.NamespacedName{Name: name}, request)).To(Succeed())
	s.Expect(request.Spec.SignerName).To(Equal(certificatesv1.KubeletServingSignerName))
	s.Expect(request.Spec.Username).To(Equal("system:node:m0"))
	s.Expect(request.Spec.Groups).To(ConsistOf("system:nodes", "system:authenticated"))
	s.Expect(request.Spec.Usages).To(ConsistOf(certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth))
	block, _ := pem.Decode(request.Spec.Request)
	s.Expect(block).NotTo(BeNil())
	certificate, err := x509.ParseCertificateRequest(block.Bytes)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(certificate.Subject.CommonName).To(Equal("system:node:m0"))
	return certificate
}

// accepts expects that the installer's credential is accepted, and no other.
func (s *story) accepts(*testing.T) {
	s.Expect(s.m.Accepts(s.t.Context(), s.key, s.installing)).To(BeTrue())
	config, err := clientcmd.Load(s.installing)
	s.Expect(err).NotTo(HaveOccurred())
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, "of nobody"
	}
	refused, err := clientcmd.Write(*config)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.m.Accepts(s.t.Context(), s.key, refused)).To(BeFalse())
	s.Expect(s.m.Accepts(s.t.Context(), s.key, nil)).To(BeFalse())
}

func (s *story) dayTwo(*testing.T) {
	s.spec.Nodes = append(s.spec.Nodes, assisted.NodeSpec{
		Name: "w0", Role: "worker", Labels: map[string]string{"metal3.io/uuid": "u1"}, Day2: true, Running: true,
	})
	s.m.Apply(s.spec)
	s.Eventually(func() map[string]assisted.NodeStatus { return s.m.Status(s.key).Nodes }, time.Minute).Should(HaveKey("w0"))
	s.Consistently(func() types.UID { return s.node("w0").UID }, time.Second).Should(BeEmpty(), "nobody has approved its certificate")
	s.spec.Nodes = slices.Clone(s.spec.Nodes)
	s.spec.Nodes[1].Served = true
	s.m.Apply(s.spec)
	s.Eventually(func() bool { return s.m.Status(s.key).Nodes["w0"].Ready }, time.Minute).Should(BeTrue())
	s.Expect(s.client().Delete(s.t.Context(), s.node("w0"))).To(Succeed())
	s.Consistently(func() types.UID { return s.node("w0").UID }, time.Second).Should(BeEmpty(), "a kubelet registers once")
	s.restart("w0")
	s.Expect(s.node("w0").Labels).To(HaveKeyWithValue("metal3.io/uuid", "u1"))
}

// restart is a power cycle of the second host.
func (s *story) restart(name string) {
	nodes := s.spec.Nodes
	s.spec.Nodes = append(slices.Clone(nodes), assisted.NodeSpec{Name: "witness"})
	s.spec.Nodes[1].Running = false
	s.m.Apply(s.spec)
	// A power cut that the manager does not notice is none. It looks at the hosts in order, so with the last it has seen all.
	s.Eventually(func() map[string]assisted.NodeStatus { return s.m.Status(s.key).Nodes }, time.Minute).Should(HaveKey("witness"))
	s.Expect(s.node(name).UID).To(BeEmpty())
	s.spec.Nodes = slices.Clone(nodes)
	s.spec.Nodes[1].Running = true
	s.m.Apply(s.spec)
	s.Eventually(func() bool { return s.m.Status(s.key).Nodes[name].Ready }, time.Minute).Should(BeTrue())
}

func (s *story) deadMachine(*testing.T) {
	s.spec.Nodes = slices.Clone(s.spec.Nodes)
	s.spec.Nodes[1].Running = false
	s.m.Apply(s.spec)
	s.Eventually(func() []corev1.NodeCondition { return s.node("w0").Status.Conditions }, time.Minute).
		Should(ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionUnknown))))
	s.Expect(s.m.RemoveNode(s.t.Context(), s.key, "w0")).To(Succeed())
	s.Expect(s.m.RemoveNode(s.t.Context(), s.key, "w0")).To(Succeed(), "a Node that is gone is no error")
}

// machineAPI: a cluster that has a Machine API gives its Nodes provider IDs that Metal3 refuses (METAL3 M3-34).
func (s *story) machineAPI(*testing.T) {
	before := s.spec
	s.spec.MachineAPI = true
	s.spec.Nodes = append(slices.Clone(s.spec.Nodes), assisted.NodeSpec{Name: "w9", Role: "worker", Running: true})
	s.m.Apply(s.spec)
	s.Eventually(func() string { return s.node("w9").Spec.ProviderID }, time.Minute).
		Should(Equal("baremetalhost:///openshift-machine-api/w9"))
	s.spec = before
	s.m.Apply(s.spec)
	s.Expect(s.m.RemoveNode(s.t.Context(), s.key, "w9")).To(Succeed())
}

func (s *story) completion(*testing.T) {
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	s.Expect(s.client().Get(s.t.Context(), client.ObjectKeyFromObject(version), version)).To(Succeed())
	s.Expect(version.Status.History[0].State).To(Equal(configv1.PartialUpdate))
	s.Expect(string(version.Spec.ClusterID)).To(Equal("0d3c9a52"))
	s.spec.Complete = true
	s.m.Apply(s.spec)
	s.Eventually(func() configv1.UpdateState {
		s.Expect(s.client().Get(s.t.Context(), client.ObjectKeyFromObject(version), version)).To(Succeed())
		return version.Status.History[0].State
	}, time.Minute).Should(Equal(configv1.CompletedUpdate))
	final, ok := s.m.Kubeconfig(s.key, true)
	s.Expect(ok).To(BeTrue())
	s.Expect(final).NotTo(Equal(s.installing), "the ingress CA is added at the end")
}

func (s *story) outage(*testing.T) {
	s.Expect(s.m.Down(s.key, 0)).To(Succeed())
	s.Eventually(func() bool { return s.m.Status(s.key).APIUp }, time.Minute).Should(BeFalse())
	s.Expect(s.dial()).NotTo(Succeed())
	s.Expect(s.m.RemoveNode(s.t.Context(), s.key, "m0")).To(MatchError(ErrUnreachable))
	s.Expect(s.m.Accepts(s.t.Context(), s.key, s.installing)).To(BeFalse())
	s.Expect(s.m.Up(s.key)).To(Succeed())
	s.Eventually(s.dial, time.Minute).Should(Succeed())
}

func (s *story) deletion(*testing.T) {
	s.m.Delete(s.key)
	s.Eventually(s.dial, time.Minute).ShouldNot(Succeed())
	s.Expect(s.m.Status(s.key)).To(Equal(assisted.ClusterStatus{}))
	_, err := s.m.Config(s.key)
	s.Expect(err).To(HaveOccurred())
}
