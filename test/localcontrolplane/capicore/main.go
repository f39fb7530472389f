// SPDX-License-Identifier: Apache-2.0

// Command capicore is the Cluster API core manager for the local control plane: upstream's reconcilers, webhooks and
// set-up code, with every listener on loopback. Upstream's own binary binds its webhook port on all interfaces and has no
// flag for it, and retries the connection to a new cluster only every 30 s. ClusterClass and the propagation of taints
// are on; MachinePools, ClusterResourceSets and runtime extensions have webhooks but no reconciler.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/remote"
	"sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/index"
)

const (
	controllerName = "cluster-api-controller-manager"
	webhookHost    = "127.0.0.1"
	syncPeriod     = 10 * time.Minute
	clientQPS      = 100
	clientBurst    = 200
)

type options struct {
	webhookPort    int
	webhookCertDir string
	healthAddress  string
}

func main() {
	var opts options
	// --kubeconfig is registered by controller-runtime.
	flag.IntVar(&opts.webhookPort, "webhook-port", 9443, "port of 127.0.0.1 that serves the webhooks")
	flag.StringVar(&opts.webhookCertDir, "webhook-cert-dir", "", "folder with tls.crt and tls.key of the webhooks")
	flag.StringVar(&opts.healthAddress, "health-addr", "127.0.0.1:9440", "address that serves /healthz and /readyz")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), opts); err != nil {
		fmt.Fprintln(os.Stderr, "capicore:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	gates := map[string]bool{string(feature.ClusterTopology): true, string(feature.MachineTaintPropagation): true}
	if err := feature.MutableGates.SetFromMap(gates); err != nil {
		return fmt.Errorf("cannot turn on ClusterClass and the propagation of taints: %w", err)
	}
	mgr, err := newManager(opts)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("cannot add the ready check: %w", err)
	}
	if err := mgr.AddHealthzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("cannot add the health check: %w", err)
	}
	if err := index.AddDefaultIndexes(ctx, mgr); err != nil {
		return fmt.Errorf("cannot set up indexes: %w", err)
	}
	clusterCache, err := setupClusterCache(ctx, mgr)
	if err != nil {
		return err
	}
	if err := setupReconcilers(ctx, mgr, clusterCache); err != nil {
		return err
	}
	if err := setupWebhooks(mgr, clusterCache); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(opts options) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no connection to the management cluster, set --kubeconfig: %w", err)
	}
	restConfig.QPS, restConfig.Burst = clientQPS, clientBurst
	restConfig.UserAgent = remote.DefaultClusterAPIUserAgent(controllerName)
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                 scheme,
		Controller:             config.Controller{UsePriorityQueue: ptr.To(feature.Gates.Enabled(feature.PriorityQueue))},
		HealthProbeBindAddress: opts.healthAddress,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		Cache:                  setup.ManagerCacheOptions(scheme, controllerName, "", syncPeriod),
		Client:                 setup.ManagerClientOptions(),
		WebhookServer:          webhook.NewServer(webhook.Options{Host: webhookHost, Port: opts.webhookPort, CertDir: opts.webhookCertDir}),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the manager: %w", err)
	}
	return mgr, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, storagev1.AddToScheme,
		clusterv1beta1.AddToScheme, clusterv1.AddToScheme,
		addonsv1beta1.AddToScheme, addonsv1.AddToScheme,
		runtimev1alpha1.AddToScheme, runtimev1.AddToScheme,
		ipamv1alpha1.AddToScheme, ipamv1beta1.AddToScheme, ipamv1.AddToScheme,
	)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot register the API types: %w", err)
	}
	return scheme, nil
}
