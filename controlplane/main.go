// SPDX-License-Identifier: Apache-2.0

// Command controlplane is the manager of the control plane provider: flags, manager, setup; no logic.
package main

import (
	"context"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/controlplane"
	"github.com/capi-openshift/agent-providers/controlplane/internal/leftovers"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

const name = "openshift-assisted-control-plane-manager"

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
		assisted.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	manager.Main(manager.Config{
		Name:             name,
		LeaderElectionID: "openshift-assisted-control-plane",
		Scheme:           scheme,
		Cache:            controlplane.CacheRules(),
	}, addFlags, setup)
}

func addFlags(o *manager.Options, fs *pflag.FlagSet) {
	o.AddClusterCacheFlags(fs)
	fs.IntVar(&o.Concurrency, "openshiftassistedcontrolplane-concurrency", 10, "Number of OpenshiftAssistedControlPlanes to process simultaneously.")
}

func setup(ctx context.Context, mgr ctrl.Manager, o manager.Options) error {
	gate, err := manager.NewGate(ctx, mgr, controlplane.CRDs()...)
	if err != nil {
		return err
	}
	clusters, err := workload.NewClusterCache(ctx, mgr, o, name)
	if err != nil {
		return err
	}
	installerKubeconfigs, err := controlplane.NewInstallerKubeconfigCache(mgr, o.Namespace)
	if err != nil {
		return err
	}
	reconciler := &controlplane.Reconciler{
		Client:                      mgr.GetClient(),
		APIReader:                   mgr.GetAPIReader(),
		Kubeconfigs:                 mgr.GetCache(),
		InstallerKubeconfigs:        installerKubeconfigs,
		Workloads:                   workload.Cached{Cache: clusters},
		Recorder:                    mgr.GetEventRecorder(name),
		WatchFilter:                 o.WatchFilter,
		RemoteConditionsGracePeriod: o.RemoteConditionsGracePeriod,
	}
	if err := reconciler.SetupWithManager(ctx, mgr, controlplane.Watches{
		Gate: gate, ClusterCache: clusters, InstallerKubeconfigs: installerKubeconfigs, Options: o.ControllerOptions(),
	}); err != nil {
		return err
	}
	orphans := &leftovers.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Gate: gate, Recorder: mgr.GetEventRecorder(name)}
	if err := orphans.SetupWithManager(ctx, mgr, o.ControllerOptions()); err != nil {
		return err
	}
	return webhook.Setup(mgr)
}
