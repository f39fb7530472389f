// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// TestRegisterAgain has the rules for the registration of a host that the service knows (internal/host/statemachine.go and
// pool_host_state_machine.go of assisted-service).
func TestRegisterAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		state, stage, kind string
		want               answer
		then               string
	}{
		"discovering":                        {hostDiscovering, "", kindHost, accepted, hostDiscovering},
		"insufficient":                       {hostInsufficient, "", kindHost, accepted, hostDiscovering},
		"known":                              {hostKnown, "", kindHost, accepted, hostDiscovering},
		"disconnected":                       {hostDisconnected, "", kindHost, accepted, hostDiscovering},
		"binding":                            {hostBinding, "", kindHost, accepted, hostDiscovering},
		"preparing":                          {hostPreparing, "", kindHost, accepted, hostDiscovering},
		"prepared":                           {hostPreparingSuccessful, "", kindHost, accepted, hostDiscovering},
		"preparation failed":                 {hostPreparingFailed, "", kindHost, again, hostPreparingFailed},
		"installing":                         {hostInstalling, "", kindHost, accepted, hostError},
		"writing the disk":                   {hostInstallingInProgress, StageWritingImage, kindHost, accepted, hostError},
		"rebooting":                          {hostInstallingInProgress, StageRebooting, kindHost, accepted, hostInstallingPending},
		"configuring, after the reboot":      {hostInstallingInProgress, StageConfiguring, kindHost, accepted, hostError},
		"joined, day 2":                      {hostInstallingInProgress, StageJoined, kindAddition, accepted, hostError},
		"has booted the image again already": {hostInstallingPending, StageRebooting, kindHost, again, hostInstallingPending},
		"installed":                          {hostInstalled, StageDone, kindHost, again, hostInstalled},
		"added":                              {hostAdded, StageDone, kindAddition, accepted, hostInstallingPending},
		"failed":                             {hostError, StageWritingImage, kindHost, accepted, hostError},
		"cancelled":                          {hostCancelled, "", kindHost, again, hostCancelled},
		"unbinding":                          {hostUnbinding, "", kindHost, accepted, hostDiscoveringUnbound},
		"unbound, and has to be rebooted":    {hostUnbindingPending, "", kindHost, accepted, hostDiscoveringUnbound},
		"is to be rebooted by the service":   {hostReclaiming, "", kindHost, again, hostReclaiming},
		"was rebooted by the service":        {hostReclaimingRebooting, "", kindHost, accepted, hostDiscoveringUnbound},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(Options{}).backend
			env := types.NamespacedName{Namespace: "ns", Name: "ie"}
			b.infraEnvs[env] = &infraEnv{key: env}
			b.clusters["c"] = &cluster{id: "c", state: clusterInstalling}
			hw := HostHardware{Serial: "1"}
			h := &host{id: hostID(hw), infraEnv: env, clusterID: "c", kind: tt.kind, state: tt.state, stages: []string{tt.stage}}
			b.hosts[h.id] = h
			got := b.register(&machine{hardware: hw, infraEnv: env}, b.now())
			if got != tt.want || h.state != tt.then {
				t.Errorf("the answer is %d and the state %q; want %d, %q", got, h.state, tt.want, tt.then)
			}
		})
	}
}

// TestAddedHostBootsItsImage: a host that has been added and boots its discovery image once more stays for a person, also when it runs from
// its disk again. When its Agent is deleted while it tries to register, it comes back as a new one.
func TestAddedHostBootsItsImage(t *testing.T) {
	f := newFixture(t, Options{})
	f.installedCluster("s1")
	added := f.addedHost("s1")
	f.waitAgent(added, hostAdded)
	host := f.key("worker-of-s1")
	f.sim.RebootFromImage(host)
	f.waitAgent(added, hostInstallingPending)
	if stage := f.agent(added).Status.Progress.CurrentStage; stage != StageDone {
		t.Errorf("the host has stage %q, not %q", stage, StageDone)
	}
	f.sim.Reboot(host)
	f.eventually("the machine to run from its disk", func() bool { return f.machineMode(host) == machineDisk })
	f.sim.RebootFromImage(host)
	f.eventually("the machine to try to register", func() bool { return f.machineMode(host) == machineBooting })
	if state := f.agent(added).Status.DebugInfo.State; state != hostInstallingPending {
		t.Errorf("the host is %q although nothing tells the service that it runs", state)
	}
	uid := f.agent(added).UID
	f.patchAgent(added, func(a *aiv1.Agent) { a.Annotations[skipCleanup] = "true" })
	must(t, f.client.Delete(f.ctx, f.agent(added)))
	f.eventually("another Agent", func() bool {
		a := f.agent(added)
		return a.UID != "" && a.UID != uid && a.Status.DebugInfo.State == hostKnownUnbound
	})
}

// installedCluster installs a single-node cluster, and makes InfraEnv ie for hosts that come later.
func (f *fixture) installedCluster(name string) {
	f.t.Helper()
	f.cluster(name, 1, 0, false)
	f.infraEnv("day1-of-"+name, name)
	first := f.boot("first-of-"+name, "day1-of-"+name)
	f.waitAgent(first, hostKnown)
	f.patchAgent(first, func(a *aiv1.Agent) { a.Spec.Approved = true })
	f.infraEnv("ie", "")
	f.waitCluster(name, clusterAddingHosts)
}

func (f *fixture) machineMode(key HostKey) machineMode {
	f.sim.backend.mu.Lock()
	defer f.sim.backend.mu.Unlock()
	return f.sim.backend.machines[key].mode
}
