// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// maxGap is how long a connection may be missing, and requests may fail, while tokens are renewed.
	maxGap = 5 * time.Second
	// connectRetry is how long a ClusterCache waits after it could not connect, as it does with a token that was just revoked.
	connectRetry = 30 * time.Second
)

// connections are those of a manager that has just started, and so uses what the kubeconfig holds now.
func (s *story) connections(t *testing.T) clustercache.ClusterCache {
	t.Helper()
	g := NewWithT(t)
	mgr, err := ctrl.NewManager(s.world.Management.Admin(), ctrl.Options{
		Scheme: s.world.Client.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	clusters, err := clustercache.SetupWithManager(t.Context(), mgr, clustercache.Options{
		SecretClient: mgr.GetClient(), Client: clustercache.ClientOptions{UserAgent: t.Name()},
	}, controller.Options{SkipNameValidation: new(true)})
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = mgr.Start(t.Context()) }()
	return clusters
}

// gaps are the longest times for which somebody asked a connection in vain.
type gaps struct {
	mu sync.Mutex
	// connection is how long there was none, and request how long requests failed.
	connection, request sandbox.Gap
}

// take returns what was noted since the last time.
func (p *gaps) take() (connection, request time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	connection, request = p.connection.Longest, p.request.Longest
	p.connection.Longest, p.request.Longest = 0, 0
	return connection, request
}

// measure asks for the connection, and makes a request with it, again and again until the test ends.
func (s *story) measure(t *testing.T, clusters clustercache.ClusterCache) *gaps {
	t.Helper()
	measured := &gaps{}
	go wait.UntilWithContext(t.Context(), func(ctx context.Context) {
		_, err := clusters.GetClient(ctx, s.key())
		connected := err == nil
		if connected {
			var remote client.Client
			if remote, err = clusters.GetUncachedClient(ctx, s.key()); err == nil {
				err = remote.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
			}
		}
		if ctx.Err() != nil {
			return
		}
		measured.mu.Lock()
		defer measured.mu.Unlock()
		measured.connection.Note(time.Now(), connected)
		measured.request.Note(time.Now(), err == nil)
	}, poll/5)
	return measured
}

func (s *story) reconnects(t *testing.T) {
	g, clusters := NewWithT(t), s.connections(t)
	uses := func() string {
		connected, err := clusters.GetRESTConfig(t.Context(), s.key())
		if err != nil {
			return ""
		}
		return connected.BearerToken
	}
	eventually(t, settleTimeout, func(g Gomega) { g.Expect(uses()).To(Equal(s.config(g).BearerToken)) })
	revoked, measured := uses(), s.measure(t, clusters)
	for range 3 {
		before, secret := s.config(g).BearerToken, &corev1.Secret{}
		s.get(g, clusterName+"-kubeconfig", secret)
		s.update(g, secret, func() { delete(secret.Annotations, controlplanev1.KubeconfigTokenAnnotation) })
		eventually(t, settleTimeout, func(g Gomega) { g.Expect(s.config(g).BearerToken).NotTo(Or(BeEmpty(), Equal(before))) })
	}
	rotated, err := s.world.Workload.RotateAuthority(t.Context(), s.install())
	g.Expect(err).NotTo(HaveOccurred())
	eventually(t, settleTimeout, func(g Gomega) { g.Expect(string(s.config(g).CAData)).To(ContainSubstring(string(rotated))) })
	consistently(t, func(g Gomega) { g.Expect(uses()).NotTo(BeEmpty()) })
	connection, request := measured.take()
	t.Logf("While tokens were renewed there was no connection for %s, and requests failed for %s", connection, request)
	g.Expect(connection).To(BeNumerically("<", maxGap), "the token before is valid as long again")
	g.Expect(request).To(BeNumerically("<", maxGap), "as are requests with it")

	eventually(t, settleTimeout, func(g Gomega) {
		g.Expect(time.Since(s.issued(g))).To(BeNumerically(">", 12*time.Second), "the manager's cache shows the ServiceAccount by now")
	})
	// The next probe, which finds that the token is refused, is then as far away as it can be.
	probed := func() time.Time { return clusters.GetHealthCheckingState(t.Context(), s.key()).LastProbeTime }
	last, before := probed(), s.config(g).BearerToken
	eventually(t, settleTimeout, func(g Gomega) { g.Expect(probed()).NotTo(Equal(last)) })
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-assisted-capi", Name: "cluster-api"}}
	g.Expect(s.installed(g).Delete(t.Context(), account)).To(Succeed())
	eventually(t, settleTimeout, func(g Gomega) {
		g.Expect(s.config(g).BearerToken).NotTo(Or(BeEmpty(), Equal(before)))
		s.works(t, g)
	})
	// A probe that comes before the new token connects with the old one once more, and fails. No bound is as short as that of renewals.
	eventually(t, connectRetry+settleTimeout, func(g Gomega) { g.Expect(uses()).NotTo(Or(BeEmpty(), Equal(revoked))) })
	connection, request = measured.take()
	t.Logf("After the revocation there was no connection for %s, and requests failed for %s", connection, request)
}

// issued is when the token that is published now was issued.
func (s *story) issued(g Gomega) time.Time {
	secret, life := &corev1.Secret{}, struct{ Expires, RenewAfter time.Time }{}
	s.get(g, clusterName+"-kubeconfig", secret)
	g.Expect(json.Unmarshal([]byte(secret.Annotations[controlplanev1.KubeconfigTokenAnnotation]), &life)).To(Succeed())
	return life.RenewAfter.Add(-life.Expires.Sub(life.RenewAfter))
}
