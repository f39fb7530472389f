// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
)

const (
	publicName, internalName = "api.c.example.com", "api-int.c.example.com"
	goodToken                = "good-token"
)

// apiServer is an API that shows a certificate for each name, and takes goodToken.
type apiServer struct {
	*httptest.Server
	// ca is the authority of the cluster's own certificates.
	ca []byte
	// requests are those that had a credential, lifetime is what a token was asked for, and status what is answered to the request of one.
	requests []string
	lifetime int64
	status   authenticationv1.TokenRequestStatus
	// busy is how many requests of a token fail first, and code with what status.
	busy, code int
	// binding is the ClusterRoleBinding that there is; nil without one.
	binding *rbacv1.ClusterRoleBinding
	// endless says that the answers to requests with a credential do not end.
	endless bool
	// connections counts them.
	connections atomic.Int32
}

// newAPIServer shows its own certificate for the internal name, and for the public one unless it is given another.
func newAPIServer(t *testing.T, foreign ...string) *apiServer {
	t.Helper()
	s := &apiServer{code: http.StatusInternalServerError, status: authenticationv1.TokenRequestStatus{
		Token: "issued", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second)),
	}}
	own, ca := certificate(t, "the cluster", publicName, internalName)
	s.ca = ca
	other, _ := certificate(t, "a user", publicName, internalName)
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		for _, name := range foreign {
			if hello.ServerName == name {
				return &other, nil
			}
		}
		return &own, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// certificate is one for names, signed by a new authority, and the authority's own as PEM.
func certificate(t *testing.T, authority string, names ...string) (tls.Certificate, []byte) {
	t.Helper()
	g := NewWithT(t)
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: authority}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	g.Expect(err).NotTo(HaveOccurred())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server of " + authority}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	g.Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
}

// ServeHTTP answers as an API server does.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(o any) {
		data, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(data)
	}
	fail := func(code int, reason metav1.StatusReason) {
		w.WriteHeader(code)
		answer(metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason})
	}
	if r.Header.Get("Authorization") != "Bearer "+goodToken {
		fail(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	}
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	switch {
	case s.endless:
		writeOn(w)
	case strings.HasSuffix(r.URL.Path, "/clusterversions/version"):
		answer(clusterVersion("3c1d"))
	case strings.HasSuffix(r.URL.Path, "/token") && s.busy > 0:
		s.busy--
		fail(s.code, metav1.StatusReasonUnknown)
	case strings.HasSuffix(r.URL.Path, "/token"):
		body, _ := io.ReadAll(r.Body)
		decoded, _, _ := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		request := decoded.(*authenticationv1.TokenRequest)
		s.lifetime, request.Status = *request.Spec.ExpirationSeconds, s.status
		request.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"))
		w.WriteHeader(http.StatusCreated)
		answer(request)
	case s.binding != nil && strings.Contains(r.URL.Path, "/clusterrolebindings/"):
		s.serveBinding(r.Method, answer, fail)
	case r.Method == http.MethodPatch:
		_, _ = w.Write([]byte("{}"))
	default:
		fail(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// serveBinding serves the ClusterRoleBinding that there is, whose role cannot be changed.
func (s *apiServer) serveBinding(method string, answer func(any), fail func(int, metav1.StatusReason)) {
	switch {
	case method == http.MethodDelete:
		s.binding = nil
		answer(metav1.Status{Status: metav1.StatusSuccess})
	case method == http.MethodPatch && s.binding.RoleRef.Name != "cluster-admin":
		fail(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	default:
		answer(s.binding)
	}
}

// kubeconfig calls the server with a token.
func (s *apiServer) kubeconfig(t *testing.T, token string) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: s.ca, TLSServerName: publicName}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	data, err := clientcmd.Write(*config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return data
}

func TestAsk(t *testing.T) {
	names := []string{publicName, internalName}
	for name, tt := range map[string]struct {
		foreign []string
		token   string
		want    workload.Answer
		sent    int
	}{
		"a good token":         {nil, goodToken, workload.Answer{ServerName: publicName, ClusterID: "3c1d"}, 1},
		"one that is refused":  {nil, "other", workload.Answer{ServerName: publicName, Refused: true}, 0},
		"a user's certificate": {[]string{publicName}, goodToken, workload.Answer{ServerName: internalName, ClusterID: "3c1d"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), newAPIServer(t, tt.foreign...)
			g.Expect(workload.Cached{}.Ask(t.Context(), cluster, s.kubeconfig(t, tt.token), names)).To(Equal(tt.want))
			g.Expect(s.requests).To(HaveLen(tt.sent))
		})
	}
	t.Run("no certificate that verifies", func(t *testing.T) {
		g, s := NewWithT(t), newAPIServer(t, names...)
		answer, err := workload.Cached{}.Ask(t.Context(), cluster, s.kubeconfig(t, goodToken), names)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.ServerName).To(BeEmpty())
		g.Expect(answer.Seen).To(And(ContainSubstring(publicName+` shows a certificate of "CN=server of a user" by "CN=a user", valid until 20`),
			ContainSubstring(internalName+" shows")))
		g.Expect(s.requests).To(BeEmpty(), "the credential is not sent")
	})
	t.Run("nobody", func(t *testing.T) {
		g, s := NewWithT(t), newAPIServer(t)
		data := s.kubeconfig(t, goodToken)
		s.Close()
		_, err := workload.Cached{}.Ask(t.Context(), cluster, data, names)
		g.Expect(err).To(MatchError(And(HavePrefix("ask Cluster ns/c"), Not(ContainSubstring(goodToken)))))
	})
	for name, user := range map[string]string{
		"runs a command": "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}",
		"names a file":   "tokenFile: /nowhere/token",
	} {
		t.Run(name, func(t *testing.T) {
			data := strings.Replace(string(newAPIServer(t).kubeconfig(t, goodToken)), "token: "+goodToken, user, 1)
			_, err := workload.Cached{}.Ask(t.Context(), cluster, []byte(data), names)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(name), ContainSubstring("it must hold its credential"))))
		})
	}
}

func TestRequestToken(t *testing.T) {
	for given, want := range map[time.Duration]int64{7 * 24 * time.Hour: 604800, 3607 * time.Second: 3608} {
		g, s := NewWithT(t), newAPIServer(t)
		data := s.kubeconfig(t, goodToken)
		g.Expect(workload.Cached{}.EnsureAccount(t.Context(), cluster, data)).To(Succeed())
		g.Expect(s.requests).To(Equal([]string{
			"PATCH /api/v1/namespaces/openshift-assisted-capi", "PATCH /api/v1/namespaces/openshift-assisted-capi/serviceaccounts/cluster-api",
			"PATCH /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/openshift-assisted-capi",
		}))
		token, err := workload.Cached{}.RequestToken(t.Context(), cluster, data, given)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(token.Value).To(Equal("issued"))
		g.Expect(token.Expires).To(BeTemporally("==", s.status.ExpirationTimestamp.Time))
		g.Expect(s.lifetime).To(Equal(want))
		g.Expect(fmt.Sprintf("%v %+v %#v %s", token, token, token, &token)).NotTo(ContainSubstring("issued"))
		s.status = authenticationv1.TokenRequestStatus{}
		_, err = workload.Cached{}.RequestToken(t.Context(), cluster, data, given)
		g.Expect(err).To(MatchError(ContainSubstring("the answer has no token")))
	}
}

func TestAuthoritiesOfAPI(t *testing.T) {
	g := NewWithT(t)
	bundle := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "kube-apiserver-server-ca"},
		Data:       map[string]string{"ca-bundle.crt": "pem"},
	}
	up := connected(t, interceptor.Funcs{}, bundle)
	g.Expect(up.Authorities(t.Context(), cluster, subscriber)).To(BeEquivalentTo("pem"))
	g.Expect(connected(t, interceptor.Funcs{}).Authorities(t.Context(), cluster, subscriber)).To(BeEmpty())
	lost := workload.Cached{Cache: clustercache.NewFakeEmptyClusterCache()}
	g.Expect(lost.Authorities(t.Context(), cluster, subscriber)).To(BeEmpty())
}

// TestFailuresAreRemembered: a cluster that does not answer keeps only one pass waiting.
func TestFailuresAreRemembered(t *testing.T) {
	g, s := NewWithT(t), newAPIServer(t)
	data := s.kubeconfig(t, goodToken)
	c := workload.Cached{Failures: workload.NewMemory(time.Hour)}
	s.status = authenticationv1.TokenRequestStatus{}
	_, first := c.RequestToken(t.Context(), cluster, data, time.Hour)
	_, second := c.RequestToken(t.Context(), cluster, data, time.Hour)
	g.Expect(errors.Unwrap(second)).To(Equal(errors.Unwrap(first)))
	g.Expect(s.requests).To(HaveLen(2), "a token is requested twice before it counts as refused")
	s.status.Token, s.status.ExpirationTimestamp = "issued", metav1.Now()
	_, err := c.RequestToken(t.Context(), cluster, append(data, '\n'), time.Hour)
	g.Expect(err).NotTo(HaveOccurred(), "another kubeconfig is another question")
}

// TestOneFailureIsNone: of several API servers one may be about to end, so that the next attempt makes a connection of its own.
func TestOneFailureIsNone(t *testing.T) {
	g, s := NewWithT(t), newAPIServer(t)
	s.busy = 1
	c := workload.Cached{Failures: workload.NewMemory(time.Hour)}
	token, err := c.RequestToken(t.Context(), cluster, s.kubeconfig(t, goodToken), time.Hour)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(token.Value).To(Equal("issued"))
	g.Expect(s.requests).To(HaveLen(2))
	g.Expect(s.connections.Load()).To(BeEquivalentTo(2))
}

// TestDeclinedIsNotRepeated: what one API server decides, all do.
func TestDeclinedIsNotRepeated(t *testing.T) {
	g, s := NewWithT(t), newAPIServer(t)
	s.busy, s.code = 2, http.StatusNotFound
	_, err := workload.Cached{}.RequestToken(t.Context(), cluster, s.kubeconfig(t, goodToken), time.Hour)
	g.Expect(err).To(HaveOccurred())
	g.Expect(s.requests).To(HaveLen(1))
}

// TestBindingOfAnotherRole: the role of a ClusterRoleBinding cannot be changed.
func TestBindingOfAnotherRole(t *testing.T) {
	g, s := NewWithT(t), newAPIServer(t)
	s.binding = &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "openshift-assisted-capi", UID: "1"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	g.Expect(workload.Cached{}.EnsureAccount(t.Context(), cluster, s.kubeconfig(t, goodToken))).To(Succeed())
	const path = " /apis/rbac.authorization.k8s.io/v1/clusterrolebindings/openshift-assisted-capi"
	g.Expect(s.requests[2:]).To(Equal([]string{"PATCH" + path, "GET" + path, "DELETE" + path, "PATCH" + path}))
}

// TestSilentServer: nothing is left of a handshake that took too long.
func TestSilentServer(t *testing.T) {
	t.Parallel() // It waits.
	g, s := NewWithT(t), newAPIServer(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer silent.Close()
	ended := make(chan error, 1)
	go func() {
		there, err := silent.Accept()
		if err == nil {
			defer there.Close()
			_, err = io.Copy(io.Discard, there)
		}
		ended <- err
	}()
	data := strings.Replace(string(s.kubeconfig(t, goodToken)), s.Listener.Addr().String(), silent.Addr().String(), 1)
	_, err = workload.Cached{}.Ask(t.Context(), cluster, []byte(data), []string{publicName})
	g.Expect(err).To(MatchError("ask Cluster ns/c: connect to " + silent.Addr().String() + ": no handshake within 5s"))
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()), "the connection is closed")
}

// TestTraceOfCredentials: the handshake and the requests are shown below the pass, without the token.
func TestTraceOfCredentials(t *testing.T) {
	g, s, spans := NewWithT(t), newAPIServer(t), tracingtest.New()
	pass, data := spans.Pass(t), s.kubeconfig(t, goodToken)
	_, err := workload.Cached{}.Ask(pass, cluster, data, []string{publicName, internalName})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(workload.Cached{}.EnsureAccount(pass, cluster, data)).To(Succeed())
	_, err = workload.Cached{}.RequestToken(pass, cluster, data, time.Hour)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(spans.Below(pass, "verify certificate of installed cluster")).To(HaveLen(1))
	asked := spans.Below(pass, "installed cluster")
	g.Expect(asked).To(HaveLen(5))
	g.Expect(tracingtest.Value(asked[4], "url.path")).To(HaveSuffix("/token"))
	g.Expect(fmt.Sprint(asked)).NotTo(Or(ContainSubstring(goodToken), ContainSubstring("issued")))
}
