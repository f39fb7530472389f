// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const step = 10 * time.Second

// names are the operators of the tests.
var names = []string{"network", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "machine-config", "console"}

const gate = "ack-4.20-kube-1.34-api-removals-in-4.21"

// release makes a release whose digest is its version in another spelling.
func release(version, kubelet string) Release {
	digest := strings.Repeat(strings.NewReplacer(".", "", "-", "").Replace(version), 64)[:64]
	return Release{
		Version: version, Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + digest, KubeletVersion: kubelet,
		OSImage: "CoreOS " + version, Signed: true,
	}
}

// catalogue has what the tests ask for; 4.20.0 is installed.
func catalogue() Catalogue {
	gated := release("4.20.8", "v1.33.6")
	gated.Gates = map[string]string{gate: "Kubernetes 1.34 removes APIs.", "ack-4.19-old": "This is past."}
	unsigned := release("4.20.9", "v1.33.6")
	unsigned.Signed = false
	return Catalogue{
		Releases: []Release{
			release("4.19.30", "v1.32.9"), release("4.20.0", "v1.33.4"), release("4.20.7", "v1.33.6"), gated, unsigned,
			release("4.21.3", "v1.34.2"), release("4.22.0", "v1.35.0"), release("4.23.1", "v1.36.3"), release("5.0.1", "v1.36.3"),
			release("5.1.0", "v1.37.0"),
		},
		Edges: []Edge{
			{From: "4.20.0", To: "4.20.7"}, {From: "4.20.0", To: "4.20.8"}, {From: "4.20.8", To: "4.21.3"},
			{From: "4.20.0", To: "4.20.9", Risks: []Risk{
				{Name: "SlowBoot", Message: "Hosts boot slowly.", URL: "https://example.com/1", Recommended: metav1.ConditionFalse},
				{Name: "OldDisks", Message: "Old disks fail.", URL: "https://example.com/2", Recommended: metav1.ConditionUnknown},
				{Name: "OtherPlatform", Message: "Clouds fail.", URL: "https://example.com/3", Recommended: metav1.ConditionTrue},
			}},
		},
	}
}

// world is a cluster with its hosts, its users and a clock.
type world struct {
	*Cluster
	g     Gomega
	clock time.Time
	in    Input
	hosts map[string]*Host
	last  string
	lines []string
}

func newWorld(t *testing.T, version string, options Options, hosts ...string) *world {
	t.Helper()
	w := &world{g: NewWithT(t), clock: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), hosts: map[string]*Host{}}
	installed, known := catalogue().ByVersion(version)
	w.g.Expect(known).To(BeTrue())
	done := metav1.NewTime(w.clock)
	w.Cluster = New(catalogue(), options, installed, []configv1.UpdateHistory{{
		State: configv1.CompletedUpdate, StartedTime: done, CompletionTime: &done, Version: installed.Version, Image: installed.Image,
	}}, names)
	w.in = Input{API: true, Generation: 1, Acks: map[string]string{}, Busy: map[string]bool{}, Degraded: map[string]bool{}}
	w.in.Paused = map[string]bool{}
	w.in.Spec.Channel = "stable-4.21"
	for _, name := range hosts {
		w.add(name)
	}
	w.ticks(1)
	return w
}

// six is the cluster that most stories begin with.
func six(t *testing.T) *world {
	t.Helper()
	return newWorld(t, "4.20.0", Options{}, "m0", "m1", "m2", "w0", "w1")
}

// add makes a host whose role is in its name.
func (w *world) add(name string) {
	role := map[byte]string{'m': Master, 'a': Arbiter, 'w': Worker}[name[0]]
	w.hosts[name] = &Host{Name: name, Role: role, Disk: "1", Running: true, Node: true, Ready: true}
}

// ask writes spec.desiredUpdate.
func (w *world) ask(update configv1.Update) {
	w.in.Generation++
	w.in.Spec.DesiredUpdate = &update
	w.lines = append(w.lines, fmt.Sprintf("# asked for %q %q force=%t", update.Version, short(update.Image), update.Force))
}

// askFor asks for a release of the catalogue as the product does.
func (w *world) askFor(version string) {
	r, known := w.catalogue.ByVersion(version)
	w.g.Expect(known).To(BeTrue())
	w.ask(configv1.Update{Version: r.Version, Image: r.Image})
}

func short(image string) string {
	_, digest, found := strings.Cut(image, "@sha256:")
	if !found {
		return image
	}
	return digest[:6]
}

// ticks lets time pass; hosts do what the machine-config operator makes of them.
func (w *world) ticks(count int) {
	for range count {
		w.clock = w.clock.Add(step)
		w.in.Hosts = nil
		for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
			w.in.Hosts = append(w.in.Hosts, *w.hosts[name])
		}
		w.Tick(w.clock, w.in)
		w.obey()
		w.check()
		w.tell()
	}
}

func (w *world) obey() {
	for name, host := range w.hosts {
		m := w.Machine(name)
		host.Drained = m.Drains && host.Cordoned
		host.Cordoned = m.Drains || host.Cordoned && !m.Uncordons
		host.Ready = host.Node && host.Running && !m.Away
	}
}

// check expects that never two hosts of the control plane are being changed, nor two workers.
func (w *world) check() {
	busy := map[bool]int{}
	for name, host := range w.hosts {
		if w.Machine(name).State == "Working" {
			busy[host.Role == Worker]++
		}
	}
	w.g.Expect(busy[true]).To(BeNumerically("<=", 1), "workers that are changed")
	w.g.Expect(busy[false]).To(BeNumerically("<=", 1), "hosts of the control plane that are changed")
}

// until lets time pass until something is so.
func (w *world) until(what string, is func() bool) {
	for range 200 {
		if is() {
			return
		}
		w.ticks(1)
	}
	w.g.Expect(is()).To(BeTrue(), what+"\n"+strings.Join(w.lines, "\n"))
}

func (w *world) completed(version string) {
	w.until(version+" is complete", func() bool {
		newest := w.Status().History[0]
		return newest.Version == version && newest.State == configv1.CompletedUpdate
	})
}

// settledAt waits until every host has a release.
func (w *world) settledAt(version string) {
	w.until("the hosts have "+version, func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(w.hosts)), func(name string) bool {
			m := w.Machine(name)
			return m.Release.Version != version || m.State != "Done"
		})
	})
}

func (w *world) condition(kind string) configv1.ClusterOperatorStatusCondition {
	for _, condition := range w.Status().Conditions {
		if string(condition.Type) == kind {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{}
}

func (w *world) is(kind string, status configv1.ConditionStatus) bool {
	return w.condition(kind).Status == status
}

func (w *world) operatorReport(name string) Operator {
	reports := w.Operators()
	return reports[slices.IndexFunc(reports, func(o Operator) bool { return o.Name == name })]
}

func (w *world) poolReport(name string) Pool {
	reports := w.Pools()
	return reports[slices.IndexFunc(reports, func(p Pool) bool { return p.Name == name })]
}

// tell adds to the story what has changed.
func (w *world) tell() {
	if line := w.summary(); line != w.last {
		w.last = line
		w.lines = append(w.lines, w.clock.Format("15:04:05")+"  "+line)
	}
}

func (w *world) sayf(format string, args ...any) {
	w.lines = append(w.lines, "# "+fmt.Sprintf(format, args...))
}

func (w *world) summary() string {
	var conditions, machines, operators []string
	for _, condition := range w.Status().Conditions {
		text := string(condition.Type) + "=" + string(condition.Status)
		if condition.Reason != "" {
			text += "/" + condition.Reason
		}
		if condition.Type == configv1.OperatorProgressing {
			text += " " + condition.Message
		}
		conditions = append(conditions, text)
	}
	for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
		m, host := w.Machine(name), w.hosts[name]
		text := name + "@" + m.Release.KubeletVersion
		for word, is := range map[string]bool{":drains": m.Drains, ":away": m.Away, ":back": m.State == "Working" && !m.Drains && !m.Away} {
			if is {
				text += word
			}
		}
		if host.Cordoned {
			text += "!"
		}
		machines = append(machines, text)
	}
	for _, o := range w.Operators() {
		if o.Progressing != "" {
			operators = append(operators, o.Name)
		}
	}
	newest := w.Status().History[0]
	return fmt.Sprintf("%s %s | updating %s | hosts %s | %s", newest.Version, newest.State, cmp.Or(strings.Join(operators, " "), "nothing"),
		strings.Join(machines, " "), strings.Join(conditions, "; "))
}
