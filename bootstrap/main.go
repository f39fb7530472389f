// SPDX-License-Identifier: Apache-2.0

// Command bootstrap is the manager of the bootstrap provider: flags, manager, setup; no logic.
package main

import (
	"context"
	"fmt"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capi-openshift/agent-providers/bootstrap/internal/agent"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/config"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/discovery"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/host"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/metrics"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/webhook"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/bounded"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/version"
)

const name = "openshift-assisted-bootstrap-manager"

func main() {
	manager.Main(manager.Config{
		Name:             name,
		LeaderElectionID: "openshift-assisted-bootstrap",
		Kinds:            runtime.SchemeBuilder{bmov1alpha1.AddToScheme},
	}, (*manager.Options).AddBootstrapFlags, setup)
}

func setup(ctx context.Context, mgr ctrl.Manager, o manager.Options) error {
	gate, err := manager.NewGate(
		ctx, mgr, assisted.CRDInfraEnvs, assisted.CRDNMStateConfigs, assisted.CRDAgents, assisted.CRDAgentClusterInstalls,
		assisted.CRDClusterDeployments, metal3.CRDMachines, metal3.CRDBareMetalHosts,
	)
	if err != nil {
		return err
	}
	if err := index.Register(ctx, gate, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	recorder := bounded.Recorder{EventRecorder: mgr.GetEventRecorder(name)}
	ignitions := discovery.NewFetches(&discovery.Client{
		CAFile: o.AssistedCAFile, Timeout: o.DiscoveryIgnitionTimeout, UserAgent: version.UserAgent(name),
	})
	if err := mgr.Add(ignitions); err != nil {
		return fmt.Errorf("add what fetches discovery ignitions: %w", err)
	}
	hosts := &host.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Gate: gate, Recorder: recorder, WatchFilter: o.WatchFilter,
		Now: time.Now,
	}
	configs := &config.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Ignitions: ignitions, Gate: gate, Recorder: recorder, WatchFilter: o.WatchFilter,
		Hosts: hosts, Now: time.Now,
	}
	if err := configs.SetupWithManager(ctx, mgr, o.ControllerOptions(o.ConfigConcurrency)); err != nil {
		return err
	}
	agents := &agent.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Gate: gate, Recorder: recorder, WatchFilter: o.WatchFilter,
	}
	if err := agents.SetupWithManager(ctx, mgr, o.ControllerOptions(o.AgentConcurrency)); err != nil {
		return err
	}
	gauges := &metrics.Gauges{
		Client: mgr.GetClient(), Gate: gate, Elected: mgr.Elected(), WatchFilter: o.WatchFilter, Now: time.Now, Log: mgr.GetLogger(),
	}
	if err := ctrlmetrics.Registry.Register(gauges); err != nil {
		return fmt.Errorf("register the metrics of hosts: %w", err)
	}
	fill := &manager.Fill{Client: mgr.GetClient(), Log: mgr.GetLogger(), Metal3: []string{metal3.MachineKind}}
	if err := mgr.Add(fill); err != nil {
		return fmt.Errorf("add what fills caches at the start: %w", err)
	}
	return webhook.Setup(mgr)
}
