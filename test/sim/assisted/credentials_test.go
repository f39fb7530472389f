// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// TestKubeconfig checks when the administrator's Secrets appear and change, and that nothing else of them comes back.
func TestKubeconfig(t *testing.T) {
	f := newFixture(t, Options{})
	f.sim.Faults().KubeconfigLate(f.key("s1"), time.Hour)
	f.sim.Faults().StageHang(f.key("h0"), StageInstalling)
	f.cluster("s1", 1, 0, false)
	f.infraEnv("ie", "")
	name := f.boot("h0", "ie")
	f.waitAgent(name, hostKnownUnbound)
	f.patchAgent(name, func(a *aiv1.Agent) {
		a.Spec.Approved, a.Spec.ClusterDeploymentName = true, &aiv1.ClusterReference{Name: "s1", Namespace: f.namespace}
	})
	f.waitCluster("s1", clusterInstalling)
	if f.kubeconfig() != nil || f.aci("s1").Spec.ClusterMetadata != nil {
		t.Error("the kubeconfig is there, or named, although it is late")
	}
	f.sim.Faults().KubeconfigLate(f.key("s1"), 0)
	f.eventually("the metadata", func() bool { return f.aci("s1").Spec.ClusterMetadata != nil })
	early := f.kubeconfig()
	must(t, f.client.Delete(f.ctx, early))
	f.sim.Faults().FinalizingHangs(f.key("s1"), true)
	f.sim.Faults().StageHang(f.key("h0"), "")
	f.waitCluster("s1", clusterFinalizing)
	if f.kubeconfig() != nil {
		t.Error("a deleted kubeconfig came back before the end of the installation")
	}
	f.sim.Faults().FinalizingHangs(f.key("s1"), false)
	f.waitCluster("s1", clusterAddingHosts)
	f.eventually("the password", func() bool { return f.aci("s1").Spec.ClusterMetadata.AdminPasswordSecretRef != nil })
	last := f.kubeconfig()
	if last == nil || string(last.Data["kubeconfig"]) == string(early.Data["kubeconfig"]) {
		t.Fatalf("the kubeconfig did not change at the end of the installation: %v", last)
	}

	must(t, f.client.Delete(f.ctx, last))
	added := f.addedHost("s1")
	f.eventually("the reboot of the host", func() bool {
		f.sim.backend.mu.Lock()
		defer f.sim.backend.mu.Unlock()
		m := f.sim.backend.running[added]
		return m != nil && m.mode == machineDisk && f.sim.backend.hosts[added].rebooted()
	})
	if state := f.agent(added).Status.DebugInfo.State; state == hostAdded || f.kubeconfig() != nil {
		t.Errorf("the service has let the host in without a kubeconfig: %q, %v", state, f.kubeconfig())
	}
	f.create(&corev1.Secret{ObjectMeta: f.meta(last.Name), Data: last.Data})
	f.waitAgent(added, hostAdded)
}

// kubeconfig is the administrator's kubeconfig of cluster s1; nil when there is none.
func (f *fixture) kubeconfig() *corev1.Secret {
	f.t.Helper()
	secret := &corev1.Secret{}
	if f.client.Get(f.ctx, f.key(kubeconfigName("s1")), secret) != nil {
		return nil
	}
	return secret
}
