// SPDX-License-Identifier: Apache-2.0

// Command operator is the Cluster API operator for the local control plane: upstream's controllers and webhooks for the providers that its
// tests install, with every listener on loopback. Upstream's own binary binds its webhook port on all interfaces and has no flag for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	operatorv1 "sigs.k8s.io/cluster-api-operator/api/v1alpha2"
	operatorcontroller "sigs.k8s.io/cluster-api-operator/controller"
	operatorwebhook "sigs.k8s.io/cluster-api-operator/webhook"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

const webhookHost = "127.0.0.1"

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
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	mgr, err := newManager(opts)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("cannot add the ready check: %w", err)
	}
	if err := setupControllers(ctx, mgr); err != nil {
		return err
	}
	if err := setupWebhooks(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(opts options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorv1.AddToScheme, clusterctlv1.AddToScheme,
	)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot register the API types: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no connection to the management cluster, set --kubeconfig: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: opts.healthAddress,
		Metrics:                server.Options{BindAddress: "0"},
		Client:                 client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}}},
		WebhookServer:          webhook.NewServer(webhook.Options{Host: webhookHost, Port: opts.webhookPort, CertDir: opts.webhookCertDir}),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the manager: %w", err)
	}
	return mgr, nil
}

// providerList is what upstream's reconciler asks of a list.
type providerList interface {
	client.ObjectList
	operatorv1.GenericProviderList
}

// providers are the kinds that this operator installs.
var providers = []struct {
	provider operatorv1.GenericProvider
	list     providerList
}{
	{&operatorv1.CoreProvider{}, &operatorv1.CoreProviderList{}},
	{&operatorv1.BootstrapProvider{}, &operatorv1.BootstrapProviderList{}},
	{&operatorv1.ControlPlaneProvider{}, &operatorv1.ControlPlaneProviderList{}},
}

func setupControllers(ctx context.Context, mgr ctrl.Manager) error {
	// Upstream's reconcilers keep the object of a pass in themselves: they work on one at a time only.
	one := controller.Options{MaxConcurrentReconciles: 1}
	for _, kind := range providers {
		_, isCore := kind.provider.(*operatorv1.CoreProvider)
		reconciler := &operatorcontroller.GenericProviderReconciler{
			Provider: kind.provider, ProviderList: kind.list, Client: mgr.GetClient(), Config: mgr.GetConfig(),
			WatchCoreProviderChanges: !isCore,
		}
		if err := reconciler.SetupWithManager(ctx, mgr, one); err != nil {
			return fmt.Errorf("cannot set up the controller of %T: %w", kind.provider, err)
		}
		health := &operatorcontroller.GenericProviderHealthCheckReconciler{Client: mgr.GetClient(), Provider: kind.provider}
		if err := health.SetupWithManager(mgr, one); err != nil {
			return fmt.Errorf("cannot set up the health check of %T: %w", kind.provider, err)
		}
	}
	return nil
}

func setupWebhooks(mgr ctrl.Manager) error {
	return errors.Join(
		(&operatorwebhook.CoreProviderWebhook{}).SetupWebhookWithManager(mgr),
		(&operatorwebhook.BootstrapProviderWebhook{}).SetupWebhookWithManager(mgr),
		(&operatorwebhook.ControlPlaneProviderWebhook{}).SetupWebhookWithManager(mgr),
	)
}
