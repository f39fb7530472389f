// SPDX-License-Identifier: Apache-2.0

// Command bootstrap is the manager of the bootstrap provider: flags, manager, setup; no logic.
package main

import (
	"context"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/agent"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/config"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/host"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/webhook"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const name = "openshift-assisted-bootstrap-manager"

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
		bmov1alpha1.AddToScheme, assisted.AddToScheme, bootstrapv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	manager.Main(manager.Config{Name: name, LeaderElectionID: "openshift-assisted-bootstrap", Scheme: scheme}, addFlags, setup)
}

func addFlags(o *manager.Options, fs *pflag.FlagSet) {
	fs.IntVar(&o.Concurrency, "openshiftassistedconfig-concurrency", 10, "Number of OpenshiftAssistedConfigs to process simultaneously.")
}

func setup(ctx context.Context, mgr ctrl.Manager, o manager.Options) error {
	gate, err := manager.NewGate(ctx, mgr, assisted.CRDInfraEnvs, assisted.CRDAgents, assisted.CRDAgentClusterInstalls,
		assisted.CRDClusterDeployments, metal3.CRDMachines, metal3.CRDBareMetalHosts)
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder(name)
	configs := &config.Reconciler{Client: mgr.GetClient(), Gate: gate, Recorder: recorder, WatchFilter: o.WatchFilter}
	if err := configs.SetupWithManager(ctx, mgr, o.ControllerOptions()); err != nil {
		return err
	}
	hosts := &host.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Gate: gate, Recorder: recorder, WatchFilter: o.WatchFilter}
	if err := hosts.SetupWithManager(ctx, mgr, o.ControllerOptions()); err != nil {
		return err
	}
	agents := &agent.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Gate: gate, Recorder: recorder}
	if err := agents.SetupWithManager(ctx, mgr, o.ControllerOptions()); err != nil {
		return err
	}
	return webhook.Setup(mgr)
}
