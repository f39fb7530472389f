// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/capi-openshift/agent-providers/test/sim/assisted"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// APIServers starts the kube-apiservers of installed clusters.
type APIServers interface {
	Start(ctx context.Context, spec APIServerSpec) (APIServer, error)
}

// APIServerSpec describes a kube-apiserver. It listens on a loopback address and port of its own choice.
type APIServerSpec struct {
	// Name is unique and a valid file name.
	Name string
	// EtcdPrefix is where its data lives; it is never used twice.
	EtcdPrefix string
	// SANs are the names and addresses, besides its own, under which it is called.
	SANs []string
}

// APIServer is a running kube-apiserver.
type APIServer interface {
	// URL is its own address, Config a client configuration with all rights on it.
	URL() string
	Config() *rest.Config
	// CA returns the certificates of the authorities that had signed its own when it was started, as PEM, and ClientCA that of the authority
	// for client certificates.
	CA() []byte
	ClientCA() []byte
	// NextAuthority makes the authority that Rotate signs the certificate for the server's names with, and returns its certificate as PEM.
	NextAuthority() ([]byte, error)
	Rotate() error
	// Certificate returns the certificate that the server shows now to a client.
	Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// Shorten makes a token of it end earlier.
	Shorten(token string, expires time.Time) (string, error)
	// AdminKubeconfig returns a kubeconfig with all rights that calls the given server URL.
	AdminKubeconfig(server string) ([]byte, error)
	// AuditLog is the path of a log of what is written to the spec of its ClusterVersion.
	AuditLog() string
	Stop() error
}

// Options configure a Manager. Durations of zero mean "at once".
type Options struct {
	// APIDelay is the time from the state installing until the API answers; the kubeconfig is there long before.
	APIDelay time.Duration
	// JoinDelay is the time from the first boot of a host until its Node exists, ReadyDelay from then until it is Ready.
	JoinDelay  time.Duration
	ReadyDelay time.Duration
	// LostDelay is the time from the loss of a host's power until nobody knows how its Node is: 40 s in a real cluster.
	LostDelay time.Duration
	// OperatorDelay is the time between two ClusterOperators that become available, one after the other once the first Node has joined.
	OperatorDelay time.Duration
	// Poll is how often the Nodes are looked after, 200 ms by default.
	Poll time.Duration
	// KubeletVersion is what the Nodes of a cluster report when they join with the release that it was installed with. The default is that of
	// the release in the catalogue, else v1.33.4.
	KubeletVersion func(cluster types.NamespacedName) string
	// Version is the OpenShift version with which clusters are installed whose release image is not in the catalogue and has no version in its
	// tag, by default 4.20.0.
	Version string
	// Catalogue is every release that a cluster can get besides the one it was installed with, and the graph of updates.
	Catalogue upgrade.Catalogue
	// Upgrade is how long the operators take that bring a release.
	Upgrade upgrade.Options
	// ServingCSRs makes every kubelet ask for a serving certificate, which somebody has to approve (DESIGN D7).
	ServingCSRs bool
	// TokenLifetime is how long the tokens live at most that the API grants to ServiceAccounts. By default they live as long as was asked for.
	TokenLifetime time.Duration
	// Etcd is how long etcd and its operator take for their steps.
	Etcd etcd.Options
	// Endpoint returns where a cluster's API is to be reached: a loopback address and a port. The default is port 6443
	// of the first API VIP.
	Endpoint func(ctx context.Context, spec assisted.ClusterSpec) (host string, port int, err error)
	// Report is told about every failure of a cluster's upkeep, once per attempt. The default drops it.
	Report func(cluster types.NamespacedName, err error)
}

// Manager runs the installed clusters. It implements assisted.Workload.
type Manager struct {
	servers APIServers
	opts    Options

	mu       sync.Mutex
	ctx      context.Context
	clusters map[types.NamespacedName]*cluster
	running  sync.WaitGroup
}

var _ assisted.Workload = &Manager{}

// New makes a Manager. It starts no cluster before Start.
func New(servers APIServers, opts Options) *Manager {
	if opts.Poll == 0 {
		opts.Poll = 200 * time.Millisecond
	}
	if opts.Version == "" {
		opts.Version = "4.20.0"
	}
	if opts.Endpoint == nil {
		opts.Endpoint = firstVIP
	}
	if opts.Report == nil {
		opts.Report = func(types.NamespacedName, error) {}
	}
	return &Manager{servers: servers, opts: opts, clusters: map[types.NamespacedName]*cluster{}}
}

func firstVIP(_ context.Context, spec assisted.ClusterSpec) (string, int, error) {
	if len(spec.APIVIPs) == 0 {
		return "", 0, fmt.Errorf("cluster %s has no API VIP: set Options.Endpoint", spec.Key)
	}
	return spec.APIVIPs[0], 6443, nil
}

// Start runs the clusters until ctx ends, then stops them all. It is a runnable for a controller manager.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	m.ctx = ctx
	for _, c := range m.clusters {
		m.launch(c)
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.running.Wait()
	return nil
}

// Apply implements assisted.Workload.
func (m *Manager) Apply(spec assisted.ClusterSpec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[spec.Key]
	if c == nil {
		c = newCluster(m, spec)
		m.clusters[spec.Key] = c
		m.launch(c)
	}
	c.setSpec(spec)
}

// launch runs a cluster once the manager runs.
func (m *Manager) launch(c *cluster) {
	if m.ctx == nil {
		return
	}
	ctx, cancel := context.WithCancel(m.ctx)
	c.cancel = cancel
	m.running.Add(1)
	go func() {
		defer m.running.Done()
		c.run(ctx)
	}()
}

func (m *Manager) find(key types.NamespacedName) *cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clusters[key]
}

// Status implements assisted.Workload.
func (m *Manager) Status(key types.NamespacedName) assisted.ClusterStatus {
	if c := m.find(key); c != nil {
		return c.observed()
	}
	return assisted.ClusterStatus{}
}

// Kubeconfig implements assisted.Workload. Its server is https://api.<cluster>.<domain>:6443, which the management
// cluster cannot resolve.
func (m *Manager) Kubeconfig(key types.NamespacedName, complete bool) ([]byte, bool) {
	if c := m.find(key); c != nil {
		return c.kubeconfig(complete)
	}
	return nil, false
}

// ErrUnreachable says that a cluster's API does not answer.
var ErrUnreachable = errors.New("the API of the cluster does not answer")

// Accepts implements assisted.Workload.
func (m *Manager) Accepts(ctx context.Context, key types.NamespacedName, kubeconfig []byte) bool {
	c := m.find(key)
	return c != nil && c.observed().APIUp && c.admits(ctx, kubeconfig) == nil
}

// RemoveNode implements assisted.Workload.
func (m *Manager) RemoveNode(ctx context.Context, key types.NamespacedName, node string) error {
	c := m.find(key)
	if c == nil || !c.observed().APIUp {
		return fmt.Errorf("cannot delete Node %s of cluster %s: %w", node, key, ErrUnreachable)
	}
	return c.removeNode(ctx, node)
}

// Delete implements assisted.Workload.
func (m *Manager) Delete(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[key]
	delete(m.clusters, key)
	if c != nil && c.cancel != nil {
		c.cancel()
	}
}

// Down makes a cluster's API unreachable for d; zero or less means until Up.
func (m *Manager) Down(key types.NamespacedName, d time.Duration) error {
	return m.setDown(key, d, true)
}

// Up ends a Down.
func (m *Manager) Up(key types.NamespacedName) error { return m.setDown(key, 0, false) }

func (m *Manager) setDown(key types.NamespacedName, d time.Duration, down bool) error {
	c := m.find(key)
	if c == nil {
		return fmt.Errorf("cluster %s is not running: wait until its AgentClusterInstall is preparing-for-installation", key)
	}
	c.setDown(d, down)
	return nil
}

// Config returns a client configuration with all rights on a cluster's API, for tests that look into it. It does not go
// through the cluster's endpoint and works while that is Down.
func (m *Manager) Config(key types.NamespacedName) (*rest.Config, error) {
	if c := m.find(key); c != nil {
		if server := c.apiServer(); server != nil {
			return server.Config(), nil
		}
	}
	return nil, fmt.Errorf("cluster %s has no API server yet: wait until its AgentClusterInstall is installing", key)
}

// AuditLog is the path of a log of what is written to the spec of a cluster's ClusterVersion; empty before the cluster has an API server.
func (m *Manager) AuditLog(key types.NamespacedName) string {
	if c := m.find(key); c != nil {
		if server := c.apiServer(); server != nil {
			return server.AuditLog()
		}
	}
	return ""
}
