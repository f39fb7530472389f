// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	logsv1 "k8s.io/component-base/logs/api/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
)

// minRemoteConditionsGracePeriod is longer than a ClusterCache needs to give up a dead connection (5 probes of 10 s and 5 s each), so that
// conditions never turn Unknown while it still believes in the connection.
const minRemoteConditionsGracePeriod = 2 * time.Minute

// Options are the flags that both managers have. Names and defaults are those of Cluster API's own managers (ECOSYSTEM, flag list).
type Options struct {
	// Logs are the logging flags (--v, --logging-format, …).
	Logs *logsv1.LoggingConfiguration
	// Diagnostics are the TLS and diagnostics flags.
	Diagnostics flags.ManagerOptions

	// LeaderElect makes the manager wait for its Lease.
	LeaderElect bool
	// LeaseDuration, RenewDeadline and RetryPeriod tune leader election.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Namespace restricts the manager to one namespace; empty is all.
	Namespace string
	// WatchFilter restricts the manager to objects whose label cluster.x-k8s.io/watch-filter has this value; empty is all.
	WatchFilter string
	// Concurrency is the number of objects of one kind that are reconciled at a time.
	Concurrency int
	// SyncPeriod is the interval at which everything is reconciled without an event.
	SyncPeriod time.Duration
	// QPS and Burst limit requests to the management cluster.
	QPS   float32
	Burst int

	// ClusterCacheConcurrency is the number of workload clusters that are connected at a time.
	ClusterCacheConcurrency int
	// ClusterCacheRetryInterval is the time between attempts to connect to a workload cluster.
	ClusterCacheRetryInterval time.Duration
	// ClusterCacheQPS and ClusterCacheBurst limit requests to a workload cluster.
	ClusterCacheQPS   float32
	ClusterCacheBurst int
	// RemoteConditionsGracePeriod is how long conditions that come from a workload cluster are believed after it stopped answering.
	RemoteConditionsGracePeriod time.Duration

	// WebhookHost is the address the webhook server binds to; empty is every address.
	WebhookHost string
	// WebhookPort is the webhook server's port.
	WebhookPort int
	// WebhookCertDir, WebhookCertName and WebhookKeyName are where its certificate is.
	WebhookCertDir, WebhookCertName, WebhookKeyName string

	// HealthAddress is where /healthz and /readyz are served.
	HealthAddress string
	// ProfilerAddress is where pprof is served; empty is nowhere.
	ProfilerAddress string
}

// AddFlags adds the flags that both managers have.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Logs = logsv1.NewLoggingConfiguration()
	logsv1.AddFlags(o.Logs, fs)
	flags.AddManagerOptions(fs, &o.Diagnostics)
	o.addLeaderElectionFlags(fs)
	o.addWebhookFlags(fs)

	fs.StringVar(&o.Namespace, "namespace", "",
		"Namespace that the manager watches. If unspecified, it watches all namespaces.")
	fs.StringVar(&o.WatchFilter, "watch-filter", "",
		fmt.Sprintf("Label value of the objects that the manager watches. The label key is always %s. If unspecified, it watches all objects.", clusterv1.WatchLabel))
	fs.IntVar(&o.Concurrency, "max-concurrent-reconciles", 10,
		"Number of objects of one kind to process simultaneously.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute,
		"The minimum interval at which watched resources are reconciled (e.g. 15m).")
	fs.Float32Var(&o.QPS, "kube-api-qps", 100,
		"Maximum queries per second to the Kubernetes API server.")
	fs.IntVar(&o.Burst, "kube-api-burst", 200,
		"Maximum number of queries in one burst to the Kubernetes API server.")
	fs.StringVar(&o.HealthAddress, "health-addr", ":9440",
		"The address the health endpoint binds to.")
	fs.StringVar(&o.ProfilerAddress, "profiler-address", "",
		"Bind address to expose the pprof profiler (e.g. localhost:6060).")
}

// AddClusterCacheFlags adds the flags of a manager that connects to workload clusters.
func (o *Options) AddClusterCacheFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.ClusterCacheConcurrency, "clustercache-concurrency", 10,
		"Number of workload clusters to connect to simultaneously.")
	fs.DurationVar(&o.ClusterCacheRetryInterval, "clustercache-retry-interval", 30*time.Second,
		"Time between attempts to connect to a workload cluster.")
	fs.Float32Var(&o.ClusterCacheQPS, "clustercache-client-qps", 20,
		"Maximum queries per second to the API server of a workload cluster.")
	fs.IntVar(&o.ClusterCacheBurst, "clustercache-client-burst", 30,
		"Maximum number of queries in one burst to the API server of a workload cluster.")
	fs.DurationVar(&o.RemoteConditionsGracePeriod, "remote-conditions-grace-period", 5*time.Minute,
		"Grace period after which a workload cluster that does not answer counts as not available (reason ConnectionDown).")
}

func (o *Options) addLeaderElectionFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.LeaderElect, "leader-elect", false,
		"Enable leader election, so that only one manager is active.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", time.Minute,
		"Interval at which non-leader candidates will wait to force acquire leadership (duration string).")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 40*time.Second,
		"Duration that the leading manager will retry refreshing leadership before giving up (duration string).")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 5*time.Second,
		"Duration to wait between tries of leader election actions (duration string).")
}

func (o *Options) addWebhookFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.WebhookHost, "webhook-host", "",
		"The address the webhook server binds to. If unspecified, it binds to all addresses.")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "Webhook server port.")
	fs.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "Webhook certificate directory.")
	fs.StringVar(&o.WebhookCertName, "webhook-cert-name", "tls.crt", "Webhook certificate name.")
	fs.StringVar(&o.WebhookKeyName, "webhook-key-name", "tls.key", "Webhook key name.")
}

// Validate reports flags whose values cannot work, and applies the logging flags.
func (o *Options) Validate() error {
	if o.RemoteConditionsGracePeriod != 0 && o.RemoteConditionsGracePeriod < minRemoteConditionsGracePeriod {
		return fmt.Errorf("--remote-conditions-grace-period is %s: it must be at least %s", o.RemoteConditionsGracePeriod, minRemoteConditionsGracePeriod)
	}
	if o.Concurrency < 1 {
		return errors.New("--max-concurrent-reconciles must be at least 1")
	}
	return logsv1.ValidateAndApply(o.Logs, nil)
}
