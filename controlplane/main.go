// SPDX-License-Identifier: Apache-2.0

// Command controlplane is the manager of the control plane provider: flags, manager, setup; no logic.
package main

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/controlplane"
	"github.com/capi-openshift/agent-providers/controlplane/internal/csr"
	"github.com/capi-openshift/agent-providers/controlplane/internal/leftovers"
	"github.com/capi-openshift/agent-providers/controlplane/internal/metrics"
	"github.com/capi-openshift/agent-providers/controlplane/internal/node"
	"github.com/capi-openshift/agent-providers/controlplane/internal/release"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workers"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/bounded"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/version"
)

const name = "openshift-assisted-control-plane-manager"

// credentialRetryInterval is for how long an installed cluster is not asked again about a credential that it could not be asked about.
const credentialRetryInterval = 30 * time.Second

func main() {
	manager.Main(manager.Config{
		Name:             name,
		LeaderElectionID: "openshift-assisted-control-plane",
		Kinds:            runtime.SchemeBuilder{controlplanev1.AddToScheme, configv1.Install, operatorv1.Install, machineconfigv1.Install},
		Cache:            controlplane.CacheRules(),
		Reduce:           controlplane.Reduce,
	}, (*manager.Options).AddControlPlaneFlags, setup)
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
	recorder := bounded.Recorder{EventRecorder: mgr.GetEventRecorder(name)}
	reconciler := newReconciler(mgr, clusters, installerKubeconfigs, o)
	watches := controlplane.Watches{
		Gate: gate, ClusterCache: clusters, InstallerKubeconfigs: installerKubeconfigs, Options: o.ControllerOptions(o.ControlPlaneConcurrency),
	}
	if o.ResolveReleases {
		registry := release.NewRegistry(version.UserAgent(name))
		registry.CAFile, registry.MirrorsFile = o.RegistryCAFile, o.RegistriesConfFile
		resolver := release.NewResolver(mgr.GetAPIReader(), registry)
		if err := mgr.Add(resolver); err != nil {
			return fmt.Errorf("add the resolver of release images: %w", err)
		}
		reconciler.Releases, watches.Releases = resolver, resolver.Events()
	}
	if err := reconciler.SetupWithManager(ctx, mgr, watches); err != nil {
		return err
	}
	orphans := &leftovers.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Namespace: o.Namespace, WatchFilter: o.WatchFilter, Gate: gate,
		Recorder: recorder,
	}
	if err := orphans.SetupWithManager(ctx, mgr, o.ControllerOptions(o.ControlPlaneConcurrency)); err != nil {
		return err
	}
	if err := setupInstalledClusters(ctx, mgr, gate, clusters, o); err != nil {
		return err
	}
	gauges := &metrics.Gauges{
		Cache: mgr.GetCache(), Elected: mgr.Elected(), WatchFilter: o.WatchFilter, Now: time.Now, Log: mgr.GetLogger(),
	}
	if err := ctrlmetrics.Registry.Register(gauges); err != nil {
		return fmt.Errorf("register the metrics of control planes: %w", err)
	}
	fill := &manager.Fill{
		Client: mgr.GetClient(), Log: mgr.GetLogger(),
		Metal3: []string{metal3.MachineTemplateKind, metal3.MachineKind}, Lists: []client.ObjectList{&bootstrapv1.OpenshiftAssistedConfigList{}},
	}
	if err := mgr.Add(fill); err != nil {
		return fmt.Errorf("add what fills caches at the start: %w", err)
	}
	return webhook.Setup(mgr)
}

// newReconciler is the reconciler of control planes, which asks no registry yet.
func newReconciler(
	mgr ctrl.Manager, clusters clustercache.ClusterCache, installerKubeconfigs client.Reader, o manager.Options,
) *controlplane.Reconciler {
	installed := workload.Cached{
		Cache: clusters, Answers: workload.NewMemory(o.RemoteConditionsGracePeriod), Failures: workload.NewMemory(credentialRetryInterval),
	}
	return &controlplane.Reconciler{
		Client:               mgr.GetClient(),
		APIReader:            mgr.GetAPIReader(),
		Kubeconfigs:          mgr.GetCache(),
		InstallerKubeconfigs: installerKubeconfigs,
		Infrastructure: &infrastructure.Reader{
			Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: o.Namespace, Label: controlplanev1.InfrastructureRoleLabel,
		},
		Identity:                    installed,
		Health:                      installed,
		Upgrades:                    installed,
		Etcd:                        installed,
		Nodes:                       installed,
		Credentials:                 installed,
		TokenLifetime:               o.WorkloadTokenLifetime,
		Recorder:                    bounded.Recorder{EventRecorder: mgr.GetEventRecorder(name)},
		WatchFilter:                 o.WatchFilter,
		RemoteConditionsGracePeriod: o.RemoteConditionsGracePeriod,
	}
}

// setupInstalledClusters adds the controllers that look after Nodes of installed clusters, and after workers whose Nodes were upgraded.
func setupInstalledClusters(
	ctx context.Context, mgr ctrl.Manager, gate *manager.Gate, clusters clustercache.ClusterCache, o manager.Options,
) error {
	recorder, installed := bounded.Recorder{EventRecorder: mgr.GetEventRecorder(name)}, workload.Cached{Cache: clusters}
	certificates := &csr.Reconciler{
		Client: mgr.GetClient(), Certificates: installed, Identity: installed, Gate: gate, Recorder: recorder, WatchFilter: o.WatchFilter,
	}
	if err := certificates.SetupWithManager(ctx, mgr, clusters, o.ControllerOptions(o.ControlPlaneConcurrency)); err != nil {
		return err
	}
	nodes := &node.Reconciler{
		Client: mgr.GetClient(), Nodes: installed, Identity: installed, Recorder: recorder, WatchFilter: o.WatchFilter,
	}
	if err := nodes.SetupWithManager(ctx, mgr, clusters, o.ControllerOptions(o.ControlPlaneConcurrency)); err != nil {
		return err
	}
	if !o.FollowUpgrades {
		return nil
	}
	followers := &workers.Reconciler{Client: mgr.GetClient(), Recorder: recorder, WatchFilter: o.WatchFilter}
	return followers.SetupWithManager(ctx, mgr, o.ControllerOptions(o.ControlPlaneConcurrency))
}
