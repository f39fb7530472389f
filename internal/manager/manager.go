// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/tracing"
	"github.com/capi-openshift/agent-providers/internal/version"
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
	// Kinds adds the kinds that it handles to its scheme, besides those that both handle.
	Kinds runtime.SchemeBuilder
	// Cache are the cache rules of single kinds, which the API server has to serve when the manager starts: none of others' CRDs. Rules for
	// CustomResourceDefinitions are added.
	Cache map[client.Object]cache.ByObject
	// Reduce drops what this manager alone does not read of an object on its way into the cache; it may be nil.
	Reduce func(client.Object)
}

// kinds are what both managers handle: Kubernetes' own and those of Cluster API core, of the Assisted Installer and of the bootstrap
// provider.
var kinds = runtime.SchemeBuilder{
	clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, assisted.AddToScheme, bootstrapv1.AddToScheme,
}

// scheme holds every kind that the manager handles.
func (cfg Config) scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kinds.AddToScheme(scheme), cfg.Kinds.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme of %s: %w", cfg.Name, err)
	}
	return scheme, nil
}

// Main parses the flags and runs a manager until a signal comes: what both main packages do. addFlags adds the flags that only this manager
// has, setup its controllers and webhooks.
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
	pflag.Parse()
	o.LimitLogs()
	if err := errors.Join(o.Validate(), logsv1.ValidateAndApply(o.Logs, o.Features)); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	if o.Version {
		fmt.Println(cfg.Name, version.Describe())
		return nil
	}
	ctrl.SetLogger(klog.Background())
	klog.Background().Info("Manager starts", "manager", cfg.Name, "version", version.Describe())
	cliflag.PrintFlags(pflag.CommandLine)
	limitMemory(klog.Background())
	if o.ContentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}

	ctx := ctrl.SetupSignalHandler()
	ctx, flush := tracing.Setup(ctx, cfg.Name, version.Get(), klog.Background())
	defer flush()
	mgr, err := New(o, cfg)
	if err != nil {
		return err
	}
	if err := checkCRDs(ctx, mgr.GetAPIReader()); err != nil {
		return fmt.Errorf("start %s: %w", cfg.Name, err)
	}
	if err := setup(ctx, mgr, o); err != nil {
		return fmt.Errorf("set up %s: %w", cfg.Name, err)
	}
	return mgr.Start(ctx)
}

// New builds a manager from the flags. Secrets and ConfigMaps are never cached by the default client (CONTRACT QUAL-9).
func New(o Options, cfg Config) (ctrl.Manager, error) {
	tlsOptions, metrics, err := o.diagnostics()
	if err != nil {
		return nil, err
	}
	scheme, err := cfg.scheme()
	if err != nil {
		return nil, err
	}
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the management cluster: %w", err)
	}
	restConfig.QPS, restConfig.Burst = o.QPS, o.Burst
	restConfig.UserAgent = version.UserAgent(cfg.Name)
	restConfig.WarningHandler = apiwarnings.DefaultHandler(klog.Background().WithName("API Server Warning"))

	mgr, err := ctrl.NewManager(restConfig, managerOptions(o, cfg, scheme, tlsOptions, *metrics))
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

func managerOptions(
	o Options, cfg Config, scheme *runtime.Scheme, tlsOptions []func(*tls.Config), metrics metricsserver.Options,
) ctrl.Options {
	return ctrl.Options{
		Scheme: scheme,
		Controller: config.Controller{
			CacheSyncTimeout: cacheSyncTimeout,
			// The priority queue of controller-runtime up to v0.24 may hang when it is shut down (its issue 3538): the manager would hold its lease
			// and fail after the grace period.
			UsePriorityQueue: ptr.To(false),
		},
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
		Cache:                      cacheOptions(o, cfg, scheme),
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

func cacheOptions(o Options, cfg Config, scheme *runtime.Scheme) cache.Options {
	byObject := map[client.Object]cache.ByObject{
		&apiextensionsv1.CustomResourceDefinition{}: {Transform: stripSchemas},
	}
	for kind, rule := range cfg.Cache {
		byObject[kind] = rule
	}
	options := cache.Options{
		SyncPeriod:       &o.SyncPeriod,
		DefaultTransform: cfg.reduce,
		ByObject:         byObject,
		NewInformer:      capicontrollerutil.NewInformerFunc(scheme, cfg.Name),
	}
	if o.Namespace != "" {
		options.DefaultFieldSelector = newInNamespace(o.Namespace)
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
