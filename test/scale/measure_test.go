// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestReadGauges(t *testing.T) {
	g := NewWithT(t)
	told, err := readGauges(strings.NewReader(`# HELP go_goroutines Number of goroutines that currently exist.
go_goroutines 1234
leader_election_master_status{name="openshift-assisted-control-plane"} 1
go_memstats_heap_inuse_bytes 1.048576e+07
controller_runtime_reconcile_total{controller="openshiftassistedconfig",result="success"} 40
controller_runtime_reconcile_total{controller="openshiftassistedconfig",result="error"} 2
controller_runtime_reconcile_total{controller="nodeproviderid",result="success"} 3
controller_runtime_reconcile_total{controller="clustercache",result="requeue_after"} 1000
controller_runtime_active_workers{controller="openshiftassistedconfig"} 1
controller_runtime_active_workers{controller="clustercache"} 3
workqueue_depth{controller="openshiftassistedconfig",name="openshiftassistedconfig",priority="0"} 5
capi_cluster_cache_connection_up{cluster_name="site",cluster_namespace="site-00001"} 1
capi_cluster_cache_connection_up{cluster_name="site",cluster_namespace="site-00002"} 0
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(told).To(Equal(gauges{passes: 45, looks: 42, queued: 5, active: 1, leading: 1, connected: 1, goroutines: 1234, heapMiB: 10}))
	g.Expect(told.idle()).To(BeFalse())
	g.Expect(gauges{leading: 1}.idle()).To(BeTrue())
	g.Expect(gauges{}.idle()).To(BeFalse(), "one that waits for the Lease will have to do what there is to do")
	_, err = readGauges(strings.NewReader("go_goroutines many\n"))
	g.Expect(err).To(HaveOccurred())
}

// auditLog is one with an event for each line: second, user, verb, resource, subresource, name, code.
func auditLog(t *testing.T, events ...string) string {
	t.Helper()
	var text bytes.Buffer
	for _, event := range events {
		f := strings.Split(event, " ")
		fmt.Fprintf(&text, `{"user":{"username":%q},"verb":%q,"objectRef":{"resource":%q,"subresource":%q,"namespace":"site","name":%q},`+
			`"responseStatus":{"code":%s},"stageTimestamp":"2030-01-02T03:04:%sZ"}`+"\n", f[1], f[2], f[3], strings.Trim(f[4], "-"), f[5],
			f[6], f[0])
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	NewWithT(t).Expect(os.WriteFile(path, text.Bytes(), 0o600)).To(Succeed())
	return path
}

func TestRates(t *testing.T) {
	g := NewWithT(t)
	at := func(second int, cpu float64) sample { return sample{now.Add(time.Duration(second) * time.Second), cpu} }
	g.Expect(rates([]sample{at(0, 10), at(1, 12), at(3, 13), at(4, 13)})).To(Equal([]float64{0, 0.5, 2}))
	g.Expect(rates([]sample{at(0, 10)})).To(BeEmpty())
}

func TestTallies(t *testing.T) {
	g := NewWithT(t)
	path := auditLog(
		t, "00.000000 boot patch agents - a 200", "01.000000 boot patch agents status a 409", "02.000000 boot get secrets - s 200",
		"03.000000 boot update leases - l 200", "04.000000 cp create events - e 201",
		"05.000000 system:serviceaccount:site:m create events - lease 201",
	)
	all, err := talliesSince(path, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*all["boot"]).To(Equal(tally{
		reads: 1, writes: 2, refused: 1, requests: map[string]int{"patch agents": 1, "patch agents/status": 1, "get secrets": 1},
		written: []string{"patch agents site/a", "patch agents/status site/a"},
	}))
	g.Expect(all["cp"].writes).To(Equal(1))
	g.Expect(all).To(HaveLen(2), "that a manager leads is about no cluster")
	end, err := auditEnd(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(talliesSince(path, end)).To(BeEmpty())
}

func TestRegistrations(t *testing.T) {
	g := NewWithT(t)
	path := auditLog(t, "00.000000 admin create agents - a 201", "00.500000 admin patch agents status a 200",
		"00.600000 boot patch agents - a 409", "01.500000 boot patch agents - a 200", "02.000000 boot patch agents - a 200",
		"02.500000 admin patch agents status a 200", "00.000000 admin create agents - b 201")
	agents, err := registrationsSince(path, 0, "site", "boot")
	g.Expect(err).NotTo(HaveOccurred())
	times := burstTimes(agents)
	g.Expect(times).To(And(
		HaveKeyWithValue("inventory to claim max", 1.0), HaveKeyWithValue("creation to claim p50", 1.5),
		HaveKeyWithValue("inventory to last write p99", 1.5),
	))
	none, err := registrationsSince(path, 0, "elsewhere", "boot")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none).To(BeEmpty())
}

func TestParseSizes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParseSizes("20,10")).To(Equal(Sizes{Clusters: []int{10, 20}, Hosts: []int{10, 20}}))
	g.Expect(ParseSizes("hosts:20,10")).To(Equal(Sizes{Hosts: []int{10, 20}}))
	for _, name := range []string{"small", "full"} {
		sizes, err := ParseSizes(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(sizes.Clusters)).To(BeNumerically(">=", 3), "a fit needs three sizes")
		g.Expect(len(sizes.Hosts)).To(BeNumerically(">=", 3))
	}
	for _, text := range []string{"", "medium", "10,,20", "0", "-5", "hosts:"} {
		_, err := ParseSizes(text)
		g.Expect(err).To(HaveOccurred(), text)
	}
}

// results are those of a manager whose passes grow with a power of the size, and whose memory is 70 MiB and 1.5 MiB a cluster.
func results(power func(size int) int, writes int) []Result {
	var out []Result
	for _, size := range []int{10, 20, 40} {
		cost := Cost{Passes: power(size), CPUSeconds: 1, RSSMiB: 70 + 1.5*float64(size), Writes: writes, written: []string{"patch agents site/a"}}
		r := Result{Profile: profileIdle, Size: size, Costs: map[string]Cost{bootstrapName: cost}}
		r.wroteNothing()
		out = append(out, r)
	}
	return out
}

// exponentLimit is that of a measure of which there is much.
func exponentLimit(name string) float64 {
	for _, m := range measures {
		if m.name == name {
			return m.limitOf([]point{{1, 1e6}})
		}
	}
	return 0
}

// TestRunThatMeasuresNothing: Run refuses profiles that it would have to leave out.
func TestRunThatMeasuresNothing(t *testing.T) {
	for _, profiles := range [][]string{{profileIdle}, {profileStorm, profileResync}, {profileInstall}, {profileBurst, profileInstall}} {
		_, err := Run(t.Context(), Options{Profiles: profiles, Sizes: Sizes{Hosts: []int{10}}})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("measure nothing with sizes of hosts alone")), "%v", profiles)
	}
	_, err := Run(t.Context(), Options{Profiles: []string{"idel"}})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`unknown profile "idel"`)))
}

func TestReport(t *testing.T) {
	g := NewWithT(t)
	linear := newReport(results(func(size int) int { return 50 * size }, 0))
	g.Expect(linear.problem()).To(Succeed())
	g.Expect(linear.Growth[0].Measure).To(Equal("passes"))
	g.Expect(linear.Growth[0].Exponent).To(BeNumerically("~", 1, 1e-9))
	g.Expect(linear.Memory[bootstrapName].KiBPerCluster).To(BeNumerically("~", 1536, 1e-6))
	g.Expect(linear.Memory[bootstrapName].ExtrapolatedMiB).To(BeNumerically("~", 5320, 1e-6))
	g.Expect(linear.Memory).NotTo(HaveKey(controlPlaneName), "it was not there")

	g.Expect(exponentLimit("passes")).To(Equal(countLimit))
	g.Expect(exponentLimit("CPU seconds")).To(Equal(timeLimit))
	squared := newReport(results(func(size int) int { return size * size }, 0))
	g.Expect(squared.problem()).To(MatchError(ContainSubstring("passes of bootstrap in idle grow with the size to the power of 2.00")))
	little := newReport(results(func(size int) int { return size * size / 100 }, 0))
	g.Expect(little.problem()).To(Succeed(), "sixteen passes are no cost, however they grow")
	written := newReport(results(func(size int) int { return size }, 2))
	g.Expect(written.problem()).To(MatchError(ContainSubstring(
		"idle of 40: bootstrap wrote 2 times, and nothing had changed: patch agents site/a",
	)))

	folder, out := t.TempDir(), &bytes.Buffer{}
	g.Expect(linear.write(Options{Out: folder, Output: out})).To(Succeed())
	g.Expect(out.String()).To(And(ContainSubstring("PROFILE"), ContainSubstring("MIB AT 3500")))
	tables, err := os.ReadFile(filepath.Join(folder, "scale.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(tables)).To(Equal(out.String()))
	g.Expect(filepath.Join(folder, "scale.json")).To(BeAnExistingFile())
}
