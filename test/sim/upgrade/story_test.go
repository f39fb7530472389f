// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/capi-openshift/agent-providers/test/golden"
)

// TestUpgrade is a z-stream, then a minor version that has to be acknowledged.
func TestUpgrade(t *testing.T) {
	w := six(t)
	w.tell()
	w.askFor("4.20.8")
	w.settledAt("4.20.8")
	w.ticks(2)
	w.sayf("the gates are %v", w.Gates())
	w.askFor("4.21.3")
	w.ticks(3)
	w.sayf("acknowledged")
	w.in.Acks[gate] = "true"
	w.settledAt("4.21.3")
	w.ticks(2)
	for _, entry := range w.Status().History {
		w.sayf("history %s %s verified=%t", entry.Version, entry.State, entry.Verified)
	}
	golden.Compare(t, "upgrade.golden", strings.Join(w.lines, "\n")+"\n")
}

// TestSteady is that nothing changes when there is nothing to do.
func TestSteady(t *testing.T) {
	w := six(t)
	w.askFor("4.20.8")
	w.settledAt("4.20.8")
	w.ticks(2)
	status, operators, pools := w.Status(), w.Operators(), w.Pools()
	w.ticks(20)
	w.g.Expect(w.Status()).To(Equal(status))
	w.g.Expect(w.Operators()).To(Equal(operators))
	w.g.Expect(w.Pools()).To(Equal(pools))
	w.g.Expect(w.Updating()).To(BeFalse())
}

// TestSlow is an operator that never gets done, and one that is helped.
func TestSlow(t *testing.T) {
	w := six(t)
	w.Knobs.Stuck = map[string]bool{"kube-apiserver": true}
	w.askFor("4.20.8")
	w.until("slow", func() bool { return w.condition("Failing").Status == configv1.ConditionUnknown })
	w.g.Expect(w.clock.Sub(w.Status().History[0].StartedTime.Time)).To(BeNumerically(">", 30*time.Minute))
	w.g.Expect(w.condition("Failing").Reason).To(Equal("SlowClusterOperator"))
	w.g.Expect(w.condition("Failing").Message).To(Equal("waiting on kube-apiserver over 30 minutes which is longer than expected"))
	w.g.Expect(w.condition("Progressing").Message).To(Equal(
		"Working towards 4.20.8: 110 of 710 done (15% complete), waiting on kube-apiserver over 30 minutes which is longer than expected"))
	w.g.Expect(w.condition("Available").Status).To(Equal(configv1.ConditionTrue))
	w.Knobs.Stuck = nil
	w.completed("4.20.8")
	w.g.Expect(w.condition("Failing").Status).To(Equal(configv1.ConditionFalse))
}

// TestFailing is an operator that is degraded, in an update and without one.
func TestFailing(t *testing.T) {
	w := six(t)
	w.Knobs.Degraded = map[string]string{"console": "no route"}
	w.askFor("4.20.8")
	w.until("failing", func() bool { return w.condition("Failing").Reason == "ClusterOperatorDegraded" })
	w.ticks(10)
	w.g.Expect(w.condition("Failing").Message).To(Equal("Cluster operator console is degraded"))
	w.g.Expect(w.condition("Progressing").Status).To(Equal(configv1.ConditionTrue))
	w.g.Expect(w.condition("Progressing").Message).To(Equal("Unable to apply 4.20.8: the cluster operator console is degraded"))
	w.g.Expect(w.operatorReport("machine-config").Version).To(Equal("4.20.0"), "it comes after those that are not done")
	w.Knobs.Degraded = nil
	w.completed("4.20.8")
	w.in.Degraded["etcd"], w.in.Degraded["kube-apiserver"] = true, true
	w.ticks(1)
	w.g.Expect(w.condition("Failing").Reason).To(Equal("ClusterOperatorsDegraded"))
	w.g.Expect(w.condition("Progressing").Message).To(Equal(
		"Error while reconciling 4.20.8: the cluster operators etcd, kube-apiserver are degraded"))
	w.g.Expect(w.condition("Progressing").Status).To(Equal(configv1.ConditionFalse))
}

// TestInterrupted is an update that gives way to another, and a way back.
func TestInterrupted(t *testing.T) {
	w := six(t)
	w.askFor("4.20.7")
	w.until("etcd has it", func() bool { return w.operatorReport("etcd").Version == "4.20.7" })
	w.askFor("4.20.8")
	w.completed("4.20.8")
	history := w.Status().History
	w.g.Expect(history).To(HaveLen(3))
	w.g.Expect(history[1].Version).To(Equal("4.20.7"))
	w.g.Expect(history[1].State).To(Equal(configv1.PartialUpdate))
	w.g.Expect(history[1].CompletionTime).NotTo(BeNil())
	w.settledAt("4.20.8")
	w.askFor("4.20.0")
	w.ticks(3)
	w.g.Expect(w.condition("ReleaseAccepted").Message).To(ContainSubstring(
		"the only supported rollback is to the cluster's previous version 4.20.7"))
	w.askFor("4.20.7")
	w.settledAt("4.20.7")
	w.g.Expect(w.Status().Desired.Version).To(Equal("4.20.7"))
	w.askFor("4.21.3")
	w.settledAt("4.21.3")
	w.askFor("4.20.7")
	w.ticks(3)
	w.g.Expect(w.condition("ReleaseAccepted").Message).To(ContainSubstring(
		"rollbacks that change major or minor versions are not recommended"))
}

// TestGivenUp is a way back when the first host has the new release already.
func TestGivenUp(t *testing.T) {
	w := six(t)
	w.askFor("4.20.8")
	w.until("m0 has it", func() bool { return w.Machine("m0").Release.Version == "4.20.8" })
	w.askFor("4.20.0")
	w.completed("4.20.0")
	w.g.Expect(w.Machine("m0").Release.Version).To(Equal("4.20.0"))
	w.settledAt("4.20.0")
	w.g.Expect(w.Status().History).To(HaveLen(3))
	w.g.Expect(w.Updating()).To(BeFalse())
}

// TestRetarget is that Upgradeable=False, which an update makes, does not stop another z-stream of the new minor version.
func TestRetarget(t *testing.T) {
	w := newWorld(t, "4.20.7", Options{}, "m0")
	w.catalogue.Releases = append(w.catalogue.Releases, release("4.21.4", "v1.34.3"))
	w.askFor("4.21.3")
	w.ticks(3)
	w.g.Expect(w.condition("Upgradeable").Reason).To(Equal("UpdateInProgress"))
	w.askFor("4.22.0")
	w.ticks(3)
	w.g.Expect(w.condition("ReleaseAccepted").Message).To(ContainSubstring("UpdateInProgress"))
	w.askFor("4.21.4")
	w.completed("4.21.4")
}

// TestPaused are pools that stay behind.
func TestPaused(t *testing.T) {
	w := six(t)
	w.in.Paused[Master] = true
	w.askFor("4.20.8")
	w.ticks(60)
	w.g.Expect(w.condition("Progressing").Message).To(HaveSuffix("waiting on machine-config"))
	w.g.Expect(w.operatorReport("machine-config").Progressing).To(ContainSubstring("MachineConfigPool master is paused"))
	w.g.Expect(w.poolReport(Master)).To(And(HaveField("IsUpdated", false), HaveField("IsUpdating", false), HaveField("Updated", 0)))
	w.g.Expect(w.Machine("m0").Release.Version).To(Equal("4.20.0"))
	w.in.Paused = map[string]bool{Worker: true}
	w.completed("4.20.8")
	w.ticks(60)
	w.g.Expect(w.Machine("w1").Release.Version).To(Equal("4.20.0"))
	w.g.Expect(w.condition("Upgradeable").Reason).To(Equal("AdminAckRequired"), "a paused pool is not updating")
	w.add("w2")
	w.add("m3")
	w.ticks(1)
	w.g.Expect(w.Machine("w2").Release.Version).To(Equal("4.20.0"), "a new host has the release of its pool")
	w.g.Expect(w.Machine("m3").Release.Version).To(Equal("4.20.8"))
	w.in.Paused = nil
	w.settledAt("4.20.8")
	w.g.Expect(w.poolReport(Worker)).To(And(HaveField("IsUpdated", true), HaveField("Machines", 3), HaveField("Ready", 3)))
}

// TestDegradedPool is a host of the control plane that cannot be changed, then a worker.
func TestDegradedPool(t *testing.T) {
	w := six(t)
	w.Knobs.PoolDegraded = map[string]string{Master: "unexpected on-disk state"}
	w.ticks(1)
	w.g.Expect(w.poolReport(Master)).To(And(HaveField("Degraded", 1), HaveField("Failure", ContainSubstring("unexpected on-disk state"))))
	w.g.Expect(w.Machine("m0").State).To(Equal("Degraded"))
	w.askFor("4.20.8")
	w.ticks(30)
	w.g.Expect(w.operatorReport("machine-config").DegradedReason).To(Equal("RequiredPoolsFailed"))
	w.g.Expect(w.condition("Failing").Message).To(Equal("Cluster operator machine-config is degraded"))
	w.Knobs.PoolDegraded = map[string]string{Worker: "disk full"}
	w.completed("4.20.8")
	w.ticks(30)
	w.g.Expect(w.Machine("w0").Release.Version).To(Equal("4.20.0"))
	w.g.Expect(w.condition("Failing").Status).To(Equal(configv1.ConditionFalse), "the cluster can be without workers")
	w.Knobs.PoolDegraded = nil
	w.settledAt("4.20.8")
}

// TestHosts is what may happen to a host while it is changed.
func TestHosts(t *testing.T) {
	away := func(t *testing.T, options Options) *world {
		t.Helper()
		w := newWorld(t, "4.20.0", options, "m0", "m1", "m2", "a0", "w0")
		w.askFor("4.20.8")
		w.until("m0 restarts", func() bool { return w.Away("m0") })
		return w
	}
	t.Run("the restart takes its time, also without an API", func(t *testing.T) {
		w := away(t, Options{Restart: time.Minute})
		w.in.API = false
		w.ticks(3)
		w.g.Expect(w.Away("m0")).To(BeTrue())
		w.ticks(3)
		w.g.Expect(w.Away("m0")).To(BeFalse())
		w.g.Expect(w.Machine("m0").Release.Version).To(Equal("4.20.8"))
		w.ticks(5)
		w.g.Expect(w.hosts["m0"].Cordoned).To(BeTrue(), "nobody can write that")
		w.in.API = true
		w.settledAt("4.20.8")
	})
	t.Run("without power it does not come back", func(t *testing.T) {
		w := away(t, Options{})
		w.hosts["m0"].Running = false
		w.ticks(30)
		w.g.Expect(w.Away("m0")).To(BeTrue())
		w.g.Expect(w.Machine("m1").Release.Version).To(Equal("4.20.0"))
		w.hosts["m0"].Running = true
		w.settledAt("4.20.8")
	})
	t.Run("another host is dead", func(t *testing.T) {
		w := six(t)
		w.hosts["m2"].Running, w.hosts["m2"].Ready = false, false
		w.askFor("4.20.8")
		w.ticks(60)
		w.g.Expect(w.Machine("m0").Drains).To(BeFalse(), "one host is unavailable already")
		delete(w.hosts, "m2")
		w.completed("4.20.8")
	})
	t.Run("etcd needs the host", func(t *testing.T) {
		w := six(t)
		w.hosts["m0"].Held = true
		w.askFor("4.20.8")
		w.ticks(60)
		w.g.Expect(w.Machine("m0").Drains).To(BeTrue())
		w.hosts["m0"].Held = false
		w.settledAt("4.20.8")
	})
	t.Run("the host is installed again", func(t *testing.T) {
		w := away(t, Options{})
		w.hosts["m0"].Disk = "2"
		w.ticks(1)
		w.g.Expect(w.Away("m0")).To(BeFalse())
		w.g.Expect(w.Machine("m0").Release.Version).To(Equal("4.20.0"))
		w.settledAt("4.20.8")
		w.g.Expect(w.Boot("m0", Master, "3").Version).To(Equal("4.20.8"))
	})
	t.Run("the Node is deleted while it is drained", func(t *testing.T) {
		w := six(t)
		w.hosts["m0"].Held = true
		w.askFor("4.20.8")
		w.until("m0 is drained", func() bool { return w.Machine("m0").Drains })
		w.hosts["m0"].Node = false
		w.completed("4.20.8")
		w.g.Expect(w.Machine("m0").Release.Version).To(Equal("4.20.0"))
		w.g.Expect(w.Machine("nobody")).To(Equal(Machine{}))
	})
	t.Run("etcd is not done", func(t *testing.T) {
		w := six(t)
		w.in.Busy["etcd"] = true
		w.askFor("4.20.8")
		w.ticks(30)
		w.g.Expect(w.operatorReport("etcd").Progressing).To(Equal("Working towards 4.20.8"))
		w.g.Expect(w.Toward("etcd")).To(Equal(w.Target().Image))
		w.g.Expect(w.Toward("kube-apiserver")).NotTo(Equal(w.Target().Image))
	})
	t.Run("one operator takes its time", func(t *testing.T) {
		w := six(t)
		w.Knobs.Delays = map[string]time.Duration{"console": 10 * time.Minute}
		w.Knobs.Capabilities = []string{"Console"}
		w.askFor("4.20.8")
		w.completed("4.20.8")
		entry := w.Status().History[0]
		w.g.Expect(entry.CompletionTime.Sub(entry.StartedTime.Time)).To(BeNumerically(">", 10*time.Minute))
		w.g.Expect(w.condition("ImplicitlyEnabledCapabilities").Message).To(HaveSuffix(": Console"))
	})
}
