// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const step = 10 * time.Second

// world is a cluster with the hosts around it.
type world struct {
	*Cluster
	g     Gomega
	clock time.Time
	hosts map[string]Host
	// last is the last line of the story, lines are all.
	last  string
	lines []string
}

func newWorld(t *testing.T, options Options, names ...string) *world {
	t.Helper()
	w := &world{Cluster: New(1, options), g: NewWithT(t), clock: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), hosts: map[string]Host{}}
	for _, name := range names {
		w.add(name)
	}
	w.Bootstrap(w.all())
	w.ticks(2)
	return w
}

// three is the cluster that most stories begin with.
func three(t *testing.T) *world {
	t.Helper()
	return newWorld(t, Options{}, "a", "b", "c")
}

func (w *world) all() []Host {
	var out []Host
	for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
		out = append(out, w.hosts[name])
	}
	return out
}

// add makes a host that runs, with a ready Node.
func (w *world) add(name string) {
	address := fmt.Sprintf("127.91.0.%d", name[0]-'a'+1)
	w.hosts[name] = Host{Name: name, Address: address, Node: true, Running: true, Ready: true}
}

func (w *world) change(name string, change func(*Host)) {
	host := w.hosts[name]
	change(&host)
	w.hosts[name] = host
}

// off cuts the power of hosts. Their Nodes are silent.
func (w *world) off(names ...string) {
	for _, name := range names {
		w.change(name, func(host *Host) { host.Running, host.Ready = false, false })
	}
}

func (w *world) on(name string) {
	w.change(name, func(host *Host) { host.Running, host.Ready = true, host.Node })
}

func (w *world) deleteNode(name string) {
	w.change(name, func(host *Host) { host.Node, host.Ready = false, false })
}

// ticks lets time pass.
func (w *world) ticks(count int) {
	for range count {
		w.clock = w.clock.Add(step)
		w.Tick(w.clock, w.all())
		w.tell()
	}
}

// tell adds a line to the story when something has changed.
func (w *world) tell() {
	if line := w.summary(); line != w.last {
		w.last = line
		w.lines = append(w.lines, w.clock.Format("15:04:05")+"  "+line)
	}
}

// sayf adds what somebody does or reads.
func (w *world) sayf(format string, args ...any) {
	w.lines = append(w.lines, "# "+strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "))
}

func (w *world) summary() string {
	operator := w.Operator()
	var nodes, endpoints, pods, bad []string
	for _, node := range operator.NodeStatuses {
		text := fmt.Sprintf("%s@%d", node.Name, node.Current)
		if node.Target != 0 {
			text += fmt.Sprintf("→%d", node.Target)
		}
		nodes = append(nodes, text)
	}
	for _, address := range w.Endpoints() {
		endpoints = append(endpoints, w.hostAt(address))
	}
	slices.Sort(endpoints)
	for _, pod := range w.Pods() {
		state := "waits"
		if pod.Ready {
			state = "ready"
		} else if pod.EtcdReady {
			state = "silent"
		}
		pods = append(pods, pod.Node+":"+state)
	}
	for _, condition := range operator.Conditions {
		if condition.Status == True && strings.HasSuffix(condition.Type, "Degraded") {
			bad = append(bad, strings.TrimSuffix(condition.Type, "Degraded"))
		}
	}
	return fmt.Sprintf("etcd %s | revision %d: %s | endpoints %s | pods %s | degraded %s", w.memberSummary(),
		operator.LatestAvailableRevision, strings.Join(nodes, " "), strings.Join(endpoints, " "), strings.Join(pods, " "),
		cmp.Or(strings.Join(bad, " "), "nothing"))
}

// memberSummary names the members by their hosts: * leads, ? is a learner, ! is unhealthy.
func (w *world) memberSummary() string {
	var out []string
	for _, m := range w.Members() {
		text := w.hostAt(strings.TrimSuffix(strings.TrimPrefix(m.PeerURL, "https://"), ":2380"))
		if m.Leader {
			text += "*"
		}
		if m.Learner {
			text += "?"
		}
		if !m.Healthy {
			text += "!"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (w *world) hostAt(address string) string {
	for name, host := range w.hosts {
		if host.Address == address {
			return name
		}
	}
	return address
}

// idOf is the id of the member at a host's address.
func (w *world) idOf(name string) uint64 {
	m := w.memberAt(w.hosts[name].Address)
	w.g.Expect(m).NotTo(BeNil(), name+" is no member")
	return m.id
}

// leave removes a host's member as the product does.
func (w *world) leave(from, name string) {
	result := w.Etcdctl(from, []string{"etcdctl", "member", "remove", hexID(w.idOf(name))})
	w.g.Expect(result.ExitCode).To(BeZero(), result.Stderr)
}

func (w *world) message(kind string) string { return w.Operator().Condition(kind).Message }

func (w *world) clusterOperator(kind string) Condition {
	return condition(w.Operator().ClusterOperator, kind)
}
