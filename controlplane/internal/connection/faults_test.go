// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

// testClock is the time of Connections that a test sets.
type testClock struct{ time.Time }

func (c *Connections) clock() *testClock {
	now := &testClock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	c.now = func() time.Time { return now.Time }
	return now
}

func (c *testClock) pass(d time.Duration) { c.Time = c.Add(d) }

// TestSlowAPI: an API server that takes two seconds for each answer is one that answers. Until all has been read nothing is known, which
// turns no condition to Unknown.
func TestSlowAPI(t *testing.T) {
	g := NewWithT(t)
	a, w := newAPI(t), newWoken()
	a.set("a", "1")
	a.delay = 2 * time.Second
	c := connections(t, a, nil)
	now := c.clock()
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	before, err := c.connected(key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Watch(t.Context(), key, NewWatcher("configmaps", &corev1.ConfigMap{}, w, named))).To(Succeed())
	_, err = value(t.Context(), c, "a")
	g.Expect(err).To(Or(Succeed(), MatchError(ErrNotRead)), "it has not failed")
	g.Expect([]string{w.next(t), w.next(t)}).To(ConsistOf("a", "all"))
	g.Expect(value(t.Context(), c, "a")).To(Equal("1"))
	g.Eventually(a.open, limit).Should(Equal(1))
	a.set("a", "2")
	g.Expect(w.next(t)).To(Equal("a"))
	g.Expect(value(t.Context(), c, "a")).To(Equal("2"))
	now.pass(probeInterval)
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	g.Expect(c.GetHealthCheckingState(t.Context(), key)).To(Equal(
		clustercache.HealthCheckingState{LastProbeTime: now.Time, LastProbeSuccessTime: now.Time}))
	g.Expect(c.connected(key)).To(BeIdenticalTo(before), "the connection stays")
}

// TestWrongCertificate: a server with a certificate of somebody else learns no credential, and the error says what is wrong, be it at the
// first attempt or with a connection that was there before.
func TestWrongCertificate(t *testing.T) {
	g := NewWithT(t)
	a, w := newAPI(t), newWoken()
	wrong := otherCertificate(t)
	c := connections(t, a, func(k *clientcmdapi.Config) {
		k.Clusters["c"].CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: wrong.Certificate[0]})
	})
	_, err := c.open(t.Context(), key)
	g.Expect(err).To(MatchError(And(ContainSubstring("does not answer"), ContainSubstring("certificate"), Not(ContainSubstring(token)))))
	g.Expect(a.asked()).To(BeZero(), "no credential was sent")
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval))
	g.Expect(c.GetHealthCheckingState(t.Context(), key).ConsecutiveFailures).To(Equal(1))

	c = connections(t, a, nil)
	now := c.clock()
	c.pass(t)
	g.Expect(c.Watch(t.Context(), key, NewWatcher("configmaps", &corev1.ConfigMap{}, w, named))).To(Succeed())
	g.Expect(w.next(t)).To(Equal("all"))
	made, err := c.connected(key)
	g.Expect(err).NotTo(HaveOccurred())
	address := a.Listener.Addr().String()
	a.CloseClientConnections()
	a.Close()
	learned := 0
	thief := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { learned++ }))
	g.Expect(thief.Listener.Close()).To(Succeed())
	thief.Listener = listen(t, address)
	thief.TLS = &tls.Config{Certificates: []tls.Certificate{wrong}}
	thief.StartTLS()
	defer thief.Close()
	g.Eventually(func() error { return made.probe(t.Context()) }, limit).Should(MatchError(ContainSubstring("certificate")))
	for range failureThreshold {
		now.pass(probeInterval)
		c.pass(t)
	}
	g.Expect(c.connected(key)).Error().To(MatchError(clustercache.ErrClusterNotConnected))
	thief.Close()
	g.Expect(learned).To(BeZero(), "no credential was sent")
}

// otherCertificate is one of 127.0.0.1 by another authority than that of other API servers.
func otherCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	g.Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}
}

// TestForbiddenProbe: a credential that may do nothing is as good as one that is not known: the kubeconfig may hold a better one by now.
func TestForbiddenProbe(t *testing.T) {
	g := NewWithT(t)
	a := newAPI(t)
	c := connections(t, a, nil)
	now := c.clock()
	c.pass(t)
	a.with(func() { a.denied = true })
	now.pass(probeInterval)
	g.Expect(c.pass(t)).To(Equal(time.Millisecond))
	g.Expect(c.connected(key)).Error().To(MatchError(clustercache.ErrClusterNotConnected))
	_, err := c.open(t.Context(), key)
	g.Expect(err).To(MatchError(And(ContainSubstring("refuses the credential"), Not(ContainSubstring(token)))))
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval), "it is not another one")
	a.with(func() { a.denied = false })
	now.pass(c.options.RetryInterval)
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	g.Expect(c.connected(key)).Error().NotTo(HaveOccurred())
}

// TestEndlessAnswers: of an answer no more is read than has a bound, whatever its status is and whoever asks. It is packed, so that little
// was sent.
func TestEndlessAnswers(t *testing.T) {
	tooLong := MatchError(ContainSubstring("the answer is too long: no more than 67108864 bytes are read"))
	for _, code := range []int{http.StatusOK, http.StatusInternalServerError} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			g := NewWithT(t)
			a := newAPI(t)
			c := connections(t, a, nil)
			c.pass(t)
			made, err := c.connected(key)
			g.Expect(err).NotTo(HaveOccurred())
			made.config.Timeout = limit // So much is read as slowly as the machine is.
			a.with(func() { a.endless = code })
			remote, err := c.GetUncachedClient(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(remote.Get(t.Context(), key, &corev1.ConfigMap{})).To(tooLong)
			s := newStore(made.kinds[0], made)
			g.Expect(s.list(t.Context())).Error().To(tooLong)
			if code != http.StatusOK {
				g.Expect(s.open(t.Context(), "1", time.Minute)).Error().To(tooLong, "a watch that is refused is none")
			}
		})
	}
}

// TestLargeAnswers: of a short answer that would take much memory nothing is decoded, whoever asks: not of many values, nor in an encoding
// in which nobody counts them.
func TestLargeAnswers(t *testing.T) {
	const items, values = "it has more than 10000 items", "it has more than 250000 values"
	list := func(item string) string { return `{"kind":"ConfigMapList","apiVersion":"v1","items":[` + item + `]}` }
	for name, tt := range map[string]struct{ says, kind, want string }{
		"items":           {list(strings.Repeat("{},", 500_000) + "{}"), "application/json", items},
		"nothing as item": {list(strings.Repeat("null,", 500_000) + "null"), "application/json; charset=utf-8", items},
		"values of an item": {
			list(`{"metadata":{"ownerReferences":[` + strings.Repeat("{},", 500_000) + `{}]}}`), "application/json", values,
		},
		"without a type": {list(strings.Repeat("{},", 500_000) + "{}"), "", items},
		"as YAML":        {"a: 1", "application/yaml", "the answer is application/yaml"},
		"as protobuf": {
			"k8s\x00", "application/vnd.kubernetes.protobuf", "the answer is application/vnd.kubernetes.protobuf",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, a := NewWithT(t), newAPI(t)
			c := connections(t, a, nil)
			c.pass(t)
			made, err := c.connected(key)
			g.Expect(err).NotTo(HaveOccurred())
			a.with(func() { a.says, a.kind = tt.says, tt.kind })
			remote, err := c.GetUncachedClient(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())
			untrustedtest.Bounded(t, func() {
				g.Expect(newStore(made.kinds[0], made).list(t.Context())).Error().To(MatchError(ContainSubstring(tt.want)))
				g.Expect(remote.Get(t.Context(), key, &corev1.ConfigMap{})).To(MatchError(ContainSubstring(tt.want)))
			})
		})
	}
}

// TestLimits: there is room for the Nodes of a large cluster, and less for all else.
func TestLimits(t *testing.T) {
	for path, values := range map[string]int{
		"/api/v1/nodes": 2_000_000, "/apis/certificates.k8s.io/v1/certificatesigningrequests": 2_000_000, "/api/v1/nodes/m-0": 250_000,
		"/api/v1/namespaces/openshift-etcd/pods": 250_000,
	} {
		NewWithT(t).Expect(limitsOf(&http.Request{URL: &url.URL{Path: path}}).Values).To(Equal(values), path)
	}
}

// TestLongWatch: a watch may send more than any other answer, since each of its events has a bound.
func TestLongWatch(t *testing.T) {
	g, a := NewWithT(t), newAPI(t)
	c := connections(t, a, nil)
	c.pass(t)
	made, err := c.connected(key)
	g.Expect(err).NotTo(HaveOccurred())
	a.with(func() { a.endless = http.StatusOK })
	events, err := newStore(made.kinds[0], made).open(t.Context(), "1", time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	defer events.close()
	g.Expect(io.CopyN(io.Discard, events.body.R, largestAnswer+1)).Error().NotTo(HaveOccurred())
}

// TestOwnCluster: a manager that runs in the cluster that it looks after uses the API server's address there.
func TestOwnCluster(t *testing.T) {
	const own = types.UID("the manager's")
	for name, tt := range map[string]struct {
		pods   map[string]types.UID
		pod    string
		inside bool
	}{
		"its own":                        {map[string]types.UID{"manager": own}, "manager", true},
		"another with a Pod of its name": {map[string]types.UID{"manager": "another"}, "manager", false},
		"another":                        {nil, "manager", false},
		"a manager outside of clusters":  {map[string]types.UID{"manager": own}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			balanced, inside := newAPI(t), newAPI(t, otherCertificate(t))
			balanced.pods = tt.pods
			inside.set("a", "1")
			balanced.set("a", "1")
			t.Setenv("POD_NAMESPACE", "ns")
			t.Setenv("POD_NAME", tt.pod)
			t.Setenv("POD_UID", string(own))
			runsWith(t, inside)
			c := connections(t, balanced, nil)
			g.Expect(c.pass(t)).To(Equal(probeInterval))
			config, err := c.GetRESTConfig(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())
			used, unused := balanced, inside
			if tt.inside {
				used, unused = inside, balanced
			}
			g.Expect(config.Host).To(Equal(used.URL))
			g.Expect(config.BearerToken).To(Equal(token), "the credential is that of the kubeconfig")
			w, before := newWoken(), unused.asked()
			g.Expect(c.Watch(t.Context(), key, NewWatcher("configmaps", &corev1.ConfigMap{}, w, named))).To(Succeed())
			g.Expect(value(t.Context(), c, "a")).To(Equal("1"))
			g.Expect(unused.asked()).To(Equal(before))
		})
	}
}

// TestOwnClusterUnknown: as long as it cannot be told whether the manager runs there, there is no connection.
func TestOwnClusterUnknown(t *testing.T) {
	g := NewWithT(t)
	a := newAPI(t)
	for _, variable := range []string{"POD_NAMESPACE", "POD_NAME", "POD_UID"} {
		t.Setenv(variable, "ns")
	}
	c := connections(t, a, nil)
	a.broken = http.StatusInternalServerError
	_, err := c.open(t.Context(), key)
	g.Expect(err).To(MatchError(ContainSubstring("look for the manager's own Pod")))
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval))
}

// runsWith makes an API server that of the cluster in which the manager runs.
func runsWith(t *testing.T, a *api) {
	t.Helper()
	g := NewWithT(t)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}), 0o600)).To(Succeed())
	config, err := clientcmd.Load(a.kubeconfig(t, func(k *clientcmdapi.Config) {
		k.Clusters["c"].CertificateAuthorityData, k.Clusters["c"].CertificateAuthority = nil, authority
		k.AuthInfos["u"].Token = "another"
	}))
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	t.Setenv("KUBECONFIG", file)
}
