// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// Differences that several recordings share.
var (
	noValidated = difference{field: "cond.Validated", reason: "the condition was not recorded in this run"}
	// When a role is suggested depends on which of the service's monitors runs first.
	anyRole = difference{
		object: "agent/", field: "role", reason: "the suggested role appears before or after the first status that is recorded",
	}
	discovering = difference{object: "agent/", field: "debugInfo.state", value: "discovering", reason: "shorter than the recording's period"}
	waiting     = difference{
		object: "agent/", field: "debugInfo.stateInfo", value: "Waiting for host to send", reason: "shorter than the recording's period",
	}
	countdown = difference{
		object: "aci/", field: "cond.RequirementsMet", value: "UnapprovedAgents", reason: "which approvals are counted together is chance",
	}
	flapping = []difference{
		{
			object: "aci/", field: "debugInfo.state", value: clusterPendingInput,
			reason: "how often the states alternate depends on the time until a host reports",
		},
		{object: "aci/", field: "debugInfo.stateInfo", value: "User input required", reason: "as its state"},
		{object: "aci/", field: "debugInfo.state", value: clusterInsufficient, reason: "as the state that it alternates with"},
		{object: "aci/", field: "debugInfo.stateInfo", value: "Cluster is not ready for install", reason: "as its state"},
		{object: "aci/", field: "cond.Validated", value: "ValidationsUserPending", reason: "as its state"},
	}
)

func with(base []difference, more ...difference) []difference {
	return append(append([]difference{}, base...), more...)
}

// earlyScenarios are first installations in which the InfraEnv names the cluster.
func earlyScenarios() []scenario {
	trio := map[string]string{"402173bb": "h0", "bdd02ba8": "h1", "39f0457f": "h2"}
	return []scenario{
		{
			name:    "day 1, three control planes, first half",
			files:   []string{"day1-multinode-part1.log"},
			hosts:   trio,
			run:     func(d *driver) { runDay1(d, 7) },
			missing: with(flapping, anyRole, countdown),
			additional: []difference{
				noValidated, anyRole, countdown, discovering, waiting,
				{object: "aci/c1", value: "Finalizing cluster installation", reason: "the recording ends before"},
				{object: "aci/c1", value: clusterFinalizing, reason: "the recording ends before"},
				{object: "aci/c1", value: "InstallationCompleted", reason: "the recording ends before"},
				{object: "aci/c1", value: "Cluster is installed", reason: "the recording ends before"},
				{object: "aci/c1", value: clusterAddingHosts, reason: "the recording ends before"},
			},
			final: []difference{{object: "aci/c1", reason: "the recording ends before"}},
		},
		{
			name:       "day 1, three control planes, complete",
			files:      []string{"day1-multinode-part2.log"},
			hosts:      trio,
			run:        func(d *driver) { runDay1(d, 1) },
			missing:    with(flapping, anyRole, countdown),
			additional: with(flapping, noValidated, anyRole, countdown, discovering, waiting),
		},
		{
			name:       "single node, held",
			files:      []string{"sno-part1.log", "sno-part2.log"},
			hosts:      map[string]string{"3521125b": "s0"},
			run:        runSingleNode,
			additional: []difference{noValidated},
		},
		{
			name:       "one host too many",
			files:      []string{"extra-agent-blocks.log"},
			hosts:      map[string]string{"145bc8db": "x0", "8679dc86": "x1", "d6b1bbe1": "x2", "e1ae918b": "x3"},
			run:        runExtraHost,
			additional: with(flapping, noValidated, countdown, difference{object: "agent/", reason: "only the specs of the Agents were recorded"}),
		},
	}
}

// runDay1 lets the cluster wait without hosts until it has been pending some times.
func runDay1(d *driver, pending int) {
	d.cluster("c1", 3, 0, false)
	d.eventually("the cluster to be pending often enough", func() bool {
		return d.recorder.count("aci/c1", "debugInfo.state", clusterPendingInput) >= pending
	})
	d.waitCluster("c1", clusterInsufficient)
	d.infraEnv("ie1", "c1")
	d.start("ie1", "h0", "h1", "h2")
	d.waitCluster("c1", clusterReady)
	for _, host := range []string{"h0", "h1", "h2"} {
		d.ask(host, roleMaster, "c1", "")
	}
	d.wait(hostInstalled, "h0", "h1", "h2")
	d.waitCluster("c1", clusterAddingHosts)
}

func runSingleNode(d *driver) {
	d.cluster("s1", 1, 0, true)
	d.infraEnv("s1ie", "s1")
	d.start("s1ie", "s0")
	d.waitCluster("s1", clusterReady)
	d.ask("s0", roleMaster, "s1", "")
	d.waitRequirements("s1", "ClusterIsReady")
	d.unhold("s1", 1, 0)
	d.waitCluster("s1", clusterAddingHosts)
}

// runExtraHost approves three hosts as control planes of which the service had meant one to be a worker, which sends the
// cluster through insufficient, and then removes the fourth.
func runExtraHost(d *driver) {
	d.cluster("x1", 3, 0, false)
	d.infraEnv("x1ie", "x1")
	for _, host := range []string{"x3", "x0", "x1", "x2"} {
		d.start("x1ie", host)
		d.wait(hostInsufficient, host)
	}
	// What the recorder has seen counts, which may be less than what the API shows.
	recordedReady := func(times int) func() bool {
		return func() bool { return d.recorder.count("aci/x1", "debugInfo.state", clusterReady) == times }
	}
	d.eventually("the cluster to be ready", recordedReady(1))
	for _, host := range []string{"x0", "x1", "x2"} {
		d.ask(host, roleMaster, "x1", "")
	}
	d.eventually("the cluster to be ready again", recordedReady(2))
	d.waitRequirements("x1", "InsufficientAgents")
	d.ask("x3", roleWorker, "x1", "")
	d.waitRequirements("x1", "InsufficientAgents")
	d.delete("x3")
	d.waitCluster("x1", clusterInstalling)
}

func (d *driver) waitRequirements(aci, reason string) {
	d.t.Helper()
	d.eventually("RequirementsMet of "+aci+" to be "+reason, func() bool {
		return clusterReason(d.aci(aci), condRequirementsMet) == reason
	})
}

// delete asks for the deletion of a host's Agent.
func (d *driver) delete(host string) {
	d.t.Helper()
	agent := &aiv1.Agent{ObjectMeta: d.meta(d.agents[host])}
	must(d.t, d.client.Delete(d.ctx, agent))
}

// gone waits until a host's Agent is deleted.
func (d *driver) gone(host string) {
	d.t.Helper()
	d.eventually("the Agent of host "+host+" to be gone", func() bool { return d.agent(d.agents[host]).UID == "" })
}

func clusterReason(aci *hiveext.AgentClusterInstall, kind hivev1.ClusterInstallConditionType) string {
	for _, c := range aci.Status.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}

func agentReason(agent *aiv1.Agent, kind string) string {
	for _, c := range agent.Status.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}
