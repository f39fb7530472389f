// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// observed is how often a histogram has counted, and the sum.
func observed(t *testing.T, h *prometheus.HistogramVec, labels ...string) (count uint64, sum float64) {
	t.Helper()
	observer, ok := h.WithLabelValues(labels...).(prometheus.Histogram)
	NewWithT(t).Expect(ok).To(BeTrue())
	var m dto.Metric
	NewWithT(t).Expect(observer.Write(&m)).To(Succeed())
	return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
}

// cached is a cache that has these objects, and hands out the objects themselves, as the manager's does to who asks for no copies.
type cached struct {
	client.Reader
	configs  []bootstrapv1.OpenshiftAssistedConfig
	machines []clusterv1.Machine
	agents   []assisted.Agent
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *bootstrapv1.OpenshiftAssistedConfigList:
		l.Items = c.configs
	case *clusterv1.MachineList:
		l.Items = c.machines
	case *assisted.AgentList:
		l.Items = c.agents
	}
	return nil
}

type gate struct{ missing []string }

func (g gate) Missing(...string) []string { return g.missing }

// fleet has clusters of six hosts, of which the stages of way are shared out, with strangers and deletions.
func fleet(clusters int) cached {
	c := cached{}
	for i := range clusters * 6 {
		config := way[i%len(way)].config()
		config.Namespace, config.Name = fmt.Sprintf("ns-%d", i/6), fmt.Sprintf("m-%d", i)
		config.UID = types.UID(config.Name)
		machine := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name}}
		agent := assisted.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name}}
		if i%100 == 0 {
			agent.Annotations = map[string]string{bootstrapv1.RecognitionAnnotation: "nobody"}
		}
		if i%50 == 1 {
			config.DeletionTimestamp = &metav1.Time{Time: noon.Add(time.Duration(i) * time.Second)}
		}
		c.configs, c.machines, c.agents = append(c.configs, *config), append(c.machines, machine), append(c.agents, agent)
	}
	return c
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func gauges(c cached, elected <-chan struct{}) *Gauges {
	return &Gauges{
		Client: c, Gate: gate{}, Elected: elected, Now: func() time.Time { return noon.Add(2 * time.Hour) }, Log: logr.Discard(),
	}
}

// gathered are the values of all series, by their labels.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			key := family.GetName()
			for _, label := range m.GetLabel() {
				key += " " + label.GetValue()
			}
			values[key] = m.GetGauge().GetValue()
		}
	}
	return values
}

// TestGaugesOfManyHosts: as many series as of few, and every host is counted once.
func TestGaugesOfManyHosts(t *testing.T) {
	g := NewWithT(t)
	c := fleet(500)
	begin := time.Now()
	values := gathered(t, gauges(c, closed()))
	t.Logf("%d series of %d hosts in %s", len(values), len(c.configs), time.Since(begin))
	g.Expect(values).To(HaveLen(len(gathered(t, gauges(fleet(1), closed())))))
	g.Expect(values).To(HaveLen(2*len(metrics.HostStates) + 1 + len(metrics.ConfigSteps) + len(metrics.MachineSteps)))
	sum := 0.0
	for _, state := range metrics.HostStates {
		sum += values[metrics.Hosts.Name+" "+state]
	}
	g.Expect(sum).To(BeEquivalentTo(3000 - 60))
	g.Expect(values).To(HaveKeyWithValue(metrics.UnknownAgents.Name, 30.0))
	g.Expect(values).To(HaveKeyWithValue(metrics.HostsOldestSeconds.Name+" "+metrics.StateWaitingForHost, 7200.0))
	g.Expect(values).To(HaveKeyWithValue(metrics.HostsOldestSeconds.Name+" "+metrics.StateInstalled, 3600.0))
	g.Expect(values).To(HaveKeyWithValue(metrics.DeletionAgeSeconds.Name+" "+metrics.KindConfig+" "+metrics.StepOther, 7199.0))
}

// hostOf has a host that was recognised at 13:00, in the state with a reason, and its Agent, whose stage has begun at a time.
func (c *cached) hostOf(namespace, reason string, begun time.Time) {
	config := stage{recognized: bootstrapv1.HostRecognizedReason, installed: reason}.config()
	config.Namespace, config.Name, config.UID = namespace, "m", types.UID(namespace)
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.AgentAnnotation, "agent")
	agent := assisted.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"}}
	agent.Status.Progress.StageStartTime = metav1.NewTime(begun)
	c.configs, c.agents = append(c.configs, *config), append(c.agents, agent)
}

// TestHostsOfSeveralClusters: the gauge is the age of one host. When one host leaves a state and another one enters it, the age begins
// anew; when a host stays in it, its age counts, whatever the others do.
func TestHostsOfSeveralClusters(t *testing.T) {
	oldest := func(g *Gauges, state string, after time.Duration) time.Duration {
		g.Now = func() time.Time { return noon.Add(24*time.Hour + after) }
		return time.Duration(gathered(t, g)[metrics.HostsOldestSeconds.Name+" "+state]) * time.Second
	}
	hosts := func(a, b string, stage time.Duration) cached {
		c := cached{}
		c.hostOf("a", a, noon.Add(24*time.Hour))
		c.hostOf("b", b, noon.Add(24*time.Hour+stage))
		return c
	}
	const installing, failed = bootstrapv1.AgentInstallingReason, bootstrapv1.AgentInstallationFailedReason
	g := NewWithT(t)
	gauges := gauges(hosts(installing, bootstrapv1.AgentReadyReason, 0), closed())
	g.Expect(oldest(gauges, metrics.StateInstalling, 40*time.Minute)).To(Equal(40*time.Minute), "since its stage has begun")
	gauges.Client = hosts(bootstrapv1.AgentInstalledReason, installing, 45*time.Minute)
	g.Expect(oldest(gauges, metrics.StateInstalling, 50*time.Minute)).To(Equal(5*time.Minute), "the other one has just begun")
	gauges.Client = hosts(failed, installing, 45*time.Minute)
	g.Expect(oldest(gauges, metrics.StateFailed, time.Hour)).To(Equal(time.Duration(0)), "it was seen to fail")
	gauges.Client = hosts(failed, failed, 45*time.Minute)
	g.Expect(oldest(gauges, metrics.StateFailed, 70*time.Minute)).To(Equal(10*time.Minute), "another one hides none that is older")
	gauges.Client = hosts(installing, failed, 72*time.Minute)
	g.Expect(oldest(gauges, metrics.StateFailed, 75*time.Minute)).To(Equal(5*time.Minute), "the first is installed again")
}

// TestOnlyTheLeaderReports: a manager that waits for its Lease has no gauges, and one without assisted-service's CRDs has the others.
func TestOnlyTheLeaderReports(t *testing.T) {
	g := NewWithT(t)
	g.Expect(gathered(t, gauges(fleet(1), make(chan struct{})))).To(BeEmpty())
	early := gauges(fleet(1), closed())
	early.Gate = gate{missing: []string{assisted.CRDAgents}}
	g.Expect(gathered(t, early)).NotTo(HaveKey(metrics.UnknownAgents.Name))
	g.Expect(gathered(t, early)).To(HaveKey(metrics.Hosts.Name + " " + metrics.StateReady))
}

// TestHistogramsBeginWithZero: the first Machine that reaches a phase is an increase, because the series is there before, with 0; a manager
// without hosts, or one that does not act, has none.
func TestHistogramsBeginWithZero(t *testing.T) {
	g := NewWithT(t)
	phaseSeconds.Reset()
	imageSeconds.Reset()
	gathered(t, gauges(cached{}, closed()))
	gathered(t, gauges(fleet(1), make(chan struct{})))
	g.Expect(testutil.CollectAndCount(phaseSeconds)).To(BeZero())
	gathered(t, gauges(fleet(1), closed()))
	g.Expect(testutil.CollectAndCount(phaseSeconds)).To(Equal(9 * 2 * 2))
	g.Expect(testutil.CollectAndCount(imageSeconds)).To(Equal(1))
	count, _ := observed(t, phaseSeconds, metrics.PhaseNode, metrics.RoleControlPlane, metrics.DayOne)
	g.Expect(count).To(BeZero())
}

// TestSeriesAreBounded: the most series that histograms and counters can have, as docs/guides/monitoring.md has it.
func TestSeriesAreBounded(t *testing.T) {
	series := 2*len(metrics.HostStates) + 1 + len(metrics.ConfigSteps) + len(metrics.MachineSteps)
	for _, d := range metrics.Bootstrap {
		combinations := 1
		for _, label := range d.Labels {
			NewWithT(t).Expect(label.Values).NotTo(BeEmpty(), d.Name+" "+label.Name)
			combinations *= len(label.Values)
		}
		switch d.Kind {
		case metrics.Counter:
			series += combinations
		case metrics.Histogram:
			series += combinations * (len(d.Buckets) + 3)
		case metrics.Gauge:
		}
	}
	NewWithT(t).Expect(series).To(Equal(667))
}
