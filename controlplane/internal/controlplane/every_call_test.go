// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/inject"
)

// living begins a story with a cluster that is installed, to which something happens before its manager is started.
func living(replicas int32, happens func(*world)) func(*testing.T) *world {
	return func(t *testing.T) *world {
		t.Helper()
		w := livingWorld(t, replicas)
		happens(w)
		return w
	}
}

// leaves is a story in which Machines of an installed cluster leave, and others take their place.
func leaves(replicas int32, happens func(*world)) story {
	return story{
		begin: living(replicas, func(w *world) {
			w.before = w.names()
			happens(w)
		}),
		chapters: []chapter{{nil, func(w *world) bool { return w.whole() && !slices.Equal(w.names(), w.before) }}},
		left:     func(_ *testing.T, w *world) { w.checkLeft(0) },
	}
}

// alike is leaves, with the calls of the story in which the leader does.
func alike(replicas int32, happens func(*world)) story {
	s := leaves(replicas, happens)
	s.like = true
	return s
}

// remediation is the story of a host that dies. When the members of etcd cannot be listed once, the manager takes back that the Machine is
// being remediated, and begins anew: that is one write more than any other fault costs.
func remediation() story {
	s := alike(3, func(w *world) {
		w.healthCheck = true
		w.hostDies("cp-2")
		for range 8 {
			w.nodeHealth()
			w.now = w.now.Add(time.Minute)
		}
		w.etcd()
	})
	s.more = 1
	return s
}

// theLastOfARollout is the story of a rollout from the time when one Machine is left to be replaced. Those before it take the same calls.
func theLastOfARollout() story {
	s := alike(3, func(w *world) {
		w.rollingUpdate(1)
		w.renewTemplate()
		w.settle(nil, func() bool { return w.outdated() == 1 })
	})
	s.chapters = []chapter{{nil, (*world).rolledOut}}
	return s
}

var stories = map[string]story{
	"install": {
		begin:    func(t *testing.T) *world { return newWorld(t, 3, 2) },
		chapters: []chapter{{nil, (*world).available}},
		left:     func(_ *testing.T, w *world) { checkAvailable(w.t, w, 3) },
	},
	"retry": {
		begin: func(t *testing.T) *world {
			w := newWorld(t, 1, 1)
			w.followMachineClock()
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.Retries = new(int32(1)) })
			w.failAt = 3
			w.run(nil, func() bool { return w.stage == 3 })
			return w
		},
		chapters: []chapter{
			{nil, func(w *world) bool { return w.installStatus().Phase == controlplanev1.InstallPhaseFailed }},
			{func(w *world) { w.failAt = 0 }, (*world).available},
		},
		left: func(t *testing.T, w *world) {
			t.Helper()
			NewWithT(t).Expect(w.attempt()).To(Equal("2"), "counted once")
			NewWithT(t).Expect(w.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.InstallationFailedAnnotation))
		},
	},
	"failure of what may hold data": {
		begin: func(t *testing.T) *world {
			w := newWorld(t, 1, 0)
			w.followMachineClock()
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.Retries = new(int32(1)) })
			w.failAt = stageFinalizing + 1
			w.run(nil, func() bool { return w.stage == stageFinalizing-1 })
			return w
		},
		chapters: []chapter{
			{nil, func(w *world) bool { return w.installStatus().Phase == controlplanev1.InstallPhaseFailed }},
			{func(w *world) {
				forgetProgress(w)
				w.now = w.now.Add(day)
			}, func(w *world) bool {
				return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationFailedReason
			}},
		},
		left: func(t *testing.T, w *world) {
			t.Helper()
			NewWithT(t).Expect(w.attempt()).To(Equal("1"))
			NewWithT(t).Expect(w.message(controlplanev1.InstalledCondition)).To(
				ContainSubstring("no other begins by itself: the control-plane hosts were installed"))
		},
	},
	"move": {
		begin: func(t *testing.T) *world {
			w := installedWorld(t).moved()
			w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
			w.api.upgrades.Reported = installedVersion()
			return w
		},
		chapters: []chapter{{nil, (*world).available}},
		left:     func(_ *testing.T, w *world) { checkAvailable(w.t, w, 3) },
	},
	"scale-up": {
		begin: living(3, func(w *world) {
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(4)) })
		}),
		chapters: []chapter{{nil, (*world).whole}},
	},
	"a healthy Machine leaves": alike(3, func(w *world) { w.deleteMachine("cp-2") }),
	"the leader leaves":        leaves(3, func(w *world) { w.deleteMachine(w.leader()) }),
	"a dead Machine leaves": alike(3, func(w *world) {
		w.hostDies("cp-2")
		w.live(nil)
		w.deleteMachine("cp-2")
	}),
	"a learner leaves": alike(3, func(w *world) {
		w.installed.model.Faults.Learner = map[string]bool{"cp-3": true}
		w.deleteMachine("cp-2")
		w.settle(nil, func() bool { return w.hasLearner("cp-3") })
		w.deleteMachine("cp-3")
	}),
	"scale-down": alike(4, func(w *world) {
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) })
	}),
	"rollout without a spare host":            alike(3, func(w *world) { w.rollingUpdate(0); w.renewTemplate() }),
	"the last of a rollout with a spare host": theLastOfARollout(),
	"remediation": remediation(),
	"upgrade": {
		begin: func(t *testing.T) *world {
			w := upgradable(t)
			w.acknowledge("ack-4.20-removals-in-4.21")
			w.wantRelease(releaseMinor)
			return w
		},
		chapters: []chapter{{nil, func(w *world) bool { return w.upgraded(releaseMinor)() }}},
		left: func(t *testing.T, w *world) {
			t.Helper()
			NewWithT(t).Expect(w.releases.writes).To(Equal(2), "what is acknowledged, and the release, each once")
			NewWithT(t).Expect(w.releases.version.Spec.DesiredUpdate.Force).To(BeFalse())
		},
	},
	"deletion": {
		begin: living(3, func(w *world) { w.workersWanted(1); w.machineSet(); w.finalize(); w.core() }),
		chapters: []chapter{
			{(*world).deleteAll, func(w *world) bool { return w.controlPlane().Name == "" && len(w.machines()) == 0 }},
			{(*world).deleteCluster, func(*world) bool { return true }},
		},
		left: func(_ *testing.T, w *world) { w.checkNothingLeft() },
	},
	"deletion during the installation": {
		begin: func(t *testing.T) *world { return installing(t, 3, 2) },
		chapters: []chapter{
			{(*world).deleteAll, func(w *world) bool { return w.controlPlane().Name == "" && len(w.machines()) == 0 }},
			{(*world).deleteCluster, func(*world) bool { return true }},
		},
		left: func(_ *testing.T, w *world) { w.checkNothingLeft() },
	},
	"the first token": credentialStory(true, func(t *testing.T) *world {
		w := newWorld(t, 1, 0)
		w.optOut()
		w.run(nil, w.available)
		w.optIn()
		return w
	}),
	"another token": credentialStory(true, func(t *testing.T) *world {
		w := tokenWorld(t)
		w.now = w.now.Add(4 * day)
		return w
	}),
	"a token that has ended": credentialStory(true, func(t *testing.T) *world {
		w := tokenWorld(t)
		w.now = w.now.Add(8 * day)
		return w
	}),
	"the first token of an imported cluster": credentialStory(true, func(t *testing.T) *world {
		w := importedWithoutToken(t)
		w.optIn()
		return w
	}),
	"no token any more": credentialStory(false, func(t *testing.T) *world {
		w := tokenWorld(t)
		w.optOut()
		return w
	}),
}

// credentialStory is one in which <cluster>-kubeconfig gets another credential, which is a token or is not.
func credentialStory(token bool, begin func(*testing.T) *world) story {
	reached := func(w *world) bool { return (w.token() != "") == token }
	return story{begin: begin, chapters: []chapter{{nil, reached}}, left: func(t *testing.T, w *world) {
		t.Helper()
		w.checkWorks()
		if token {
			NewWithT(t).Expect(w.token()).NotTo(BeEmpty())
		} else {
			NewWithT(t).Expect(w.token()).To(BeEmpty())
		}
		NewWithT(t).Expect(string(w.installerCredentials().Data[assisted.KubeconfigKey])).To(ContainSubstring("installer"))
	}}
}

// leader is the name of the member that leads.
func (w *world) leader() string {
	for _, m := range w.installed.model.Members() {
		if m.Leader {
			return m.Name
		}
	}
	return ""
}

func (w *world) hasLearner(name string) bool {
	for _, m := range w.installed.model.Members() {
		if m.Name == name && m.Learner {
			return true
		}
	}
	return false
}

// deleteAll is what Cluster API core does when a Cluster is deleted.
func (w *world) deleteAll() {
	w.workersWanted(0)
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	for _, m := range w.machines() {
		if strings.HasPrefix(m.Name, "worker") {
			w.must(client.IgnoreNotFound(w.client.Delete(context.Background(), &m)))
		}
	}
}

func (w *world) deleteCluster() {
	cluster := &clusterv1.Cluster{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: clusterName}, cluster))
	w.must(w.client.Delete(context.Background(), cluster))
}

// checkNothingLeft fails when something of a cluster that is deleted is left.
func (w *world) checkNothingLeft() {
	w.t.Helper()
	for _, list := range []client.ObjectList{
		&clusterv1.MachineList{}, &bootstrapv1.OpenshiftAssistedConfigList{}, &hivev1.ClusterDeploymentList{}, &hivev1.ClusterImageSetList{},
		&hiveext.AgentClusterInstallList{}, &assisted.AgentList{}, &corev1.SecretList{},
	} {
		w.must(w.client.List(context.Background(), list))
		NewWithT(w.t).Expect(list).To(HaveField("Items", BeEmpty()))
	}
	NewWithT(w.t).Expect(w.infraMachines()).To(BeEmpty())
}

// workersWanted changes how many workers the MachineDeployment has.
func (w *world) workersWanted(n int32) {
	md := &clusterv1.MachineDeployment{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "md"}, md))
	md.Spec.Replicas = &n
	w.must(w.client.Update(context.Background(), md))
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

// checkLeft fails when a member was removed twice, or when something of a Machine that is gone is left.
func (w *world) checkLeft(at int) {
	w.t.Helper()
	g := NewWithT(w.t)
	removed := slices.Sorted(slices.Values(w.installed.removed))
	g.Expect(removed).To(HaveExactElements(slices.Compact(slices.Clone(removed))), "call %d: each member is removed once", at)
	exists := map[string]bool{}
	for _, m := range w.machines() {
		exists[m.Name] = true
	}
	for _, m := range w.installed.model.Members() {
		g.Expect(exists).To(HaveKey(m.Name), "call %d: the member of a Machine that is gone", at)
	}
	for _, host := range w.installed.list() {
		g.Expect(host.Node && !exists[host.Name]).To(BeFalse(), "call %d: the Node of Machine %s, which is gone", at, host.Name)
	}
	infra := map[string]bool{}
	for _, o := range w.infraMachines() {
		infra[o.GetName()] = true
	}
	for name := range exists {
		g.Expect(infra).To(HaveKey(name), "call %d: the infrastructure machine of %s", at, name)
	}
}
