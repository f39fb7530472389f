// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// granted is how long a token lives in the test, whatever is asked for.
const granted = time.Minute

// TestCredentials asks a cluster for tokens that live for a short time only, and lets it sign its certificate with another authority.
func TestCredentials(t *testing.T) {
	g := NewWithT(t)
	m := startManager(t, g, Options{TokenLifetime: granted, Endpoint: knownOnce()})
	key := types.NamespacedName{Namespace: "default", Name: "demo"}
	m.Apply(assisted.ClusterSpec{
		Key: key, Name: "demo", BaseDomain: "example.com", APIVIPs: []string{"127.31.7.6"}, ClusterID: "0d3c9a52", ReleaseImage: "release:1",
		Installing: true,
	})
	g.Eventually(func() bool { return m.Status(key).APIUp }, time.Minute).Should(BeTrue())
	kubeconfig, ok := m.Kubeconfig(key, true)
	g.Expect(ok).To(BeTrue())
	g.Expect(m.Accepts(t.Context(), key, kubeconfig)).To(BeTrue(), "it runs on where no management cluster knows it any more")
	g.Expect(m.Accepts(t.Context(), key, []byte("{}"))).To(BeFalse())
	installer, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	installer.Host, installer.ServerName = "https://127.31.7.6:6443", "api.demo.example.com"

	token := requestToken(t, installer)
	bearer := rest.AnonymousClientConfig(installer)
	bearer.BearerToken = token
	review := &authenticationv1.SelfSubjectReview{}
	g.Expect(clientFor(g, bearer).Create(t.Context(), review)).To(Succeed())
	g.Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:default:robot"))
	g.Expect(clientFor(g, installer).Create(t.Context(), review)).To(Succeed())
	g.Expect(review.Status.UserInfo.Groups).To(ContainElement("system:masters"), "a client certificate is still its owner's")
	bearer.BearerToken = token[:len(token)-2]
	g.Expect(clientFor(g, bearer).Create(t.Context(), &authenticationv1.SelfSubjectReview{})).NotTo(Succeed())

	expectRotation(t, m, key, installer)
}

// knownOnce finds a cluster's address once, as a management cluster does from which the cluster is moved away then.
func knownOnce() func(context.Context, assisted.ClusterSpec) (string, int, error) {
	var asked atomic.Int32
	return func(ctx context.Context, spec assisted.ClusterSpec) (string, int, error) {
		if asked.Add(1) > 1 {
			return "", 0, errors.New("the cluster was moved away")
		}
		return firstVIP(ctx, spec)
	}
}

// clientFor makes a client.
func clientFor(g Gomega, config *rest.Config) client.Client {
	c, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// requestToken asks for a day, and expects a minute.
func requestToken(t *testing.T, config *rest.Config) string {
	t.Helper()
	g := NewWithT(t)
	remote := clientFor(g, config)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
	g.Expect(remote.Create(t.Context(), account)).To(Succeed())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	g.Expect(remote.SubResource("token").Create(t.Context(), account, request)).To(Succeed())
	g.Expect(time.Until(request.Status.ExpirationTimestamp.Time)).To(And(BeNumerically(">", 0), BeNumerically("<=", granted)))
	return request.Status.Token
}

// expectRotation expects that who trusts the authority that was announced goes on, and nobody else.
func expectRotation(t *testing.T, m *Manager, key types.NamespacedName, before *rest.Config) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(m.SignAgain(key)).NotTo(Succeed(), "no authority was announced")
	added, err := m.RotateAuthority(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	told := &corev1.ConfigMap{}
	name := types.NamespacedName{Namespace: managedNamespace, Name: serverAuthority}
	g.Expect(clientFor(g, before).Get(t.Context(), name, told)).To(Succeed())
	g.Expect(told.Data[authorityBundle]).To(HaveSuffix(string(added)))
	g.Expect(m.SignAgain(key)).To(Succeed())
	after := rest.CopyConfig(before)
	after.CAData = added
	g.Eventually(func() error { return clientFor(g, after).Get(t.Context(), name, told) }, time.Minute).Should(Succeed())
	g.Expect(clientFor(g, before).Get(t.Context(), name, told)).To(MatchError(ContainSubstring("certificate signed by unknown authority")))
}
