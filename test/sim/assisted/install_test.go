// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// TestLateBoundInstall takes three control-plane hosts and two workers from nothing to adding-hosts.
func TestLateBoundInstall(t *testing.T) {
	f := newFixture(t, Options{Durations: DefaultDurations()})
	f.cluster("c1", 3, 2, true)
	f.infraEnv("ie", "")
	roles := map[string]string{"m0": roleMaster, "m1": roleMaster, "m2": roleMaster, "w0": roleWorker, "w1": roleWorker}
	agents := map[string]string{}
	for host := range roles {
		agents[host] = f.boot(host, "ie")
	}
	for host, role := range roles {
		f.waitAgent(agents[host], hostKnownUnbound)
		f.patchAgent(agents[host], func(a *aiv1.Agent) {
			a.Spec.Role, a.Spec.Hostname, a.Spec.Approved = role, "node-"+host, true
			a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: "c1", Namespace: f.namespace}
		})
	}
	f.waitCluster("c1", clusterReady)
	f.patchACI("c1", func(aci *hiveext.AgentClusterInstall) { aci.Spec.HoldInstallation = false })
	f.waitCluster("c1", clusterAddingHosts)
	for _, name := range agents {
		f.waitAgent(name, hostInstalled)
	}
}
