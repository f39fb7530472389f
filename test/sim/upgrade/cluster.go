// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options are how long things take. A delay of zero is one tick.
type Options struct {
	// Load is how long the cluster-version operator takes to retrieve and judge a release.
	Load time.Duration
	// Operator is how long an operator takes to get its operands to a release.
	Operator time.Duration
	// Restart is how long the kubelet and etcd of a host are away when it gets another release.
	Restart time.Duration
	// Slow is after how long an operator is called slow: 30 minutes by default, and SlowMachineConfig, 90 minutes, for machine-config.
	Slow, SlowMachineConfig time.Duration
}

// Knobs are what a test makes of the operators. They may be changed at any time.
type Knobs struct {
	// Delays are how long single operators take, instead of Options.Operator.
	Delays map[string]time.Duration
	// Stuck operators never get done.
	Stuck map[string]bool
	// Degraded operators say so with a message, and do not get done.
	Degraded map[string]string
	// NotUpgradeable operators want no other minor version, for the reason that the message gives.
	NotUpgradeable map[string]string
	// PoolDegraded are pools whose hosts cannot be changed, with what their nodes report.
	PoolDegraded map[string]string
	// Signatures are digests that are signed besides those of the catalogue, such as sha256:….
	Signatures []string
	// Capabilities are enabled though nobody asks for them.
	Capabilities []string
	// Unreachable says that the graph cannot be retrieved.
	Unreachable bool
}

// Input is what the cluster-version operator and the machine-config operator see.
type Input struct {
	// API says that the API answers. Without it only hosts that are restarting go on; nothing but Hosts is read then.
	API bool
	// Spec and Generation are those of the ClusterVersion.
	Spec       configv1.ClusterVersionSpec
	Generation int64
	// Acks is the data of ConfigMap admin-acks.
	Acks map[string]string
	// Busy are operators whose operands do not all have what the operator wants for them yet, Degraded those that are degraded.
	Busy, Degraded map[string]bool
	// Paused are the pools with spec.paused.
	Paused map[string]bool
	Hosts  []Host
}

// Cluster is the state of both operators of one installed cluster. It is not safe for concurrent use.
type Cluster struct {
	Knobs Knobs

	catalogue Catalogue
	options   Options
	now       time.Time
	in        Input

	// target is what the cluster should run, installed what it runs completely, since when is began.
	target, installed Release
	began             time.Time
	history           []configv1.UpdateHistory
	conditions        []configv1.ClusterOperatorStatusCondition
	available         []configv1.Release
	conditional       []configv1.ConditionalUpdate
	observed          int64
	// invalid is what is wrong with spec.desiredUpdate.
	invalid string
	request request
	// accepted is the condition ReleaseAccepted.
	accepted verdict

	waves    [][]*operator
	pools    []*pool
	machines map[string]*machine
}

// New returns the operators of a cluster that was installed with a release. The history is that of its ClusterVersion; the names are those
// of its ClusterOperators.
func New(catalogue Catalogue, options Options, installed Release, history []configv1.UpdateHistory, names []string) *Cluster {
	options.Slow = cmp.Or(options.Slow, 30*time.Minute)
	options.SlowMachineConfig = cmp.Or(options.SlowMachineConfig, 90*time.Minute)
	c := &Cluster{
		Knobs: Knobs{Unreachable: catalogue.Unreachable}, catalogue: catalogue, options: options,
		target: installed, installed: installed, history: slices.Clone(history), machines: map[string]*machine{},
	}
	if len(history) > 0 {
		c.began = history[0].StartedTime.Time
	}
	c.accepted = loaded(installed)
	for _, wave := range waves(names) {
		var operators []*operator
		for _, name := range wave {
			operators = append(operators, &operator{name: name, release: installed, toward: installed.Image})
		}
		c.waves = append(c.waves, operators)
	}
	for _, name := range []string{Master, Worker} {
		c.pools = append(c.pools, &pool{name: name, target: installed, current: installed})
	}
	return c
}

// Tick lets the operators look at the cluster and do their next step. The time never goes back.
func (c *Cluster) Tick(now time.Time, in Input) {
	c.now, c.in = now, in
	c.observeHosts()
	c.runHosts()
	if !in.API {
		return
	}
	c.retrieve()
	c.follow()
	c.updateOperators()
	c.updatePools()
	c.report()
}

// Target is the release that the cluster should run, or gets.
func (c *Cluster) Target() Release { return c.target }

// Updating reports whether operators or hosts get another release.
func (c *Cluster) Updating() bool {
	return !c.reconciling() || slices.ContainsFunc(c.pools, func(p *pool) bool { return !c.has(p) })
}

// Gates is the data of ConfigMap admin-gates: what the release that runs completely has written.
func (c *Cluster) Gates() map[string]string { return c.installed.Gates }

// Status is the status of the ClusterVersion.
func (c *Cluster) Status() configv1.ClusterVersionStatus {
	status := configv1.ClusterVersionStatus{
		ObservedGeneration: c.observed, Desired: configv1.Release{Version: c.target.Version, Image: c.target.Image},
		History: slices.Clone(c.history), Conditions: slices.Clone(c.conditions),
		AvailableUpdates: slices.Clone(c.available), ConditionalUpdates: slices.Clone(c.conditional),
	}
	for _, name := range c.Knobs.Capabilities {
		capability := configv1.ClusterVersionCapability(name)
		status.Capabilities.EnabledCapabilities = append(status.Capabilities.EnabledCapabilities, capability)
	}
	return status
}

// reconciling reports whether the cluster has its target.
func (c *Cluster) reconciling() bool {
	return len(c.history) == 0 || c.history[0].State == configv1.CompletedUpdate
}

// stamp is the time as the API keeps it.
func (c *Cluster) stamp() metav1.Time { return metav1.NewTime(c.now).Rfc3339Copy() }
