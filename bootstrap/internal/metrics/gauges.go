// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

var (
	hosts         = metrics.Hosts.Desc()
	hostsOldest   = metrics.HostsOldestSeconds.Desc()
	unknownAgents = metrics.UnknownAgents.Desc()
	deletionAge   = metrics.DeletionAgeSeconds.Desc()
)

// Gauges reads the gauges over all objects from the manager's cache when they are asked for. The cache has the kinds anyway; nothing is
// copied, and the API server is not asked.
type Gauges struct {
	// Client is the manager's cached client.
	Client client.Reader
	// Gate knows which CRDs are served.
	Gate Gate
	// Elected is closed once the manager acts; before, it reports nothing.
	Elected <-chan struct{}
	// WatchFilter restricts configs to those with the label, and Machines with them. Agents have no such label.
	WatchFilter string
	// Now is the clock.
	Now func() time.Time
	// Log tells of gauges that cannot be read.
	Log logr.Logger

	mutex     sync.Mutex
	sightings sightings
}

// Describe implements prometheus.Collector.
func (g *Gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{hosts, hostsOldest, unknownAgents, deletionAge} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector. A gauge that cannot be read has no series: an error would cost all metrics of the manager.
func (g *Gauges) Collect(out chan<- prometheus.Metric) {
	if !metrics.Leads(g.Elected) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), metrics.ScrapeTimeout)
	defer cancel()
	scrape := metrics.Scrape{Now: g.Now(), Metrics: out}
	agents, unread := g.agents(ctx, scrape)
	if err := errors.Join(unread, g.configs(ctx, scrape, agents), g.machines(ctx, scrape)); err != nil {
		g.Log.Error(err, "Cannot read metrics from the cache")
	}
}

func (g *Gauges) configs(ctx context.Context, s metrics.Scrape, agents map[types.NamespacedName]*assisted.Agent) error {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := g.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list OpenshiftAssistedConfigs: %w", err)
	}
	if len(list.Items) > 0 {
		begin()
	}
	count, oldest, deleting := map[string]int{}, metrics.Ages{}, metrics.Ages{}
	g.mutex.Lock() // Whoever may read the metrics may read them at the same time.
	defer g.mutex.Unlock()
	seen := make(sightings, len(list.Items))
	for i := range list.Items {
		config := &list.Items[i]
		if !g.watches(config) {
			continue
		}
		if at := config.DeletionTimestamp; at != nil {
			deleting.Add(stepOf(config, bootstrapv1.DeletingCondition, configSteps), s.Now, at.Time)
			continue
		}
		host := waiting{
			config: config, state: State(config), boot: func() metav1.Time { return g.boot(ctx, config) },
			agent: agents[types.NamespacedName{Namespace: config.Namespace, Name: config.Annotations[bootstrapv1.AgentAnnotation]}],
		}
		host.seen = seen.add(g.sightings, config.UID, host.state, s.Now)
		count[host.state]++
		oldest.Add(host.state, s.Now, host.since().Time)
	}
	g.sightings = seen
	for _, state := range metrics.HostStates {
		s.Gauge(hosts, float64(count[state]), state)
		s.Gauge(hostsOldest, oldest[state], state)
	}
	for _, step := range metrics.ConfigSteps {
		s.Gauge(deletionAge, deleting[step], metrics.KindConfig, step)
	}
	return nil
}

func (g *Gauges) watches(o client.Object) bool {
	return g.WatchFilter == "" || labels.HasWatchLabel(o, g.WatchFilter)
}

// boot is when the host of a config was provisioned; zero when that is not known.
func (g *Gauges) boot(ctx context.Context, config *bootstrapv1.OpenshiftAssistedConfig) metav1.Time {
	if len(g.Gate.Missing(metal3.CRDBareMetalHosts)) > 0 {
		return metav1.Time{}
	}
	find := index.Finder{Reader: g.Client, Namespace: config.Namespace}
	machines, err := find.Machines(ctx, index.MachineConfig, config.Name)
	if err != nil || len(machines) == 0 || !metal3.IsMachineRef(machines[0].Spec.InfrastructureRef) {
		return metav1.Time{}
	}
	consumed, err := find.Hosts(ctx, index.HostConsumer, machines[0].Spec.InfrastructureRef.Name, client.Limit(1))
	if err != nil || len(consumed) == 0 {
		return metav1.Time{}
	}
	return metal3.ProvisioningEnded(consumed[0])
}

func (g *Gauges) machines(ctx context.Context, s metrics.Scrape) error {
	list := &clusterv1.MachineList{}
	if err := g.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	deleting := metrics.Ages{}
	for i := range list.Items {
		machine := &list.Items[i]
		if at := machine.DeletionTimestamp; at != nil && index.ConfigOf(machine) != "" && g.watches(machine) {
			deleting.Add(stepOf(machine, clusterv1.MachineDeletingCondition, machineSteps), s.Now, at.Time)
		}
	}
	for _, step := range metrics.MachineSteps {
		s.Gauge(deletionAge, deleting[step], metrics.KindMachine, step)
	}
	return nil
}

// agents tells of the Agents, and returns them.
func (g *Gauges) agents(ctx context.Context, s metrics.Scrape) (map[types.NamespacedName]*assisted.Agent, error) {
	if len(g.Gate.Missing(assisted.CRDAgents)) > 0 {
		return nil, nil
	}
	list := &assisted.AgentList{}
	if err := g.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Agents: %w", err)
	}
	agents, strangers := make(map[types.NamespacedName]*assisted.Agent, len(list.Items)), 0
	for i := range list.Items {
		agent := &list.Items[i]
		agents[client.ObjectKeyFromObject(agent)] = agent
		if agent.Annotations[bootstrapv1.RecognitionAnnotation] != "" && agent.Annotations[bootstrapv1.ClaimAnnotation] == "" {
			strangers++
		}
	}
	s.Gauge(unknownAgents, float64(strangers))
	return agents, nil
}
