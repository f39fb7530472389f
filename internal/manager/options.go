// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/featuregate"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/util/flags"
)

// minRemoteConditionsGracePeriod is longer than a ClusterCache needs to give up a dead connection (5 probes of 10 s and 5 s each), so that
// conditions never turn Unknown while it still believes in the connection.
const minRemoteConditionsGracePeriod = 2 * time.Minute

// minWorkloadTokenLifetime leaves half an hour for a token to be renewed.
const minWorkloadTokenLifetime = time.Hour

// Options are the values of the flags of both managers. A manager without a flag leaves its field at zero.
type Options struct {
	// Version makes the manager print its version and stop.
	Version bool

	// Logs are the logging flags (--v, --logging-format, …).
	Logs *logsv1.LoggingConfiguration
	// Diagnostics are the TLS and diagnostics flags.
	Diagnostics flags.ManagerOptions
	// Features are the feature gates.
	Features featuregate.MutableVersionedFeatureGate

	// LeaderElect makes the manager wait for its Lease.
	LeaderElect bool
	// LeaseDuration, RenewDeadline and RetryPeriod tune leader election.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// Namespace restricts the manager to one namespace; empty is all.
	Namespace string
	// WatchFilter restricts the manager to objects whose label cluster.x-k8s.io/watch-filter has this value; empty is all.
	WatchFilter string
	// SyncPeriod is the interval at which everything is reconciled without an event.
	SyncPeriod time.Duration
	// QPS and Burst limit requests to the management cluster.
	QPS   float32
	Burst int

	// Concurrency is the number of objects that a controller reconciles at a time, unless its kind has a number of its own.
	Concurrency int
	// ConfigConcurrency, AgentConcurrency and ControlPlaneConcurrency are those numbers; 0 is Concurrency.
	ConfigConcurrency, AgentConcurrency, ControlPlaneConcurrency int

	// AssistedCAFile is a file of PEM certificates by which the servers of discovery ignitions are trusted besides the system's; may be empty.
	AssistedCAFile string
	// DiscoveryIgnitionTimeout bounds one attempt to fetch a discovery ignition.
	DiscoveryIgnitionTimeout time.Duration

	// FollowUpgrades makes the versions of workers follow those of their Nodes.
	FollowUpgrades bool

	// ResolveReleases makes the manager ask registries what release images are.
	ResolveReleases bool
	// RegistryCAFile is a file of PEM certificates by which those registries are trusted besides the system's; may be empty.
	RegistryCAFile string
	// RegistriesConfFile is a file in the format of containers-registries.conf(5) with the mirrors of those registries; may be empty.
	RegistriesConfFile string

	// ClusterCacheConcurrency is the number of workload clusters that are connected at a time.
	ClusterCacheConcurrency int
	// ClusterCacheRetryInterval is the time between attempts to connect to a workload cluster.
	ClusterCacheRetryInterval time.Duration
	// ClusterCacheQPS and ClusterCacheBurst limit requests to a workload cluster.
	ClusterCacheQPS   float32
	ClusterCacheBurst int
	// RemoteConditionsGracePeriod is how long conditions that come from a workload cluster are believed after it stopped answering.
	RemoteConditionsGracePeriod time.Duration
	// WorkloadTokenLifetime is how long the tokens are valid that are requested from workload clusters.
	WorkloadTokenLifetime time.Duration

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
	// ContentionProfiling adds a profile of what goroutines block on.
	ContentionProfiling bool
}

// Validate reports flags whose values cannot work.
func (o *Options) Validate() error {
	if o.RemoteConditionsGracePeriod != 0 && o.RemoteConditionsGracePeriod < minRemoteConditionsGracePeriod {
		return fmt.Errorf(
			"--%s is %s: it must be at least %s", flagRemoteConditionsGracePeriod, o.RemoteConditionsGracePeriod, minRemoteConditionsGracePeriod,
		)
	}
	if o.WorkloadTokenLifetime != 0 && o.WorkloadTokenLifetime < minWorkloadTokenLifetime {
		return fmt.Errorf("--%s is %s: it must be at least %s", flagWorkloadTokenLifetime, o.WorkloadTokenLifetime, minWorkloadTokenLifetime)
	}
	if o.DiscoveryIgnitionTimeout < 0 {
		return fmt.Errorf("--%s is %s: it must be positive", flagDiscoveryIgnitionTimeout, o.DiscoveryIgnitionTimeout)
	}
	for _, limit := range []struct {
		flag       string
		value, min int
	}{
		{flagConcurrency, o.Concurrency, 1},
		{flagConfigConcurrency, o.ConfigConcurrency, 0},
		{flagAgentConcurrency, o.AgentConcurrency, 0},
		{flagControlPlaneConcurrency, o.ControlPlaneConcurrency, 0},
		{flagClusterCacheConcurrency, o.ClusterCacheConcurrency, 0},
	} {
		if limit.value < limit.min {
			return fmt.Errorf("--%s is %d: it must be at least %d", limit.flag, limit.value, limit.min)
		}
	}
	return nil
}

const (
	// firstRetry and lastRetry are the times between passes that fail, those of controller-runtime.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
)

// ControllerOptions are the options of one controller with the concurrency of its kind, which may be 0. A pass that fails is repeated later
// each time, whatever other objects do: controller-runtime's own limit is one of ten retries a second for all objects together, so that a
// thousand broken ones of one tenant would hold up the retries of everybody by minutes.
func (o Options) ControllerOptions(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: cmp.Or(concurrency, o.Concurrency),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}
