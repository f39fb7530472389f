// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// cluster is one installed cluster. run owns everything but what mu guards.
type cluster struct {
	manager *Manager
	cancel  context.CancelFunc

	mu             sync.Mutex
	spec           assisted.ClusterSpec
	status         assisted.ClusterStatus
	server         APIServer
	extraCA        []byte
	installingFrom time.Time
	down           bool
	downUntil      time.Time

	// etcdLock guards etcd, which exists once the installation is complete, and whether it has ever lost its quorum.
	etcdLock   sync.Mutex
	etcd       *etcd.Cluster
	lostQuorum bool
	// etcdSeeded says that the API shows etcd.
	etcdSeeded bool
	// updates are the operators that bring another release.
	updates updates
	// shownOperators is what every ClusterOperator was last made to say.
	shownOperators map[string]operatorStatus

	client   client.Client
	proxy    *proxy
	kubelets *kubelets
	seeded   bool
	// beats is how often sync was called.
	beats int
	// completed says that the ClusterVersion tells of the end of the installation, available how many of the operators are available.
	completed bool
	available int
	// runsFrom is when the first Node had joined: the operators need one to run on.
	runsFrom time.Time
	nodes    map[string]*nodeProgress
	// silent is since when the kubelet of a host does not run.
	silent map[string]time.Time
	// host and port are the address of the API, once it was found.
	host string
	port int
	// admitted are the disks of day-2 hosts whose kubelets have a certificate.
	admitted map[string]bool
}

// nodeProgress is when a host's kubelet started and when its Node joined.
type nodeProgress struct {
	started, joined time.Time
	labelled        bool
	requested       bool
	// restarted says that the kubelet had joined before it started.
	restarted bool
}

func newCluster(m *Manager, spec assisted.ClusterSpec) *cluster {
	return &cluster{
		manager: m, spec: spec, nodes: map[string]*nodeProgress{}, silent: map[string]time.Time{}, proxy: &proxy{},
		admitted: map[string]bool{},
		updates:  newUpdates(), shownOperators: map[string]operatorStatus{},
	}
}

func (c *cluster) setSpec(spec assisted.ClusterSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spec.Installing && c.installingFrom.IsZero() {
		c.installingFrom = time.Now()
	}
	c.spec = spec
}

func (c *cluster) wanted() assisted.ClusterSpec {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec
}

func (c *cluster) observed() assisted.ClusterStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return assisted.ClusterStatus{APIUp: c.status.APIUp, Nodes: maps.Clone(c.status.Nodes)}
}

func (c *cluster) apiServer() APIServer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

func (c *cluster) setDown(d time.Duration, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.downUntil = down, time.Time{}
	if down && d > 0 {
		c.downUntil = time.Now().Add(d)
	}
}

// answers says whether the API should be reachable now. Without a quorum of etcd it is not.
func (c *cluster) answers() bool {
	if !c.quorum() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.down && !c.downUntil.IsZero() && now.After(c.downUntil) {
		c.down = false
	}
	return !c.down && !c.spec.Pivoting && !c.installingFrom.IsZero() && now.Sub(c.installingFrom) >= c.manager.opts.APIDelay
}

// run looks after the cluster until ctx ends, and takes it down.
func (c *cluster) run(ctx context.Context) {
	ticker := time.NewTicker(c.manager.opts.Poll)
	defer ticker.Stop()
	for {
		if err := c.sync(ctx); err != nil && ctx.Err() == nil {
			c.manager.opts.Report(c.wanted().Key, err)
		}
		select {
		case <-ctx.Done():
			c.stop()
			return
		case <-ticker.C:
		}
	}
}

func (c *cluster) stop() {
	c.proxy.shut()
	if c.kubelets != nil {
		c.kubelets.stop()
	}
	if server := c.apiServer(); server != nil {
		if err := server.Stop(); err != nil {
			c.manager.opts.Report(c.wanted().Key, fmt.Errorf("cannot stop the kube-apiserver of the cluster: %w", err))
		}
	}
}

// sync does the next thing that is to be done.
func (c *cluster) sync(ctx context.Context) error {
	spec := c.wanted()
	if c.apiServer() == nil {
		if err := c.startServer(ctx, spec); err != nil {
			return err
		}
	}
	if !c.seeded {
		if err := c.seed(ctx, spec); err != nil {
			return err
		}
		c.seeded = true
	}
	c.beats++
	var lookErr error
	if c.completed && c.looks() {
		lookErr = c.look(ctx, spec) // One Pod that is refused does not stop the hosts.
	}
	return errors.Join(lookErr, c.syncHosts(ctx, spec))
}

// look lets the operators of an installed cluster look at its hosts, do their next step, and say what they say. What gets another release
// restarts also while the API does not answer.
func (c *cluster) look(ctx context.Context, spec assisted.ClusterSpec) error {
	nodes := &corev1.NodeList{}
	if err := c.client.List(ctx, nodes); err != nil {
		return fmt.Errorf("cannot list the Nodes of cluster %s: %w", spec.Key, err)
	}
	updateErr := c.tickUpdates(ctx, spec, nodes.Items)
	etcdErr := c.syncEtcd(ctx, spec, nodes.Items)
	if !c.observed().APIUp || !c.quorum() {
		return errors.Join(updateErr, etcdErr)
	}
	return errors.Join(updateErr, etcdErr, c.showUpdates(ctx, spec, nodes.Items))
}

// looks reports whether the operators of an installed cluster look at its hosts this time: they read all Nodes and Pods, and a beat is a
// fifth of a second.
func (c *cluster) looks() bool { return c.beats%5 == 0 }

// syncHosts does the next thing that concerns the API of the cluster, its operators and its hosts.
func (c *cluster) syncHosts(ctx context.Context, spec assisted.ClusterSpec) error {
	if err := c.syncEndpoint(ctx, spec); err != nil {
		return err
	}
	if !c.observed().APIUp {
		return nil
	}
	if spec.Complete && !c.completed {
		if err := c.complete(ctx); err != nil {
			return err
		}
		c.completed, c.available = true, len(operators)
	}
	if err := c.syncOperators(ctx, spec); err != nil {
		return err
	}
	return c.syncNodes(ctx, spec)
}

func (c *cluster) startServer(ctx context.Context, spec assisted.ClusterSpec) error {
	host, _, err := c.endpoint(ctx)
	if err != nil {
		return err
	}
	name := spec.Key.Namespace + "." + spec.Key.Name + "." + spec.ClusterID
	server, err := c.manager.servers.Start(ctx, APIServerSpec{
		Name: name, EtcdPrefix: "/" + name, SANs: []string{host, publicName(spec), internalName(spec)},
	})
	if err != nil {
		return fmt.Errorf("cannot start the kube-apiserver of cluster %s: %w", spec.Key, err)
	}
	extra, err := CertificateAuthority("ingress-operator@" + spec.Name)
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	kubelets, err := newKubelets(c.etcdctl)
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	c.client, err = client.New(server.Config(), client.Options{Scheme: scheme})
	if err != nil {
		kubelets.stop()
		return errors.Join(fmt.Errorf("cannot make a client for cluster %s: %w", spec.Key, err), server.Stop())
	}
	c.kubelets = kubelets
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.extraCA = server, extra
	return nil
}

// endpoint is the address of the cluster's API. It stays what it was found to be first: the cluster runs on at it, whatever a management
// cluster says later, which it may have left.
func (c *cluster) endpoint(ctx context.Context) (host string, port int, err error) {
	c.mu.Lock()
	host, port = c.host, c.port
	c.mu.Unlock()
	if host != "" {
		return host, port, nil
	}
	spec := c.wanted()
	host, port, err = c.manager.opts.Endpoint(ctx, spec)
	if err != nil {
		return "", 0, fmt.Errorf("cannot find the endpoint of cluster %s: %w", spec.Key, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host, c.port = host, port
	return host, port, nil
}

// publicName is the DNS name of the cluster's API, which exists in its own network only.
func publicName(spec assisted.ClusterSpec) string { return "api." + spec.Name + "." + spec.BaseDomain }

// internalName is the DNS name by which the hosts of the cluster call its API, which has a certificate for it too.
func internalName(spec assisted.ClusterSpec) string {
	return "api-int." + spec.Name + "." + spec.BaseDomain
}

// syncEndpoint opens or shuts the cluster's API address.
func (c *cluster) syncEndpoint(ctx context.Context, spec assisted.ClusterSpec) error {
	up := c.answers()
	if up && !c.proxy.open() {
		host, port, err := c.endpoint(ctx)
		if err != nil {
			return err
		}
		target, err := url.Parse(c.apiServer().URL())
		if err != nil {
			return fmt.Errorf("the kube-apiserver of cluster %s has a bad address: %w", spec.Key, err)
		}
		front, err := c.newFront()
		if err != nil {
			return err
		}
		if err := c.proxy.listen(host, port, target.Host, front); err != nil {
			return fmt.Errorf("cannot open the API address of cluster %s: %w", spec.Key, err)
		}
	}
	if !up {
		c.proxy.shut()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.APIUp = up
	return nil
}

// newFront is what answers in the place of the kube-apiserver; nil when nothing does.
func (c *cluster) newFront() (*http.Server, error) {
	if c.manager.opts.TokenLifetime == 0 {
		return nil, nil // Connections then go to the kube-apiserver itself.
	}
	return newFront(c.apiServer(), c.manager.opts.TokenLifetime)
}

func (c *cluster) kubeconfig(complete bool) ([]byte, bool) {
	c.mu.Lock()
	server, spec, extra := c.server, c.spec, c.extraCA
	c.mu.Unlock()
	if server == nil {
		return nil, false
	}
	data, err := server.AdminKubeconfig("https://" + publicName(spec) + ":6443")
	if err == nil && complete {
		data, err = AddCertificate(data, extra)
	}
	if err != nil {
		c.manager.opts.Report(spec.Key, fmt.Errorf("cannot make the kubeconfig of cluster %s: %w", spec.Key, err))
	}
	return data, err == nil
}
