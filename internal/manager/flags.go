// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"flag"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"

	"github.com/capi-openshift/agent-providers/internal/feature"
)

const (
	// defaultVerbosity is what Cluster API's managers log by default: what happens, not how.
	defaultVerbosity = 2
	// defaultConcurrency is that of Cluster API's managers. Most passes find nothing to do, and requests are limited by --kube-api-qps.
	defaultConcurrency = 100
	// defaultQPS and defaultBurst are three times those of Cluster API's managers: a host that registers takes about ten requests, so that a
	// thousand hosts within a minute need some 170 a second. API Priority and Fairness protects the API server.
	defaultQPS   = 300
	defaultBurst = 600
)

// FlagRegistryCAFile is the flag with the certificates of registries; the reasons why an image is not resolved name it.
const FlagRegistryCAFile = "registry-ca-file"

// FlagRegistriesConfFile is the flag with the mirrors of registries; the reasons why an image is not resolved name it.
const FlagRegistriesConfFile = "registries-conf-file"

// Flags whose names are needed in messages too.
const (
	flagConcurrency                 = "max-concurrent-reconciles"
	flagConfigConcurrency           = "openshiftassistedconfig-concurrency"
	flagAgentConcurrency            = "agent-concurrency"
	flagControlPlaneConcurrency     = "openshiftassistedcontrolplane-concurrency"
	flagClusterCacheConcurrency     = "clustercache-concurrency"
	flagDiscoveryIgnitionTimeout    = "discovery-ignition-timeout"
	flagRemoteConditionsGracePeriod = "remote-conditions-grace-period"
	flagWorkloadTokenLifetime       = "workload-token-lifetime"
)

// AddFlags adds the flags that both managers have. Names and defaults are those of Cluster API's own managers, but for the limits of
// requests; the Cluster API operator sets some of them (CONTRACT OP-4). docs/reference/flags.md is made from them.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Logs = logsv1.NewLoggingConfiguration()
	o.Logs.Verbosity = defaultVerbosity
	logsv1.AddFlags(o.Logs, fs)
	o.Features = feature.New()
	o.Features.AddFlag(fs)
	flags.AddManagerOptions(fs, &o.Diagnostics)
	o.addLeaderElectionFlags(fs)
	o.addWebhookFlags(fs)
	// controller-runtime registers it among the flags of the whole program when it is imported.
	fs.AddGoFlag(flag.Lookup(config.KubeconfigFlagName))

	fs.BoolVar(&o.Version, "version", false, "Print the version, the commit and the version of Go, and exit.")
	fs.StringVar(&o.Namespace, "namespace", "",
		"Namespace that the manager watches. If unspecified, it watches all namespaces.")
	fs.StringVar(
		&o.WatchFilter,
		"watch-filter",
		"",
		fmt.Sprintf(
			"Label value of the objects that the manager watches. The label key is always %s. If unspecified, it watches all objects.",
			clusterv1.WatchLabel,
		),
	)
	fs.IntVar(&o.Concurrency, flagConcurrency, defaultConcurrency,
		"Number of objects of one kind to process simultaneously, unless the kind has a flag of its own that is set.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute,
		"The minimum interval at which watched resources are reconciled (e.g. 15m).")
	fs.Float32Var(&o.QPS, "kube-api-qps", defaultQPS,
		"Maximum queries per second to the Kubernetes API server.")
	fs.IntVar(&o.Burst, "kube-api-burst", defaultBurst,
		"Maximum number of queries in one burst to the Kubernetes API server.")
	fs.StringVar(&o.HealthAddress, "health-addr", ":9440",
		"The address the health endpoint binds to.")
	fs.StringVar(&o.ProfilerAddress, "profiler-address", "",
		"Bind address to expose the pprof profiler (e.g. localhost:6060).")
	fs.BoolVar(&o.ContentionProfiling, "contention-profiling", false,
		"Enable block profiling.")
}

// AddBootstrapFlags adds what the bootstrap manager has besides.
func (o *Options) AddBootstrapFlags(fs *pflag.FlagSet) {
	addConcurrencyFlag(fs, &o.ConfigConcurrency, flagConfigConcurrency, "OpenshiftAssistedConfigs")
	addConcurrencyFlag(fs, &o.AgentConcurrency, flagAgentConcurrency, "Agents")
	fs.StringVar(
		&o.AssistedCAFile, "assisted-ca-file", "",
		"File of PEM certificates by which the manager trusts the server of discovery ignitions (spec.boot.mode UserData), besides the "+
			"system's. It is read anew before each download.",
	)
	fs.DurationVar(&o.DiscoveryIgnitionTimeout, flagDiscoveryIgnitionTimeout, 30*time.Second,
		"Time after which an attempt to download a discovery ignition is given up and repeated later.")
}

// AddControlPlaneFlags adds what the control plane manager has besides.
func (o *Options) AddControlPlaneFlags(fs *pflag.FlagSet) {
	addConcurrencyFlag(fs, &o.ControlPlaneConcurrency, flagControlPlaneConcurrency, "OpenshiftAssistedControlPlanes")
	addConcurrencyFlag(fs, &o.ClusterCacheConcurrency, flagClusterCacheConcurrency, "connections to workload clusters")
	fs.DurationVar(&o.ClusterCacheRetryInterval, "clustercache-retry-interval", 30*time.Second,
		"Time between attempts to connect to a workload cluster.")
	fs.Float32Var(&o.ClusterCacheQPS, "clustercache-client-qps", 20,
		"Maximum queries per second to the API server of a workload cluster.")
	fs.IntVar(&o.ClusterCacheBurst, "clustercache-client-burst", 30,
		"Maximum number of queries in one burst to the API server of a workload cluster.")
	fs.DurationVar(
		&o.RemoteConditionsGracePeriod,
		flagRemoteConditionsGracePeriod,
		5*time.Minute,
		fmt.Sprintf(
			"Grace period after which a workload cluster that does not answer counts as not available (reason ConnectionDown). At least %s.",
			minRemoteConditionsGracePeriod,
		),
	)
	fs.DurationVar(
		&o.WorkloadTokenLifetime, flagWorkloadTokenLifetime, 7*24*time.Hour,
		fmt.Sprintf("How long the token in <cluster>-kubeconfig is valid. It is renewed at half of that. At least %s.", minWorkloadTokenLifetime),
	)
	fs.BoolVar(
		&o.FollowUpgrades, "follow-upgrades", true,
		"Set the versions of worker Machines and of their MachineSets to what their Nodes run, once a MachineDeployment with the rollout "+
			"strategy OnDelete asks for it, so that an upgrade in place is complete for Cluster API. A MachineDeployment of a topology gets "+
			"that version too.",
	)
	fs.BoolVar(
		&o.ResolveReleases, "resolve-releases", true,
		"Ask registries for the digest and the Kubernetes version of release images, with the pull secret of the cluster. Nothing waits for "+
			"the answer.",
	)
	fs.StringVar(
		&o.RegistryCAFile, FlagRegistryCAFile, "",
		"File of PEM certificates by which the manager trusts registries of release images, besides the system's and the additional trust "+
			"bundle of the cluster. It is read anew before each image.",
	)
	fs.StringVar(
		&o.RegistriesConfFile, FlagRegistriesConfFile, "",
		"File in the format of containers-registries.conf(5) with the mirrors that are asked for release images, besides those of the cluster "+
			"and, where the management cluster is OpenShift, of its ImageDigestMirrorSets and ImageTagMirrorSets. It is read anew before each "+
			"image.",
	)
}

func addConcurrencyFlag(fs *pflag.FlagSet, value *int, name, things string) {
	fs.IntVar(value, name, 0, fmt.Sprintf("Number of %s to process simultaneously. If unspecified, that of --%s.", things, flagConcurrency))
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
