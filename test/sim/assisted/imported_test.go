// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

const importedKubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api.c1.example.com:6443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: c
`

// TestImportedCluster adds a host each to two clusters that the service did not install itself (ASSISTED 2.3): a hold, no pull secret and
// no release do not matter, but without a kubeconfig the service never sees the Node.
func TestImportedCluster(t *testing.T) {
	f := newFixture(t, Options{})
	f.importedCluster("lost")
	f.importedCluster("c1")
	f.create(&corev1.Secret{ObjectMeta: f.meta("c1-imported"), Data: map[string][]byte{"kubeconfig": []byte(importedKubeconfig)}})
	f.infraEnv("ie", "")
	lost, added := f.addedHost("lost"), f.addedHost("c1")

	f.waitAgent(added, hostAdded)
	if kind := f.agent(added).Status.Kind; kind != kindAddition {
		t.Errorf("the host's kind is %q, not %q", kind, kindAddition)
	}
	f.eventually("the reboot of the other host", func() bool { return f.agent(lost).Status.DebugInfo.StateInfo == StageRebooting })
	if metadata := f.aci("c1").Spec.ClusterMetadata; metadata != nil {
		t.Errorf("the service wrote metadata of a cluster that it did not install: %v", metadata)
	}
	f.create(&corev1.Secret{ObjectMeta: f.meta("lost-imported"), Data: map[string][]byte{"kubeconfig": []byte(importedKubeconfig)}})
	f.waitAgent(lost, hostAdded)
}

// importedCluster imports a cluster that runs in the simulator's data centre; its kubeconfig will be in Secret <name>-imported.
func (f *fixture) importedCluster(name string) {
	f.t.Helper()
	f.sim.backend.mu.Lock()
	f.sim.backend.metal.clusters[f.key(name)] = ClusterSpec{
		Key: f.key(name), Name: name, BaseDomain: "example.com", Installing: true, Complete: true,
	}
	f.sim.backend.mu.Unlock()
	cd := &hivev1.ClusterDeployment{ObjectMeta: f.meta(name)}
	cd.Spec.ClusterName, cd.Spec.BaseDomain, cd.Spec.Installed = name, "example.com", true
	cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{
		ClusterID: "0c9d7b52-6e7d-4b4e-8c6d-3f0f2f3b8f11", InfraID: name,
		AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: name + "-imported"},
	}
	cd.Spec.ClusterInstallRef = &hivev1.ClusterInstallLocalReference{
		Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall", Name: name,
	}
	f.create(cd)
	aci := &hiveext.AgentClusterInstall{ObjectMeta: f.meta(name)}
	aci.Spec.ClusterDeploymentRef.Name, aci.Spec.HoldInstallation = name, true
	f.create(aci)
	f.waitCluster(name, clusterAddingHosts)
}

// addedHost boots a host and binds it to a cluster.
func (f *fixture) addedHost(cluster string) string {
	f.t.Helper()
	name := f.boot("worker-of-"+cluster, "ie")
	f.waitAgent(name, hostKnownUnbound)
	f.patchAgent(name, func(a *aiv1.Agent) {
		a.Spec.Role, a.Spec.Approved = roleWorker, true
		a.Spec.ClusterDeploymentName = &aiv1.ClusterReference{Name: cluster, Namespace: f.namespace}
	})
	return name
}
