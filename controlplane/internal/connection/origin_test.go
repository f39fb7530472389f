// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/secret"
)

// publish changes the Secret with the kubeconfig of the Cluster.
func (c *Connections) publish(t *testing.T, change func(*corev1.Secret)) {
	t.Helper()
	g := NewWithT(t)
	hub, holder := c.reader.(client.Client), &corev1.Secret{}
	name := client.ObjectKey{Namespace: key.Namespace, Name: secret.Name(key.Name, secret.Kubeconfig)}
	g.Expect(hub.Get(t.Context(), name, holder)).To(Succeed())
	change(holder)
	g.Expect(hub.Update(t.Context(), holder)).To(Succeed())
}

// holding puts a kubeconfig into a Secret.
func holding(kubeconfig []byte) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[secret.KubeconfigDataName] = kubeconfig }
}

// TestCorrectedKubeconfig: a kubeconfig leads to another cluster, which answers, and is corrected. The next probe connects with the right
// one, tells those that watch, and the other cluster is not called any more.
func TestCorrectedKubeconfig(t *testing.T) {
	g := NewWithT(t)
	wrong, right, w, told := newAPI(t), newAPI(t), newWoken(), newWoken()
	wrong.set("a", "of the wrong one")
	right.set("a", "of the right one")
	c := connections(t, wrong, nil)
	now := c.clock()
	to := func(_ context.Context, o client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	g.Expect(c.GetClusterSource("test", to).Start(t.Context(), told.TypedRateLimitingInterface)).To(Succeed())
	c.pass(t)
	g.Expect(told.next(t)).To(Equal(key.Name), "connected")
	watch := NewWatcher("configmaps", &corev1.ConfigMap{}, w, named)
	g.Expect(c.Watch(t.Context(), key, watch)).To(Succeed())
	g.Expect([]string{w.next(t), w.next(t)}).To(ConsistOf("a", "all"))
	g.Eventually(wrong.open, limit).Should(Equal(1))
	before, err := c.connected(key)
	g.Expect(err).NotTo(HaveOccurred())

	c.publish(t, holding(right.kubeconfig(t, nil)))
	now.pass(probeInterval)
	asked := wrong.asked()
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	g.Expect(wrong.asked()).To(Equal(asked), "the other cluster is not even probed")
	g.Expect(told.next(t)).To(Equal(key.Name), "connected anew")
	g.Expect(before.ends.Err()).To(MatchError(context.Canceled))
	g.Eventually(wrong.open, limit).Should(BeZero(), "its watches end")
	g.Expect(c.Watch(t.Context(), key, watch)).To(Succeed())
	g.Expect(value(t.Context(), c, "a")).To(Equal("of the right one"))
	g.Expect(c.GetHealthCheckingState(t.Context(), key)).To(Equal(
		clustercache.HealthCheckingState{LastProbeTime: now.Time, LastProbeSuccessTime: now.Time}))
}

// TestCorrectedKubeconfigOfSilentCluster: the right cluster does not answer. The connection to the other one is closed all the same, and
// the right one is tried again.
func TestCorrectedKubeconfigOfSilentCluster(t *testing.T) {
	g := NewWithT(t)
	wrong, right := newAPI(t), newAPI(t)
	right.token = "another"
	c := connections(t, wrong, nil)
	now := c.clock()
	c.pass(t)
	c.publish(t, holding(right.kubeconfig(t, nil)))
	now.pass(probeInterval)
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval))
	g.Expect(c.connected(key)).Error().To(MatchError(clustercache.ErrClusterNotConnected))
	right.with(func() { right.token = token })
	now.pass(c.options.RetryInterval)
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	g.Expect(c.connected(key)).Error().NotTo(HaveOccurred())
}

// TestKubeconfigThatChanges: the connection is made anew when the kubeconfig leads to another server or verifies it otherwise, and stays
// with another credential, or without a kubeconfig that can be used.
func TestKubeconfigThatChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(*clientcmdapi.Config)
		data  []byte
		again bool
	}{
		"nothing of it": {edit: func(*clientcmdapi.Config) {}},
		"a new token":   {edit: func(k *clientcmdapi.Config) { k.AuthInfos["u"].Token = "new" }},
		"another kind of credential": {edit: func(k *clientcmdapi.Config) {
			k.AuthInfos["u"] = &clientcmdapi.AuthInfo{Username: "u", Password: "p"}
		}},
		"another name of its context": {edit: func(k *clientcmdapi.Config) {
			k.Contexts["y"], k.CurrentContext = k.Contexts["x"], "y"
		}},
		"no kubeconfig any more":           {data: []byte("none")},
		"nothing in the Secret any more":   {data: nil},
		"a kubeconfig that names a file":   {edit: func(k *clientcmdapi.Config) { k.AuthInfos["u"].TokenFile = "/token" }},
		"the name in the certificate":      {edit: func(k *clientcmdapi.Config) { k.Clusters["c"].TLSServerName = "example.com" }, again: true},
		"that no certificate is looked at": {edit: insecure, again: true},
		"the authorities": {edit: func(k *clientcmdapi.Config) {
			other := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: otherCertificate(t).Certificate[0]})
			k.Clusters["c"].CertificateAuthorityData = append(k.Clusters["c"].CertificateAuthorityData, other...)
		}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := newAPI(t)
			c := connections(t, a, nil)
			now := c.clock()
			c.pass(t)
			before, err := c.connected(key)
			g.Expect(err).NotTo(HaveOccurred())
			data := tt.data
			if tt.edit != nil {
				data = a.kubeconfig(t, tt.edit)
			}
			c.publish(t, func(s *corev1.Secret) {
				s.Labels = map[string]string{"changed": "yes"}
				holding(data)(s)
				if data == nil {
					delete(s.Data, secret.KubeconfigDataName)
				}
			})
			now.pass(probeInterval)
			g.Expect(c.pass(t)).To(Equal(probeInterval))
			after, err := c.connected(key)
			g.Expect(err).NotTo(HaveOccurred())
			if tt.again {
				g.Expect(after).NotTo(BeIdenticalTo(before))
			} else {
				g.Expect(after).To(BeIdenticalTo(before))
			}
			now.pass(probeInterval)
			g.Expect(c.pass(t)).To(Equal(probeInterval))
			g.Expect(c.connected(key)).To(BeIdenticalTo(after), "nothing has changed since")
		})
	}
}

// insecure is a kubeconfig with which the certificate of the server is not looked at.
func insecure(k *clientcmdapi.Config) {
	k.Clusters["c"].CertificateAuthorityData, k.Clusters["c"].InsecureSkipTLSVerify = nil, true
}

// uncopied reads Secrets, and remembers whether each was to be copied.
type uncopied struct {
	client.Reader

	reads []bool
}

func (u *uncopied) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	u.reads = append(u.reads, slices.Contains(opts, client.GetOption(client.UnsafeDisableDeepCopy)))
	return u.Reader.Get(ctx, key, o, opts...)
}

// TestCostOfUnchangedKubeconfig: of thousands of clusters each is looked at every ten seconds. That takes one look into the cache, which
// copies no Secret, and no kubeconfig that has not changed is parsed.
func TestCostOfUnchangedKubeconfig(t *testing.T) {
	g := NewWithT(t)
	a := newAPI(t)
	c := connections(t, a, nil)
	now, reads := c.clock(), &uncopied{Reader: c.options.SecretClient}
	c.options.SecretClient = reads
	c.pass(t)
	made, err := c.connected(key)
	g.Expect(err).NotTo(HaveOccurred())
	made.origin.leads = destination{} // Whoever parsed the kubeconfig would see that it leads elsewhere.
	asked := a.asked()
	now.pass(probeInterval)
	c.pass(t)
	now.pass(time.Second)
	c.pass(t)
	g.Expect(c.connected(key)).To(BeIdenticalTo(made))
	g.Expect(reads.reads).To(Equal([]bool{true, true}), "once to connect, and once with the probe")
	g.Expect(a.asked()).To(Equal(asked+1), "the probe")
}
