// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/golden"
	"github.com/capi-openshift/agent-providers/test/inject"
)

// joined reports whether every Machine that there is to be has a Node, and whether there is none beside them.
func (w *world) joined() bool {
	machines := w.machines()
	for _, m := range machines {
		if !m.DeletionTimestamp.IsZero() || !m.Status.NodeRef.IsDefined() {
			return false
		}
	}
	return len(machines) == w.masters+w.workers
}

// empty reports whether the cluster is gone.
func (w *world) empty() bool { return w.cluster() == nil }

// checkEmpty fails when something of the manager's is left.
func (w *world) checkEmpty() {
	w.t.Helper()
	infraEnvs, networks, secrets := &assisted.InfraEnvList{}, &assisted.NMStateConfigList{}, &corev1.SecretList{}
	configs := &bootstrapv1.OpenshiftAssistedConfigList{}
	w.list(infraEnvs)
	w.list(networks)
	w.list(secrets)
	w.list(configs)
	g := NewWithT(w.t)
	g.Expect(infraEnvs.Items).To(BeEmpty())
	g.Expect(networks.Items).To(BeEmpty())
	g.Expect(configs.Items).To(BeEmpty())
	g.Expect(w.agents()).To(BeEmpty())
	for _, s := range secrets.Items {
		g.Expect(s.OwnerReferences).To(BeEmpty())
	}
}

// empty begins with a cluster that has no Machines yet.
func empty(hosts, workers int, before ...func(*world)) func(*testing.T) *world {
	return func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, hosts, workers)
		for _, do := range before {
			do(w)
		}
		return w
	}
}

// installed begins with a cluster that is installed. It is installed once, and copied.
func installed(workers int) func(*testing.T) *world {
	var once sync.Once
	var template *world
	return func(t *testing.T) *world {
		t.Helper()
		once.Do(func() {
			template = newWorld(t, 2, workers)
			template.start(&inject.Calls{})
			template.play(template.joined, false)
			template.objects = template.hub.Objects()
		})
		return template.copied(t)
	}
}

// deleteMachine is what a user does.
func deleteMachine(name string) func(*world) {
	return func(w *world) {
		machine := &clusterv1.Machine{}
		w.get(name, machine)
		w.delete(machine)
	}
}

// reason is what a condition of the first config says.
func reason(condition, reason string) func(*world) bool {
	return func(w *world) bool {
		c := w.config("cp-0")
		return c != nil && conditions.GetReason(c, condition) == reason
	}
}

func deleteCluster(w *world) { w.delete(w.cluster()) }

func always(*world) bool { return true }

// userData has hosts boot a disk image with user data.
func userData(w *world) {
	w.spec.Boot.Mode = bootstrapv1.BootModeUserData
	w.image = map[string]any{"url": "http://images.example.com/coreos.qcow2", "diskFormat": "qcow2", "checksum": "auto"}
}

// withNetworks gives every host a static network.
func withNetworks(w *world) {
	w.spec.StaticNetworking.Source = bootstrapv1.StaticNetworkingBareMetalHosts
	for i, h := range w.hosts() {
		name := "network-" + h.Name
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		secret.Data = map[string][]byte{"nmstate": fmt.Appendf(nil, "interfaces:\n- name: eno1\n  type: ethernet\n  state: up\n"+
			"  ipv4:\n    enabled: true\n    address:\n    - ip: 192.0.2.%d\n      prefix-length: 24\n", i+10)}
		w.must(w.hub.Create(w.t.Context(), secret))
		change(w, &h, func(h *bmov1alpha1.BareMetalHost) { h.Spec.PreprovisioningNetworkDataName = name })
	}
}

// pinHosts has a user choose the hosts for the Metal3Machines before those exist (METAL3 M3-14).
func pinHosts(w *world) {
	machines := []string{"cp-0", "worker-0"}
	for i, h := range w.hosts() {
		change(w, &h, func(h *bmov1alpha1.BareMetalHost) { h.Spec.ConsumerRef = consumer(machines[i]) })
	}
}

// withoutOwner is the story of a config whose Machine is gone from one moment to the next.
func withoutOwner(w *world) {
	machine := &clusterv1.Machine{}
	w.get("worker-0", machine)
	w.workers = 0
	w.vanish(machine)
	infra := w.infraMachine("worker-0")
	w.delete(infra)
}

// withoutConfig is the story of a Machine that leaves, and whose config is gone before.
func withoutConfig(w *world) {
	w.workers = 0
	w.vanish(w.config("worker-0"))
	deleteMachine("worker-0")(w)
}

// withoutHook is the story of a Machine that leaves, and whose hook somebody removes meanwhile.
func withoutHook(w *world) {
	w.workers = 0
	deleteMachine("worker-0")(w)
	machine := &clusterv1.Machine{}
	w.get("worker-0", machine)
	change(w, machine, func(m *clusterv1.Machine) { delete(m.Annotations, bootstrapv1.AgentDeletionHook) })
}

// loseAgent deletes the Agent of a host that is not installed yet.
func loseAgent(w *world) {
	agent := &assisted.Agent{}
	if w.get("agent-h-0", agent) {
		w.delete(agent)
	}
}

// movable begins with a cluster that is moved next.
var movable = installed(1)

// moved begins with a cluster that clusterctl has moved to another management cluster.
func moved(t *testing.T) *world {
	t.Helper()
	return movable(t).moved()
}

var stories = map[string]story{
	"install": {
		begin:    empty(2, 1),
		chapters: []chapter{{until: (*world).joined}},
	},
	"install with user data": {
		like:     true,
		begin:    empty(2, 1, userData),
		chapters: []chapter{{until: (*world).joined}},
	},
	"install with static networking": {
		begin:    empty(2, 1, withNetworks),
		chapters: []chapter{{until: (*world).joined}},
	},
	"install on pinned hosts": {
		like:     true,
		begin:    empty(2, 1, withNetworks, pinHosts),
		chapters: []chapter{{until: (*world).joined}},
	},
	"install with an InfraEnv for each Machine": {
		like:     true,
		begin:    empty(2, 1, func(w *world) { w.spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv }),
		chapters: []chapter{{until: (*world).joined}},
	},
	"day 2": {
		all:      true,
		begin:    installed(0),
		chapters: []chapter{{do: func(w *world) { w.workers = 1 }, until: (*world).joined}},
	},
	"retry": {
		begin: empty(1, 0, func(w *world) { w.fails = true }),
		chapters: []chapter{
			{until: func(w *world) bool { return w.stage == stageError }},
			{do: (*world).retry, until: (*world).joined},
		},
	},
	"move": {
		begin: moved,
		chapters: []chapter{
			{until: always},
			{do: deleteMachine("worker-0"), until: (*world).joined},
		},
	},
	"replacement": {
		begin:    installed(1),
		chapters: []chapter{{do: deleteMachine("worker-0"), until: (*world).joined}},
	},
	"deletion of a Machine": {
		like:     true,
		begin:    installed(1),
		chapters: []chapter{{do: func(w *world) { w.workers = 0; deleteMachine("worker-0")(w) }, until: (*world).joined}},
	},
	"deletion of a Machine that is being installed": {
		like:  true,
		begin: empty(2, 1),
		chapters: []chapter{
			{until: func(w *world) bool { return w.stage == assisted.ClusterStateInstalling }, halfway: true},
			{do: func(w *world) { w.workers = 0; deleteMachine("worker-0")(w) }, until: (*world).joined},
		},
	},
	"deletion": {
		all:      true,
		begin:    installed(1),
		chapters: []chapter{{do: deleteCluster, until: (*world).empty}},
		left:     (*world).checkEmpty,
	},
	"deletion before the installation": {
		like:  true,
		begin: empty(1, 1), // One host is missing, so it never begins.
		chapters: []chapter{
			{until: reason(bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentReadyReason)},
			{do: deleteCluster, until: (*world).empty},
		},
		left: (*world).checkEmpty,
	},
	"a host never registers": {
		like:  true,
		begin: empty(1, 0, func(w *world) { w.servers["h-0"].dead = true }),
		chapters: []chapter{
			{until: reason(bootstrapv1.HostRecognizedCondition, bootstrapv1.HostNeverRegisteredReason)},
			{do: func(w *world) { w.servers["h-0"].dead = false; deleteMachine("cp-0")(w) }, until: (*world).joined},
		},
	},
	"a host registers late": {
		like:  true,
		begin: empty(1, 0, func(w *world) { w.servers["h-0"].dead = true }),
		chapters: []chapter{
			{until: func(w *world) bool { return w.servers["h-0"].boots == 2 }},
			{do: func(w *world) { w.servers["h-0"].dead = false }, until: (*world).joined},
		},
	},
	"an Agent is lost": {
		like:  true,
		begin: empty(1, 1), // One host is missing, so the installation does not begin.
		chapters: []chapter{
			{until: reason(bootstrapv1.HostRecognizedCondition, bootstrapv1.HostRecognizedReason), halfway: true},
			{do: loseAgent, until: reason(bootstrapv1.AgentInstalledCondition, bootstrapv1.AgentReadyReason)},
		},
	},
	"a worker fails on day 1": {
		like:  true,
		begin: empty(2, 1, func(w *world) { w.servers["h-1"].broken = true }),
		chapters: []chapter{
			{until: says("worker-0", bootstrapv1.AgentInstallationFailedReason, "delete Machine worker-0, so that one in its place joins")},
			{do: func(w *world) { w.servers["h-1"].broken = false; deleteMachine("worker-0")(w) }, until: (*world).joined},
		},
	},
	"a host boots the wrong medium": {
		like:  true,
		begin: empty(2, 1, func(w *world) { w.servers["h-1"].misled = true }),
		chapters: []chapter{
			{until: says("worker-0", bootstrapv1.AgentPendingUserActionReason, "Host timed out")},
			{do: func(w *world) { w.servers["h-1"].misled = false }, until: (*world).joined},
		},
	},
	"a host is not let in on day 2": {
		like:  true,
		begin: installed(0),
		chapters: []chapter{
			{
				do:    func(w *world) { w.workers, w.servers["h-1"].misled = 1, true },
				until: says("worker-0", bootstrapv1.AgentPendingUserActionReason, "takes the credential in Secret cp-admin-kubeconfig"),
			},
			{do: func(w *world) { w.servers["h-1"].misled = false }, until: (*world).joined},
		},
	},
	"a config loses its owner": {
		begin:    installed(1),
		chapters: []chapter{{do: withoutOwner, until: func(w *world) bool { return len(w.machines()) == 1 && w.config("worker-0") == nil }}},
	},
	"a Machine loses its hook": {
		like:     true,
		begin:    installed(1),
		chapters: []chapter{{do: withoutHook, until: (*world).joined}},
		left:     func(w *world) { NewWithT(w.t).Expect(w.agents()).To(HaveLen(1)) },
	},
	"a Machine loses its config": {
		like:     true,
		begin:    installed(1),
		chapters: []chapter{{do: withoutConfig, until: func(w *world) bool { return len(w.machines()) == 1 }}},
	},
}

// TestEveryCallFailsOnce: whatever call fails, and however, and after whatever write the manager ends, everything ends as without that.
func TestEveryCallFailsOnce(t *testing.T) {
	for number, name := range slices.Sorted(maps.Keys(stories)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inject.Every(t, stories[name].modes(number), stride(20), stories[name].tell)
		})
	}
}

// stride is how far the points at which something happens lie apart: every point is one, or with the race detector one of n.
func stride(n int) int {
	if thorough {
		return 1
	}
	return n
}

// TestWritesOfStories: what the manager writes in each story without a fault.
func TestWritesOfStories(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			inject.Every(t, nil, 1, func(t *testing.T, calls *inject.Calls) inject.Ending {
				ending := story.tell(t, calls)
				var b strings.Builder
				for _, what := range slices.Sorted(maps.Keys(calls.Writes())) {
					fmt.Fprintf(&b, "%3d %s\n", calls.Writes()[what], what)
				}
				golden.Compare(t, "writes-"+strings.ReplaceAll(name, " ", "-")+".golden", b.String())
				return ending
			})
		})
	}
}
