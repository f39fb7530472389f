// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metrics"
	"github.com/capi-openshift/agent-providers/test/monitoring"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// versionsSeen are the versions that the objects of a Cluster have had, in their order.
type versionsSeen struct {
	mu sync.Mutex
	// controlPlane has the Kubernetes version and the release, workers the version of the MachineDeployment.
	controlPlane, workers []string
}

// watchVersions notes the versions that the objects of a Cluster have, and every one that they get.
func (s story) watchVersions(t *testing.T) *versionsSeen {
	t.Helper()
	seen := &versionsSeen{}
	seen.note(s.controlPlane(t))
	deployments := &clusterv1.MachineDeploymentList{}
	s.list(t, deployments)
	for i := range deployments.Items {
		seen.note(&deployments.Items[i])
	}
	world.Watch.OnChange(func(object client.Object) {
		if object.GetNamespace() == s.key.Namespace {
			seen.note(object)
		}
	})
	return seen
}

func (v *versionsSeen) note(object client.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch o := object.(type) {
	case *controlplanev1.OpenshiftAssistedControlPlane:
		v.controlPlane = appendNew(v.controlPlane, o.Spec.Version+" "+o.Spec.DistributionVersion+" "+o.Spec.Upgrade.Channel)
	case *clusterv1.MachineDeployment:
		v.workers = appendNew(v.workers, o.Spec.Template.Spec.Version)
	}
}

// all are the versions until now.
func (v *versionsSeen) all() (controlPlane, workers []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.controlPlane), slices.Clone(v.workers)
}

func appendNew(all []string, version string) []string {
	if len(all) > 0 && all[len(all)-1] == version {
		return all
	}
	return append(all, version)
}

// TestContractUpgradePlan brings a cluster over two minor versions by one change of its topology. OpenShift upgrades the Nodes of the
// workers at each step, together with those of the control plane, so that their MachineDeployment has to follow before Cluster API takes
// the next step (docs/adr/0008-workers-follow.md).
func TestContractUpgradePlan(t *testing.T) {
	t.Parallel()
	s := installSingleNode(t, "plan", "127.30.5.30")
	servers, machineSets, seen := s.servers(t), s.machineSets(t), s.watchVersions(t)
	NewWithT(t).Expect(machineSets).To(HaveLen(1))
	expectUpgradesCounted(t)

	s.planUpgrade(t, sandbox.MinorRelease, sandbox.NextRelease)
	s.await(t, upgradeTimeout, "the second minor version", s.runsAll(sandbox.NextRelease))
	t.Run("CP-73 version, release and channel change together, one minor version after the other", func(t *testing.T) {
		controlPlane, _ := seen.all()
		NewWithT(t).Expect(controlPlane).To(Equal([]string{
			kubeletVersion + " " + sandbox.OpenShiftVersion + " ",
			sandbox.MinorRelease.KubeletVersion + " " + sandbox.MinorRelease.Version + " stable-4.21",
			sandbox.NextRelease.KubeletVersion + " " + sandbox.NextRelease.Version + " stable-4.22",
		}))
	})
	t.Run("the workers take every step", func(t *testing.T) {
		_, workers := seen.all()
		NewWithT(t).Expect(workers).To(Equal([]string{
			kubeletVersion, sandbox.MinorRelease.KubeletVersion, sandbox.NextRelease.KubeletVersion,
		}))
	})
	t.Run("the servers and their MachineSet are the same", func(t *testing.T) {
		NewWithT(t).Expect(s.servers(t)).To(Equal(servers))
		NewWithT(t).Expect(s.machineSets(t)).To(Equal(machineSets))
	})
	t.Run("the manager has counted both upgrades, and those of the other clusters", func(t *testing.T) {
		counted, scrape := expectUpgradesCounted(t)
		for _, release := range []upgrade.Release{sandbox.MinorRelease, sandbox.NextRelease} {
			NewWithT(t).Expect(counted).To(HaveKey(metrics.ReleaseMinor(release.Version) + ",completed"))
		}
		NewWithT(t).Expect(monitoring.CheckServed(monitoring.StoryTopology, scrape.Bootstrap, scrape.ControlPlane)).To(Succeed())
	})
	s.delete(t)
}

// TestContractPausedWorkers brings a cluster over two minor versions while the MachineConfigPool of its workers is paused, so that these
// are restarted once (docs/guides/upgrade.md).
func TestContractPausedWorkers(t *testing.T) {
	t.Parallel()
	g, s := NewWithT(t), installSingleNode(t, "paused", "127.30.5.40")
	servers, machineSets, seen := s.servers(t), s.machineSets(t), s.watchVersions(t)

	s.pauseWorkers(t, true)
	s.planUpgrade(t, sandbox.MinorRelease, sandbox.NextRelease)
	s.await(t, upgradeTimeout, "the control plane", func(ctx context.Context) (string, error) {
		_, workers := seen.all()
		controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
		err := world.Watch.Get(ctx, sandbox.InstallKey(s.key), controlPlane)
		if runs := controlPlane.Status.DistributionVersion; err != nil || runs != sandbox.NextRelease.Version || len(workers) != 2 {
			return fmt.Sprintf("the control plane runs %s, the workers were asked for %v", runs, workers), err
		}
		return "", nil
	})
	_, before := s.machines(t)
	g.Expect(before[0].Status.NodeInfo.KubeletVersion).To(Equal(kubeletVersion))
	s.pauseWorkers(t, false)
	s.await(t, upgradeTimeout, "the workers", s.runsAll(sandbox.NextRelease))
	_, workers := seen.all()
	g.Expect(workers).To(Equal([]string{kubeletVersion, sandbox.NextRelease.KubeletVersion}), "they do not come to the version in between")
	g.Expect(s.servers(t)).To(Equal(servers))
	g.Expect(s.machineSets(t)).To(Equal(machineSets))
	s.delete(t)
}

// TestContractUpgradeFromInside has the administrator of a cluster upgrade it, and tells the topology so as docs/guides/upgrade.md says.
func TestContractUpgradeFromInside(t *testing.T) {
	t.Parallel()
	g, s := NewWithT(t), installSingleNode(t, "inside", "127.30.5.50")
	servers, release := s.servers(t), sandbox.PatchRelease
	g.Expect(world.Workload.RequestOutOfBand(t.Context(), sandbox.InstallKey(s.key), release.Version, false)).To(Succeed())
	s.await(t, upgradeTimeout, "the release", sandbox.All(
		world.Outran(s.key, release), s.nodesRun(release), s.workersSeen(clusterv1.StatusVersion{Version: release.KubeletVersion, Replicas: 1}),
	))

	g.Expect(s.wantRelease(t, release)).To(MatchError(ContainSubstring("version cannot be changed")))
	cluster := s.cluster(t)
	patch := client.MergeFrom(cluster.DeepCopy())
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation, "")
	g.Expect(world.Client.Patch(t.Context(), cluster, patch)).To(Succeed())
	g.Expect(s.wantRelease(t, release)).To(Succeed())
	s.await(t, upgradeTimeout, "everything to follow", s.runsAll(release))
	g.Expect(s.servers(t)).To(Equal(servers))
	s.delete(t)
}

// planUpgrade lists releases in the ClusterClass and in the topology, and wants the last of them.
func (s story) planUpgrade(t *testing.T, releases ...upgrade.Release) {
	t.Helper()
	s.planVersions(t, releases...)
	NewWithT(t).Expect(s.wantRelease(t, releases...)).To(Succeed())
}

// planVersions says in the ClusterClass which versions there are after the installed one, so that Cluster API goes from one to the next.
// It returns when Cluster API's manager has the list in its cache, which status.observedGeneration of the class tells: the webhook for
// Clusters reads the class from there, and without the list it refuses to skip a minor version.
func (s story) planVersions(t *testing.T, releases ...upgrade.Release) {
	t.Helper()
	g, class := NewWithT(t), &clusterv1.ClusterClass{}
	s.get(t, sandbox.ClusterClassName, class)
	patch := client.MergeFrom(class.DeepCopy())
	class.Spec.KubernetesVersions = []string{kubeletVersion}
	for _, release := range releases {
		class.Spec.KubernetesVersions = append(class.Spec.KubernetesVersions, release.KubeletVersion)
	}
	g.Expect(world.Client.Patch(t.Context(), class, patch)).To(Succeed())
	g.Eventually(func() (int64, error) {
		err := world.Client.Get(t.Context(), client.ObjectKeyFromObject(class), class)
		return class.Status.ObservedGeneration, err
	}).WithTimeout(settleTimeout).Should(Equal(class.Generation), "Cluster API does not see the versions")
}

// wantRelease lists releases in the topology after the installed one, each with its channel, and wants the last of them.
func (s story) wantRelease(t *testing.T, releases ...upgrade.Release) error {
	t.Helper()
	return world.ChangeTopology(t.Context(), s.key, func(topology *clusterv1.Topology) error {
		list := []map[string]string{{"version": kubeletVersion, "release": sandbox.OpenShiftVersion}}
		for _, release := range releases {
			list = append(list, map[string]string{
				"version": release.KubeletVersion, "release": release.Version, "channel": upgrade.Channel(release.Version),
			})
		}
		topology.Version = releases[len(releases)-1].KubeletVersion
		topology.Variables = slices.DeleteFunc(topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == "openshiftVersion" })
		return sandbox.SetVariable(topology, "releases", list)
	})
}

// runsAll checks that the cluster, its Machines, its only MachineSet and its topology have come to a release.
func (s story) runsAll(release upgrade.Release) sandbox.Check {
	return sandbox.All(
		world.Runs(s.key, release), s.topologyReconciled(metav1.ConditionTrue, ""), s.workersFollowed(release.KubeletVersion),
	)
}

// nodesRun checks that the kubelets of all Machines are those of a release.
func (s story) nodesRun(release upgrade.Release) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		machines, err := world.Machines(ctx, s.key)
		for i := range machines {
			if info := machines[i].Status.NodeInfo; info == nil || info.KubeletVersion != release.KubeletVersion {
				return "Machine " + machines[i].Name + " does not run " + release.KubeletVersion, err
			}
		}
		return "", err
	}
}

// pauseWorkers does what oc patch machineconfigpool does.
func (s story) pauseWorkers(t *testing.T, paused bool) {
	t.Helper()
	g := NewWithT(t)
	installed, err := world.Installed(s.key)
	g.Expect(err).NotTo(HaveOccurred())
	pool := &unstructured.Unstructured{}
	pool.SetAPIVersion("machineconfiguration.openshift.io/v1")
	pool.SetKind("MachineConfigPool")
	pool.SetName("worker")
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	g.Expect(installed.Patch(t.Context(), pool, patch)).To(Succeed())
}

// servers are the UIDs of the Machines, with the Nodes that they have, by name.
func (s story) servers(t *testing.T) map[string]string {
	t.Helper()
	controlPlane, workers := s.machines(t)
	servers := map[string]string{}
	for _, machine := range append(controlPlane, workers...) {
		servers[machine.Name] = string(machine.UID) + " " + machine.Status.NodeRef.Name
	}
	return servers
}

// machineSets are the UIDs of the MachineSets.
func (s story) machineSets(t *testing.T) []types.UID {
	t.Helper()
	list := &clusterv1.MachineSetList{}
	s.list(t, list)
	var uids []types.UID
	for i := range list.Items {
		uids = append(uids, list.Items[i].UID)
	}
	return uids
}

// workersFollowed checks that there is one MachineSet, with the version.
func (s story) workersFollowed(version string) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		list := &clusterv1.MachineSetList{}
		if err := world.Client.List(ctx, list, client.InNamespace(s.key.Namespace)); err != nil {
			return "", err
		}
		var versions []string
		for i := range list.Items {
			versions = append(versions, list.Items[i].Spec.Template.Spec.Version)
		}
		if slices.Equal(versions, []string{version}) {
			return "", nil
		}
		return fmt.Sprintf("there are MachineSets of the versions %v", versions), nil
	}
}
