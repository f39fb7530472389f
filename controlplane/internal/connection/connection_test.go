// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// woken is a controller of which only the queue is used.
type woken struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newWoken() woken {
	return woken{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
}

func (w woken) Watch(src source.TypedSource[reconcile.Request]) error {
	return src.Start(context.Background(), w.TypedRateLimitingInterface)
}

// next is what the controller is woken for.
func (w woken) next(t *testing.T) string {
	t.Helper()
	NewWithT(t).Eventually(w.Len, limit).Should(BeNumerically(">", 0))
	request, _ := w.Get()
	w.Done(request)
	return request.Name
}

// named wakes for an object by its name, and for the first read by "all".
func named(o client.Object) []reconcile.Request {
	name := "all"
	if o != nil {
		name = o.GetName()
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}

func (c *Connections) pass(t *testing.T) time.Duration {
	t.Helper()
	result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

// value is what a ConfigMap says; the error is that of the read.
func value(ctx context.Context, c *Connections, name string) (string, error) {
	r, err := c.GetReader(ctx, key)
	if err != nil {
		return "", err
	}
	o := &corev1.ConfigMap{}
	err = r.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, o)
	return o.Data["k"], err
}

func TestWatches(t *testing.T) {
	g := NewWithT(t)
	a, w := newAPI(t), newWoken()
	a.set("a", "1")
	a.set("ignored", "1")
	c := connections(t, a, nil)
	watch := NewWatcher("configmaps", &corev1.ConfigMap{}, w, named)
	g.Expect(c.Watch(t.Context(), key, watch)).To(MatchError(clustercache.ErrClusterNotConnected))
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	g.Expect(c.Watch(t.Context(), key, watch)).To(Succeed())
	g.Expect(c.Watch(t.Context(), key, watch)).To(Succeed(), "it is there already")
	g.Expect(value(t.Context(), c, "a")).To(Equal("1"), "the first read is waited for")
	g.Expect([]string{w.next(t), w.next(t)}).To(ConsistOf("a", "all"))
	_, err := value(t.Context(), c, "ignored")
	g.Expect(client.IgnoreNotFound(err)).To(Succeed(), "what is not kept is not there")
	g.Expect(err).To(HaveOccurred())

	g.Eventually(a.open, limit).Should(Equal(1))
	g.Expect(a.queries).To(ContainElement(And(ContainSubstring("resourceVersion=2"), ContainSubstring("allowWatchBookmarks=true"))))
	a.set("ignored", "2")
	a.set("a", "2")
	g.Expect(w.next(t)).To(Equal("a"))
	g.Expect(value(t.Context(), c, "a")).To(Equal("2"))
	a.set("b", "1")
	g.Expect(w.next(t)).To(Equal("b"))
	list := &corev1.ConfigMapList{}
	r, err := c.GetReader(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.List(t.Context(), list)).To(Succeed())
	g.Expect(list.Items).To(HaveExactElements(
		And(HaveField("Name", "a"), HaveField("ManagedFields", BeEmpty())), HaveField("Name", "b")))
	list.Items[0].Data["k"] = "changed"
	g.Expect(value(t.Context(), c, "a")).To(Equal("2"), "it was a copy")
	a.remove("b")
	g.Expect(w.next(t)).To(Equal("b"))
	_, err = value(t.Context(), c, "b")
	g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	g.Expect(err).To(HaveOccurred())
	g.Expect(a.read()).To(Equal(1), "all else is told by the watch")
	g.Expect(w.Len()).To(BeZero())

	late := newWoken()
	g.Expect(c.Watch(t.Context(), key, NewWatcher("late", &corev1.ConfigMap{}, late, named))).To(Succeed())
	g.Expect(late.next(t)).To(Equal("a"), "what is known already")
	g.Expect(a.open()).To(Equal(1), "one stream is enough for a kind")
}

// TestWatchEnds: what changes while no watch is open wakes the subscribers when the kind is read next.
func TestWatchEnds(t *testing.T) {
	g := NewWithT(t)
	a, w := newAPI(t), newWoken()
	a.set("a", "1")
	a.set("gone", "1")
	a.set("same", "1")
	c := connections(t, a, nil)
	c.pass(t)
	g.Expect(c.Watch(t.Context(), key, NewWatcher("configmaps", &corev1.ConfigMap{}, w, named))).To(Succeed())
	g.Expect([]string{w.next(t), w.next(t), w.next(t), w.next(t)}).To(ConsistOf("a", "gone", "same", "all"))
	g.Eventually(a.open, limit).Should(Equal(1))
	a.end(expired)
	a.set("a", "2")
	a.remove("gone")
	g.Expect([]string{w.next(t), w.next(t)}).To(ConsistOf("a", "gone"))
	g.Expect(value(t.Context(), c, "a")).To(Equal("2"))
	g.Eventually(a.open, limit).Should(Equal(1))
	g.Expect(w.Len()).To(BeZero())
}

// TestKindThatCannotBeRead: until all was read once it is told why not, and then who watches is woken, though there may be no object.
func TestKindThatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		code  int
		match func(error) bool
	}{
		"forbidden":  {http.StatusForbidden, func(err error) bool { return err != nil && !meta.IsNoMatchError(err) }},
		"not served": {http.StatusNotFound, meta.IsNoMatchError},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, w := newAPI(t), newWoken()
			a.broken = tt.code
			c := connections(t, a, nil)
			c.pass(t)
			g.Expect(c.Watch(t.Context(), key, NewWatcher("configmaps", &corev1.ConfigMap{}, w, named))).To(Succeed())
			_, err := value(t.Context(), c, "a")
			g.Expect(err).To(Satisfy(tt.match))
			g.Expect(w.Len()).To(BeZero())
			a.with(func() { a.broken = 0 })
			g.Expect(w.next(t)).To(Equal("all"))
			_, err = value(t.Context(), c, "a")
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			g.Eventually(a.open, limit).Should(Equal(1))
			reads := a.read()
			a.with(func() { a.broken = tt.code })
			a.end(expired)
			g.Eventually(a.read, limit).Should(BeNumerically(">", reads))
			_, err = value(t.Context(), c, "a")
			g.Expect(client.IgnoreNotFound(err)).To(Succeed(), "what was known stands")
		})
	}
}

// TestSlowFirstRead: until all has been read, and nothing has failed, nothing is known, and who watches is woken then.
func TestSlowFirstRead(t *testing.T) {
	g := NewWithT(t)
	a, w := newAPI(t), newWoken()
	a.set("a", "1")
	a.held = make(chan struct{})
	c := connections(t, a, nil)
	c.pass(t)
	g.Expect(c.Watch(t.Context(), key, NewWatcher("configmaps", &corev1.ConfigMap{}, w, named))).To(Succeed())
	_, err := value(t.Context(), c, "a")
	g.Expect(err).To(MatchError(ErrNotRead))
	g.Expect(w.Len()).To(BeZero())
	close(a.held)
	g.Expect([]string{w.next(t), w.next(t)}).To(ConsistOf("a", "all"))
	g.Expect(value(t.Context(), c, "a")).To(Equal("1"))
}

func TestUnknownKinds(t *testing.T) {
	g := NewWithT(t)
	c := connections(t, newAPI(t), nil)
	c.pass(t)
	g.Expect(c.Watch(t.Context(), key, NewWatcher("nodes", &corev1.Node{}, newWoken(), named))).To(
		MatchError(ContainSubstring("no kind that can be watched")))
	r, err := c.GetReader(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Get(t.Context(), key, &corev1.ConfigMap{})).To(MatchError(ContainSubstring("not watched")))
	g.Expect(r.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("ns"))).To(MatchError(ContainSubstring("cannot be selected")))
}

func TestProbes(t *testing.T) {
	g := NewWithT(t)
	a := newAPI(t)
	c := connections(t, a, nil)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.now = func() time.Time { return now }
	connected := func() bool { _, err := c.GetRESTConfig(t.Context(), key); return err == nil }
	health := func() clustercache.HealthCheckingState { return c.GetHealthCheckingState(t.Context(), key) }
	g.Expect(health()).To(BeZero())
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	g.Expect(health()).To(Equal(clustercache.HealthCheckingState{LastProbeTime: now, LastProbeSuccessTime: now}))
	now = now.Add(time.Second)
	g.Expect(c.pass(t)).To(Equal(probeInterval-time.Second), "no probe is due")
	answered := now.Add(-time.Second)

	a.with(func() { a.token = "another" })
	now = now.Add(probeInterval)
	g.Expect(c.pass(t)).To(Equal(time.Millisecond), "the kubeconfig may be another one by now")
	g.Expect(connected()).To(BeFalse())
	g.Expect(health().LastProbeSuccessTime).To(Equal(answered))
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval), "it is not")
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval))
	a.with(func() { a.token = token })
	now = now.Add(c.options.RetryInterval)
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	g.Expect(connected()).To(BeTrue())

	a.Server.CloseClientConnections()
	a.Server.Close()
	for range failureThreshold - 1 {
		now = now.Add(probeInterval)
		g.Expect(c.pass(t)).To(Equal(probeInterval))
		g.Expect(connected()).To(BeTrue())
	}
	now = now.Add(probeInterval)
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval))
	g.Expect(connected()).To(BeFalse())
	g.Expect(health().ConsecutiveFailures).To(Equal(failureThreshold))
}

// TestClosedConnection: its watches end, and a new connection has none.
func TestClosedConnection(t *testing.T) {
	g := NewWithT(t)
	a, w := newAPI(t), newWoken()
	c := connections(t, a, nil)
	c.pass(t)
	watch := NewWatcher("configmaps", &corev1.ConfigMap{}, w, named)
	g.Expect(c.Watch(t.Context(), key, watch)).To(Succeed())
	g.Expect(w.next(t)).To(Equal("all"))
	before, err := c.connected(key)
	g.Expect(err).NotTo(HaveOccurred())
	cluster := &clusterv1.Cluster{}
	hub := c.reader.(client.Client)
	g.Expect(hub.Get(t.Context(), key, cluster)).To(Succeed())
	cluster.Labels = map[string]string{"other": "provider"}
	g.Expect(hub.Update(t.Context(), cluster)).To(Succeed())
	g.Expect(c.pass(t)).To(BeZero())
	g.Expect(before.ends.Err()).To(MatchError(context.Canceled))
	g.Expect(c.Watch(t.Context(), key, watch)).To(MatchError(clustercache.ErrClusterNotConnected))
	g.Expect(c.GetHealthCheckingState(t.Context(), key)).To(BeZero(), "nothing of it is remembered")
	cluster.Labels = nil
	g.Expect(hub.Update(t.Context(), cluster)).To(Succeed())
	c.pass(t)
	g.Expect(c.Watch(t.Context(), key, watch)).To(Succeed())
	g.Expect(w.next(t)).To(Equal("all"))
}

// tellOf has somebody told of connections, and of a cluster that is silent for five minutes.
func tellOf(t *testing.T, c *Connections, told woken) {
	t.Helper()
	to := func(_ context.Context, o client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	src := c.GetClusterSource("test", to, clustercache.WatchForProbeFailure(5*time.Minute))
	NewWithT(t).Expect(src.Start(t.Context(), told.TypedRateLimitingInterface)).To(Succeed())
}

func TestSources(t *testing.T) {
	g := NewWithT(t)
	a, told := newAPI(t), newWoken()
	c := connections(t, a, nil)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.now = func() time.Time { return now }
	tellOf(t, c, told)
	c.pass(t)
	g.Expect(told.next(t)).To(Equal(key.Name), "connected")
	now = now.Add(probeInterval)
	c.pass(t)
	a.with(func() { a.token = "another" })
	now = now.Add(probeInterval)
	c.pass(t)
	g.Expect(told.next(t)).To(Equal(key.Name), "disconnected")
	c.pass(t)
	g.Expect(told.Len()).To(BeZero())
	now = now.Add(5 * time.Minute)
	c.pass(t)
	g.Expect(told.next(t)).To(Equal(key.Name), "silent for too long")
	now = now.Add(5 * time.Minute)
	c.pass(t)
	g.Consistently(told.Len, 100*time.Millisecond).Should(BeZero(), "which is told once")
}

// TestFirstFailureIsTold: nobody asks a cluster why it is not connected before a first attempt has failed, so that has to be told.
func TestFirstFailureIsTold(t *testing.T) {
	g := NewWithT(t)
	a, told := newAPI(t), newWoken()
	a.with(func() { a.token = "another" })
	c := connections(t, a, nil)
	tellOf(t, c, told)
	g.Expect(c.GetHealthCheckingState(t.Context(), key).LastProbeTime).To(BeZero())
	c.pass(t)
	g.Expect(told.next(t)).To(Equal(key.Name))
	g.Expect(c.GetHealthCheckingState(t.Context(), key).LastProbeTime).NotTo(BeZero())
}

// TestKubeconfigsThatAreRefused: no file is read for a kubeconfig, be it the manager's own token, and nobody is called with it.
func TestKubeconfigsThatAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	NewWithT(t).Expect(os.WriteFile(file, []byte("the manager's own"), 0o600)).To(Succeed())
	for name, edit := range map[string]func(*clientcmdapi.Config){
		"command": func(k *clientcmdapi.Config) {
			k.AuthInfos["u"].Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1"}
		},
		"provider": func(k *clientcmdapi.Config) {
			k.AuthInfos["u"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		},
		"file with a token":         func(k *clientcmdapi.Config) { k.AuthInfos["u"].TokenFile = file },
		"file with a certificate":   func(k *clientcmdapi.Config) { k.AuthInfos["u"].ClientCertificate = file },
		"file with a key":           func(k *clientcmdapi.Config) { k.AuthInfos["u"].ClientKey = file },
		"file with the authorities": func(k *clientcmdapi.Config) { k.Clusters["c"].CertificateAuthority = file },
		"no server":                 func(k *clientcmdapi.Config) { k.CurrentContext = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := newAPI(t)
			c := connections(t, a, edit)
			_, err := c.open(t.Context(), key)
			g.Expect(err).To(MatchError(And(
				ContainSubstring("the kubeconfig"), Not(ContainSubstring(token)), Not(ContainSubstring("the manager's own")),
			)))
			if strings.HasPrefix(name, "file") {
				g.Expect(err).To(MatchError(ContainSubstring("user u or cluster c of the kubeconfig names a file")))
			}
			g.Expect(a.asked()).To(BeZero())
		})
	}
}
