// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// node is the Node of Machine m.
func node() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "n"}, {Type: corev1.NodeInternalDNS, Address: "n.example.com"},
		{Type: corev1.NodeInternalIP, Address: "192.0.2.21"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::21"},
	}}}
}

// template is what the kubelet of node asks for.
func template() *x509.CertificateRequest {
	return &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}},
		DNSNames: []string{"n", "n.example.com"}, IPAddresses: []net.IP{net.ParseIP("192.0.2.21"), net.ParseIP("2001:db8::21")},
	}
}

func encode(t *testing.T, template *x509.CertificateRequest) []byte {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// request is what the kubelet of node sends.
func request(t *testing.T, template *x509.CertificateRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: "1", CreationTimestamp: metav1.Time{Time: now.Add(-time.Second)}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName, Request: encode(t, template),
			Username: "system:node:n", Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth, certificatesv1.UsageDigitalSignature},
		},
	}
}

func TestPending(t *testing.T) {
	g := NewWithT(t)
	r := request(t, template())
	g.Expect(isPending(r)).To(BeTrue())
	for _, change := range []func(*certificatesv1.CertificateSigningRequest){
		func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		},
		func(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = []byte("x") },
		func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
		},
		func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
		},
	} {
		changed := r.DeepCopy()
		change(changed)
		g.Expect(isPending(changed)).To(BeFalse())
	}
}

func TestDecide(t *testing.T) {
	type csr = certificatesv1.CertificateSigningRequest
	asks := func(change func(*x509.CertificateRequest)) func(*testing.T, *csr) {
		return func(t *testing.T, r *csr) {
			t.Helper()
			changed := template()
			change(changed)
			r.Spec.Request = encode(t, changed)
		}
	}
	sends := func(change func(*csr)) func(*testing.T, *csr) { return func(_ *testing.T, r *csr) { change(r) } }
	tests := []struct {
		name    string
		change  func(*testing.T, *csr)
		refused string // why it is refused; empty when it is approved
	}{
		{name: "what a kubelet asks for", change: sends(func(*csr) {})},
		{name: "with an RSA key", change: sends(func(r *csr) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		})},
		{name: "fewer names", change: asks(func(r *x509.CertificateRequest) { r.DNSNames = nil })},
		{
			name: "foreign name", change: asks(func(r *x509.CertificateRequest) { r.DNSNames = []string{"n", "api.example.com"} }),
			refused: `does not have the name "api.example.com"`,
		},
		{
			name: "wildcard", change: asks(func(r *x509.CertificateRequest) { r.DNSNames = []string{"*.example.com"} }),
			refused: "does not have the name",
		},
		{
			name: "foreign address", change: asks(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.ParseIP("192.0.2.5")} }),
			refused: "does not have the address 192.0.2.5",
		},
		{
			name: "address as name", change: asks(func(r *x509.CertificateRequest) { r.DNSNames = []string{"192.0.2.21"} }),
			refused: "does not have the name",
		},
		{
			name: "nothing", change: asks(func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }),
			refused: "no name and no address",
		},
		{
			name: "e-mail address", change: asks(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.com"} }),
			refused: "e-mail",
		},
		{name: "URI", change: asks(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "https", Host: "n"}} }), refused: "URIs"},
		{
			name: "another Node's subject", change: asks(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:m" }),
			refused: "not for its sender",
		},
		{name: "organization", change: asks(func(r *x509.CertificateRequest) {
			r.Subject.Organization = []string{"system:nodes", "system:masters"}
		}), refused: "its organization is"},
		{
			name: "client usage", change: sends(func(r *csr) { r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageClientAuth) }),
			refused: "usages",
		},
		{name: "too few usages", change: sends(func(r *csr) { r.Spec.Usages = r.Spec.Usages[:1] }), refused: "usages"},
		{
			name: "not in the group of Nodes", change: sends(func(r *csr) { r.Spec.Groups = []string{"system:authenticated"} }),
			refused: "group system:nodes",
		},
		{
			name: "not authenticated", change: sends(func(r *csr) { r.Spec.Groups = []string{"system:nodes"} }),
			refused: "group system:authenticated",
		},
		{name: "sender is no Node", change: sends(func(r *csr) { r.Spec.Username = "kube:admin" }), refused: "kube:admin is no Node"},
		{name: "no PEM", change: sends(func(r *csr) { r.Spec.Request = []byte("x") }), refused: "PEM block"},
		{name: "two requests", change: sends(func(r *csr) { r.Spec.Request = append(r.Spec.Request, r.Spec.Request...) }), refused: "PEM block"},
		{name: "broken request", change: sends(func(r *csr) {
			r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
		}), refused: "cannot be parsed"},
		{name: "wrong signature", change: func(_ *testing.T, r *csr) {
			block, _ := pem.Decode(r.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			r.Spec.Request = pem.EncodeToMemory(block)
		}, refused: "signature is wrong"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			r := request(t, template())
			tt.change(t, r)
			d := decide(&scope{
				now: now, pending: []csr{*r}, machines: map[string]string{"n": "m"}, nodes: map[string]*corev1.Node{"n": node()},
				controlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}, cluster: &clusterv1.Cluster{},
			})
			if tt.refused == "" {
				g.Expect(d).To(Equal(decision{approve: []approval{{request: r, machine: "m"}}}))
				return
			}
			g.Expect(d.approve).To(BeEmpty())
			g.Expect(d.refuse).To(HaveLen(1))
			g.Expect(d.refuse[0].reason).To(ContainSubstring(tt.refused))
		})
	}
}

func TestRequestsThatWait(t *testing.T) {
	g := NewWithT(t)
	r := request(t, template())
	pending := []certificatesv1.CertificateSigningRequest{*r}
	g.Expect(decide(&scope{now: now, pending: pending})).To(Equal(decision{}), "no Machine has this Node yet")
	machines := map[string]string{"n": "m"}
	g.Expect(decide(&scope{now: now, pending: pending, machines: machines})).To(Equal(decision{}), "the Node is gone")
}

func TestLookAgain(t *testing.T) {
	g := NewWithT(t)
	late := node()
	late.Status.Addresses = late.Status.Addresses[:1]
	s := &scope{
		now: now, pending: []certificatesv1.CertificateSigningRequest{*request(t, template())},
		machines: map[string]string{"n": "m"}, nodes: map[string]*corev1.Node{"n": late},
		controlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}, cluster: &clusterv1.Cluster{},
	}
	g.Expect(decide(s).lookAgain).To(Equal(lookAgainInterval))
	s.now = now.Add(patience)
	g.Expect(decide(s).lookAgain).To(BeZero())
}

// TestWitnesses: a kubelet that somebody has taken over says that its Node has the addresses of others.
func TestWitnesses(t *testing.T) {
	own, other := owner{machine: "m", node: "n"}, owner{machine: "other", node: "o"}
	installing := owner{machine: "other"}
	for name, tt := range map[string]struct {
		known map[string][]owner
		// others are the addresses of the other Machine's Node; nil when that was not read.
		others  []string
		vips    []string
		single  bool
		refused string
	}{
		"nobody knows an address of the Node": {},
		"its Machine has them":                {known: map[string][]owner{"192.0.2.21": {own}, "n.example.com": {own}}},
		"another Machine has its address": {known: map[string][]owner{"192.0.2.21": {other}},
			refused: "192.0.2.21 is an address of Machine other"},
		"another Machine without a Node has its address": {known: map[string][]owner{"192.0.2.21": {installing}},
			refused: "192.0.2.21 is an address of Machine other"},
		"another Machine's Node has its address": {known: map[string][]owner{"192.0.2.21": {other}}, others: []string{"192.0.2.21"},
			refused: "192.0.2.21 is an address of Machine other"},
		"another Machine's Node had its address": {known: map[string][]owner{"192.0.2.21": {other}}, others: []string{"192.0.2.99"}},
		"another Machine's Node has no address of the family": {
			known: map[string][]owner{"192.0.2.21": {other}}, others: []string{"2001:db8::99"},
			refused: "192.0.2.21 is an address of Machine other",
		},
		"another Machine had it, one more has it": {known: map[string][]owner{"192.0.2.21": {other, {machine: "third"}}},
			others: []string{"192.0.2.99"}, refused: "192.0.2.21 is an address of Machine third"},
		"another Machine has its name": {known: map[string][]owner{"n.example.com": {other}}, others: []string{"192.0.2.99"},
			refused: "n.example.com is an address of Machine other"},
		"both have it":                        {known: map[string][]owner{"192.0.2.21": {other, own}}, others: []string{"192.0.2.21"}},
		"another Machine has the Node's name": {known: map[string][]owner{"n": {other}}},
		"the API has its address": {vips: []string{"2001:db8:0::21"},
			refused: "2001:db8::21 is a name or address of the cluster's API or Ingress"},
		"another Machine's Node had the API's address": {known: map[string][]owner{"192.0.2.21": {other}}, others: []string{"192.0.2.99"},
			vips: []string{"192.0.2.21"}, refused: "192.0.2.21 is a name or address of the cluster's API or Ingress"},
		"the API of a single Node": {known: map[string][]owner{"192.0.2.21": {own}}, vips: []string{"192.0.2.21"}, single: true},
		"a host said at discovery that it has the API's address": {known: map[string][]owner{"192.0.2.21": {own}}, vips: []string{"192.0.2.21"},
			refused: "192.0.2.21 is a name or address of the cluster's API or Ingress"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cp := &controlplanev1.OpenshiftAssistedControlPlane{}
			cp.Spec.Install.APIVIPs, cp.Spec.Replicas = tt.vips, new(int32(3))
			if tt.single {
				cp.Spec.Replicas = new(int32(1))
			}
			nodes := map[string]*corev1.Node{"n": node()}
			if tt.others != nil {
				nodes["o"] = &corev1.Node{}
			}
			for _, address := range tt.others {
				nodes["o"].Status.Addresses = append(nodes["o"].Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
			}
			d := decide(&scope{
				now: now, pending: []certificatesv1.CertificateSigningRequest{*request(t, template())}, machines: map[string]string{"n": "m"},
				nodes: nodes, known: tt.known, controlPlane: cp, cluster: &clusterv1.Cluster{},
			})
			if tt.refused == "" {
				g.Expect(d.approve).To(HaveLen(1))
				return
			}
			g.Expect(d.approve).To(BeEmpty())
			g.Expect(d.refuse).To(HaveLen(1))
			g.Expect(d.refuse[0].reason).To(ContainSubstring(tt.refused))
		})
	}
}
