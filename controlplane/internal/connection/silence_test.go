// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// wire is a network in front of an API server, which can go silent: it takes connections and what is sent, and nothing comes back, no end
// of a connection either.
type wire struct {
	net.Listener

	to string

	mu sync.Mutex
	// silent are all connections that come now, and those that were there when it began: cut is closed then.
	silent bool
	cut    chan struct{}
	conns  []net.Conn
}

// newWire makes a network in front of an address.
func newWire(t *testing.T, to string) *wire {
	t.Helper()
	ctx := t.Context()
	w := &wire{Listener: listen(t, "127.0.0.1:0"), to: to, cut: make(chan struct{})}
	go func() {
		for {
			conn, err := w.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				w.carry(ctx, conn)
			}
		}
	}()
	t.Cleanup(w.end)
	return w
}

func (w *wire) carry(ctx context.Context, conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, conn)
	if w.silent {
		return
	}
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	w.conns = append(w.conns, server)
	go pipe(conn, server, w.cut)
	go pipe(server, conn, w.cut)
}

// pipe carries what is read until it cannot, and from the cut on nothing, and no end.
func pipe(from, to net.Conn, cut <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-cut:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			_ = to.Close()
			return
		}
	}
}

// silence cuts all connections without a word. New ones are carried only if told so.
func (w *wire) silence(carryNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.cut)
	w.cut, w.silent = make(chan struct{}), !carryNew
}

func (w *wire) speak() { w.mu.Lock(); defer w.mu.Unlock(); w.silent = false }

// taken is how many connections there were.
func (w *wire) taken() int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.conns) }

// end ends all connections.
func (w *wire) end() {
	_ = w.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
}

// kubeconfig is one for an API server behind the network. Kubeconfigs of several Clusters, and of several tests, differ in their
// certificates: client-go shares connections of the same.
func (w *wire) kubeconfig(t *testing.T, a *api, cluster string) []byte {
	t.Helper()
	return a.kubeconfig(t, func(k *clientcmdapi.Config) {
		k.Clusters["c"].Server = "https://" + w.Addr().String()
		k.Clusters["c"].CertificateAuthorityData = append(k.Clusters["c"].CertificateAuthorityData, "\n# "+t.Name()+cluster+"\n"...)
	})
}

// TestHalfOpen: a server that takes connections and never answers is one that does not answer, for a connection that is to be made as for
// one that was made, and the connection is made when it answers again.
func TestHalfOpen(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "0") // Without pings.
	g := NewWithT(t)
	a := newAPI(t)
	w := newWire(t, a.Listener.Addr().String())
	w.silence(false)
	c := connectionsOf(t, map[string][]byte{key.Name: w.kubeconfig(t, a, key.Name)})
	now := c.clock()
	g.Expect(c.pass(t)).To(Equal(c.options.RetryInterval))
	g.Expect(c.connected(key)).Error().To(MatchError(clustercache.ErrClusterNotConnected))
	w.speak()
	now.pass(c.options.RetryInterval)
	g.Expect(c.pass(t)).To(Equal(probeInterval))
	made, err := c.connected(key)
	g.Expect(err).NotTo(HaveOccurred())
	w.silence(false)
	known := c.known(key)
	known.health.ConsecutiveFailures = failureThreshold - 2 // The others would be the same.
	for _, want := range []time.Duration{probeInterval, c.options.RetryInterval} {
		g.Expect(c.connected(key)).To(BeIdenticalTo(made))
		now.pass(probeInterval)
		g.Expect(c.pass(t)).To(Equal(want))
	}
	g.Expect(c.connected(key)).Error().To(MatchError(clustercache.ErrClusterNotConnected))
	g.Expect(made.ends.Err()).To(HaveOccurred())
}

// TestSilentStream: HTTP/2 pings find a stream that died silently, before a probe does, and the watch reports what changed since.
func TestSilentStream(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	g := NewWithT(t)
	a, woken := newAPI(t), newWoken()
	w := newWire(t, a.Listener.Addr().String())
	c := connectionsOf(t, map[string][]byte{key.Name: w.kubeconfig(t, a, key.Name)})
	c.pass(t)
	g.Expect(c.Watch(t.Context(), key, NewWatcher("configmaps", &corev1.ConfigMap{}, woken, named))).To(Succeed())
	g.Expect(woken.next(t)).To(Equal("all"))
	g.Eventually(a.open, limit).Should(Equal(1))
	w.silence(true)
	a.set("a", "1")
	g.Expect(woken.next(t)).To(Equal("a"))
	g.Expect(value(t.Context(), c, "a")).To(Equal("1"))
	g.Expect(c.connected(key)).Error().NotTo(HaveOccurred())
}

// TestDarkClusters: 500 clusters that take connections and never answer leave nothing behind when they are gone, and are no trouble for
// one that answers.
func TestDarkClusters(t *testing.T) {
	const dark = 500
	g := NewWithT(t)
	a := newAPI(t)
	w := newWire(t, "")
	w.silence(false)
	kubeconfigs := map[string][]byte{key.Name: a.kubeconfig(t, nil)}
	for i := range dark {
		name := fmt.Sprintf("dark-%d", i)
		kubeconfigs[name] = w.kubeconfig(t, a, name)
	}
	c := connectionsOf(t, kubeconfigs)
	before := runtime.NumGoroutine()
	all := func(each func(client.ObjectKey) error) *errgroup.Group {
		passes := &errgroup.Group{}
		for i := range dark {
			passes.Go(func() error { return each(client.ObjectKey{Namespace: key.Namespace, Name: fmt.Sprintf("dark-%d", i)}) })
		}
		return passes
	}
	pass := func(want time.Duration) func(client.ObjectKey) error {
		return func(dark client.ObjectKey) error {
			result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: dark})
			if err == nil && result.RequeueAfter == want {
				return nil
			}
			return fmt.Errorf("%v %w", result, err)
		}
	}
	g.Expect(all(pass(c.options.RetryInterval)).Wait()).To(Succeed())
	g.Expect(w.taken()).To(BeNumerically(">=", 1))
	g.Expect(c.pass(t)).To(Equal(probeInterval))

	hub := c.reader.(client.Client)
	g.Expect(all(func(dark client.ObjectKey) error {
		cluster := &clusterv1.Cluster{}
		cluster.Namespace, cluster.Name = dark.Namespace, dark.Name
		if err := hub.Delete(t.Context(), cluster); err != nil {
			return err
		}
		return pass(0)(dark)
	}).Wait()).To(Succeed())
	g.Expect(c.clusters).To(HaveLen(1))
	w.end()
	g.Eventually(runtime.NumGoroutine, limit).Should(BeNumerically("<", before+dark/10))
	g.Expect(c.pass(t)).To(BeNumerically(">", 0))
}
