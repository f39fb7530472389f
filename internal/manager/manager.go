// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"sigs.k8s.io/cluster-api/controllers/remote"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/flags"
)

// cacheSyncTimeout leaves large management clusters time to fill the caches at start.
const cacheSyncTimeout = 5 * time.Minute

// namespaceVariable holds the namespace of the manager's Pod, where its Lease is. Without it the in-cluster files are read, which a
// manager outside of a Pod does not have.
const namespaceVariable = "POD_NAMESPACE"

// Config is what the two managers differ in.
type Config struct {
	// Name is the manager's name, in user agents, field managers and metrics.
	Name string
	// LeaderElectionID is the name of its Lease.
	LeaderElectionID string
	// Scheme holds every kind that it handles.
	Scheme *runtime.Scheme
	// Cache are the cache rules of single kinds. Rules for CustomResourceDefinitions are added.
	Cache map[client.Object]cache.ByObject
}

// Main parses the flags and runs a manager until a signal comes: what both main packages do. setup adds the controllers and webhooks.
func Main(cfg Config, addFlags func(*Options, *pflag.FlagSet), setup func(context.Context, ctrl.Manager, Options) error) {
	if err := run(cfg, addFlags, setup); err != nil {
		klog.Background().Error(err, "Manager stopped", "manager", cfg.Name)
		os.Exit(1)
	}
}

func run(cfg Config, addFlags func(*Options, *pflag.FlagSet), setup func(context.Context, ctrl.Manager, Options) error) error {
	var o Options
	o.AddFlags(pflag.CommandLine)
	addFlags(&o, pflag.CommandLine)
	pflag.CommandLine.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	pflag.CommandLine.AddGoFlagSet(flag.CommandLine)
	if err := pflag.CommandLine.Set("v", "2"); err != nil {
		return fmt.Errorf("set the default log level: %w", err)
	}
	pflag.Parse()
	if err := o.Validate(); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	ctrl.SetLogger(klog.Background())

	ctx := ctrl.SetupSignalHandler()
	mgr, err := New(o, cfg)
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr, o); err != nil {
		return fmt.Errorf("set up %s: %w", cfg.Name, err)
	}
	return mgr.Start(ctx)
}

// New builds a manager from the flags. Secrets and ConfigMaps are never cached by the default client (CONTRACT QUAL-9).
func New(o Options, cfg Config) (ctrl.Manager, error) {
	tlsOptions, metrics, err := flags.GetManagerOptions(o.Diagnostics)
	if err != nil {
		return nil, fmt.Errorf("flags: %w", err)
	}
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the management cluster: %w", err)
	}
	restConfig.QPS, restConfig.Burst = o.QPS, o.Burst
	restConfig.UserAgent = remote.DefaultClusterAPIUserAgent(cfg.Name)
	restConfig.WarningHandler = apiwarnings.DefaultHandler(klog.Background().WithName("API Server Warning"))

	mgr, err := ctrl.NewManager(restConfig, managerOptions(o, cfg, tlsOptions, *metrics))
	if err != nil {
		return nil, fmt.Errorf("create manager %s: %w", cfg.Name, err)
	}
	checker := mgr.GetWebhookServer().StartedChecker()
	if err := mgr.AddReadyzCheck("webhook", checker); err != nil {
		return nil, fmt.Errorf("add the readiness check: %w", err)
	}
	if err := mgr.AddHealthzCheck("webhook", checker); err != nil {
		return nil, fmt.Errorf("add the liveness check: %w", err)
	}
	return mgr, nil
}

func managerOptions(o Options, cfg Config, tlsOptions []func(*tls.Config), metrics metricsserver.Options) ctrl.Options {
	return ctrl.Options{
		Scheme:                     cfg.Scheme,
		Controller:                 config.Controller{CacheSyncTimeout: cacheSyncTimeout},
		LeaderElection:             o.LeaderElect,
		LeaderElectionID:           cfg.LeaderElectionID,
		LeaderElectionNamespace:    os.Getenv(namespaceVariable),
		LeaseDuration:              &o.LeaseDuration,
		RenewDeadline:              &o.RenewDeadline,
		RetryPeriod:                &o.RetryPeriod,
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		HealthProbeBindAddress:     o.HealthAddress,
		PprofBindAddress:           o.ProfilerAddress,
		Metrics:                    metrics,
		Cache:                      CacheOptions(o, cfg),
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor:   []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
			Unstructured: true,
		}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host:     o.WebhookHost,
			Port:     o.WebhookPort,
			CertDir:  o.WebhookCertDir,
			CertName: o.WebhookCertName,
			KeyName:  o.WebhookKeyName,
			TLSOpts:  tlsOptions,
		}),
	}
}

// CacheOptions are the cache rules of a manager. Tests use them too, so that they see what production sees.
func CacheOptions(o Options, cfg Config) cache.Options {
	byObject := map[client.Object]cache.ByObject{
		&apiextensionsv1.CustomResourceDefinition{}: {Transform: stripSchemas},
	}
	for kind, rule := range cfg.Cache {
		byObject[kind] = rule
	}
	options := cache.Options{
		SyncPeriod:       &o.SyncPeriod,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         byObject,
		NewInformer:      capicontrollerutil.NewInformerFunc(cfg.Scheme, cfg.Name),
	}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return options
}

// stripSchemas drops what makes CustomResourceDefinitions large: a management cluster has some 200 of them, of which only names, labels
// and conditions are read.
func stripSchemas(in any) (any, error) {
	if crd, ok := in.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.SetManagedFields(nil)
		crd.Annotations = nil
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema = nil
		}
	}
	return in, nil
}

// ControllerOptions are the options of every controller.
func (o Options) ControllerOptions() controller.Options {
	return controller.Options{MaxConcurrentReconciles: o.Concurrency}
}
