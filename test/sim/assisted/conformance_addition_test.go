// SPDX-License-Identifier: Apache-2.0

package assisted

import "github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"

// additionScenarios are those of hosts that join an installed cluster.
func additionScenarios() []scenario {
	return []scenario{
		{
			name:    "day 2 worker",
			files:   []string{"day2-worker.log"},
			hosts:   map[string]string{"bf883c00": "w0"},
			run:     runAddition,
			missing: []difference{anyRole},
			additional: []difference{
				noValidated, anyRole, waiting,
				{field: "progress", value: "Rebooting 55", reason: "shorter than the minute between two looks at the Node"},
			},
		},
		{
			name:       "day 2 worker that boots its image again",
			files:      []string{"day2-wrong-boot-order.log"},
			hosts:      map[string]string{"00fbc126": "r1"},
			run:        runWrongBoot,
			additional: []difference{noValidated},
		},
		{
			name:       "bind to an installed cluster and unbind",
			files:      []string{"late-binding-unbinding.log"},
			hosts:      map[string]string{"914e84bb": "l0"},
			run:        runBindUnbind,
			missing:    []difference{anyRole},
			additional: []difference{noValidated, anyRole},
			final:      []difference{{object: "agent/l0", field: "cond.Validated", reason: "of this condition only the unbinding was recorded"}},
		},
	}
}

// installed takes a single-node cluster to adding-hosts, and forgets what was recorded on the way.
func (d *driver) installed(name string) {
	d.t.Helper()
	d.cluster(name, 1, 0, false)
	d.infraEnv(name+"-day1", name)
	d.start(name+"-day1", name+"-node")
	d.ask(name+"-node", roleMaster, name, "")
	d.waitCluster(name, clusterAddingHosts)
	d.recorder.take()
}

// runAddition keeps the cluster's API out of reach until the host has rebooted.
func runAddition(d *driver) {
	d.installed("c1")
	d.infraEnv("ie2", "c1")
	d.start("ie2", "w0")
	d.wait(hostKnown, "w0")
	d.ask("w0", roleWorker, "c1", "")
	d.wait(hostInstallingInProgress, "w0")
	d.spoke.down.Store(true)
	d.eventually("host w0 to reboot", func() bool { return d.agent(d.agents["w0"]).Status.DebugInfo.StateInfo == StageRebooting })
	d.spoke.down.Store(false)
	d.wait(hostAdded, "w0")
}

func runWrongBoot(d *driver) {
	d.installed("c1")
	d.infraEnv("ie2", "c1")
	d.sim.Faults().WrongBootOrder(d.key("r1"), true)
	d.start("ie2", "r1")
	d.wait(hostKnown, "r1")
	d.ask("r1", roleWorker, "c1", "")
	d.wait(hostInstallingPending, "r1")
}

func runBindUnbind(d *driver) {
	d.installed("c1")
	d.infraEnv("late", "")
	d.start("late", "l0")
	d.wait(hostKnownUnbound, "l0")
	d.patchAgent(d.agents["l0"], func(a *aiv1.Agent) {
		a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: "c1", Namespace: d.namespace}
	})
	d.wait(hostKnown, "l0")
	d.unbind("l0")
	d.wait(hostKnownUnbound, "l0")
}

// unbind takes a host out of its cluster, and changes nothing else.
func (d *driver) unbind(host string) {
	d.t.Helper()
	d.patchAgent(d.agents[host], func(a *aiv1.Agent) { a.Spec.ClusterDeploymentName = nil })
}
