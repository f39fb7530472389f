// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// singleNode is a Cluster from the ClusterClass with one control-plane host and one worker, which joins after the installation.
func singleNode(t *testing.T, s story, version, address string) *clusterv1.Cluster {
	t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	cluster.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
		Pods:     clusterv1.NetworkRanges{CIDRBlocks: []string{"10.128.0.0/14"}},
		Services: clusterv1.NetworkRanges{CIDRBlocks: []string{"172.30.0.0/16"}},
	}
	cluster.Spec.Topology = clusterv1.Topology{
		ClassRef:     clusterv1.ClusterClassRef{Name: sandbox.ClusterClassName},
		Version:      version,
		ControlPlane: clusterv1.ControlPlaneTopology{Replicas: ptr.To[int32](1)},
		Workers: clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{
			{Class: "worker", Name: "workers", Replicas: ptr.To[int32](1)},
		}},
	}
	for name, value := range map[string]string{
		"openshiftVersion": sandbox.OpenShiftVersion, "baseDomain": "example.com", "controlPlaneEndpointHost": address,
	} {
		NewWithT(t).Expect(sandbox.SetVariable(&cluster.Spec.Topology, name, value)).To(Succeed())
	}
	return cluster
}

// setVersions asks for a version of Kubernetes and a release in one edit.
func (s story) setVersions(t *testing.T, kubernetes, openshift string) error {
	t.Helper()
	return world.ChangeTopology(t.Context(), s.key, func(topology *clusterv1.Topology) error {
		topology.Version = kubernetes
		return sandbox.SetVariable(topology, "openshiftVersion", openshift)
	})
}

// TestContractVersions installs a single node with the version that a user would guess, whose kubelets report another one, and corrects it
// as the condition says (docs/adr/0001-versions.md).
func TestContractVersions(t *testing.T) {
	t.Parallel()
	s := newStory(t, "versions", 2)
	g := NewWithT(t)
	g.Expect(world.Client.Create(t.Context(), singleNode(t, s, plainVersion, "127.30.5.20"))).To(Succeed())
	s.await(t, installTimeout, "the cluster", world.Running(s.key, 2))

	t.Run("CP-72 a condition names the version to set, and how", func(t *testing.T) {
		s.await(t, settleTimeout, "the condition", s.versionsMatch(controlplanev1.VersionMismatchReason, fmt.Sprintf(
			"The Node of Machine versions-control-plane-0 runs %s: scale the workers to 0, set spec.topology.version of Cluster versions to %s, "+
				"and scale them up again", kubeletVersion, kubeletVersion)))
	})
	t.Run("CP-70 build metadata is no upgrade of the control plane", func(t *testing.T) {
		controlPlane := s.controlPlane(t)
		NewWithT(t).Expect(controlPlane.Spec.Version).To(Equal(plainVersion))
		NewWithT(t).Expect(controlPlane.Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: kubeletVersion, Replicas: 1}}))
	})
	t.Run("CP-72 a worker with another version than its kubelet's is never up to date", func(t *testing.T) {
		_, workers := s.machines(t)
		condition := conditions.Get(workers[0], clusterv1.MachineUpToDateCondition)
		NewWithT(t).Expect(condition.Status).To(Equal(metav1.ConditionFalse))
		NewWithT(t).Expect(condition.Message).To(ContainSubstring(kubeletVersion))
	})
	t.Run("CP-72 CP-73 Cluster API refuses another version of the topology while there is such a worker", func(t *testing.T) {
		NewWithT(t).Expect(s.setVersions(t, kubeletVersion, sandbox.OpenShiftVersion)).
			To(MatchError(ContainSubstring("version cannot be changed")))
	})
	t.Run("CP-70 CP-72 CP-73 without workers the version is corrected in place", func(t *testing.T) { correctVersion(t, s) })
	t.Run("CP-72 CP-75 workers that join afterwards are up to date", func(t *testing.T) {
		NewWithT(t).Expect(world.ScaleTopology(t.Context(), s.key, 1)).To(Succeed())
		s.await(t, installTimeout, "the worker", sandbox.All(world.Running(s.key, 2), world.WorkersReplaced(s.key, nil)))
		NewWithT(t).Expect(s.cluster(t).Status.ControlPlane.Versions).To(Equal(s.controlPlane(t).Status.Versions))
	})
	t.Run("CP-73 no minor version is skipped", func(t *testing.T) {
		NewWithT(t).Expect(s.setVersions(t, "v1.35.0", "4.22.0")).To(MatchError(ContainSubstring("version cannot be increased")))
	})
	t.Run("CP-73 a new version and its release reach the control plane together", func(t *testing.T) { checkUpgrade(t, s) })
	s.delete(t)
}

// checkUpgrade changes the version, and says in the same edit which releases there are, and checks that the topology hands both on in one
// write (DESIGN D31).
func checkUpgrade(t *testing.T, s story) {
	const kubernetes, openshift = "v1.34.1", "4.21.0"
	var mu sync.Mutex
	seen := map[string]bool{}
	world.Watch.OnChange(func(object client.Object) {
		if controlPlane, ok := object.(*controlplanev1.OpenshiftAssistedControlPlane); ok && controlPlane.Namespace == s.key.Namespace {
			mu.Lock()
			defer mu.Unlock()
			seen[controlPlane.Spec.Version+" "+controlPlane.Spec.DistributionVersion] = true
		}
	})
	NewWithT(t).Expect(world.ChangeTopology(t.Context(), s.key, func(topology *clusterv1.Topology) error {
		topology.Version = kubernetes
		topology.Variables = slices.DeleteFunc(topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == "openshiftVersion" })
		return sandbox.SetVariable(topology, "releases", []map[string]string{
			{"version": kubeletVersion, "release": sandbox.OpenShiftVersion}, {"version": kubernetes, "release": openshift},
		})
	})).To(Succeed())
	s.await(t, settleTimeout, "the new versions", func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if seen[kubernetes+" "+openshift] {
			return "", nil
		}
		return fmt.Sprintf("the control plane had the versions %v", slices.Collect(maps.Keys(seen))), nil
	})
	mu.Lock()
	defer mu.Unlock()
	NewWithT(t).Expect(slices.Collect(maps.Keys(seen))).To(HaveEach(Or(
		Equal(kubernetes+" "+openshift), Equal(kubeletVersion+" "+sandbox.OpenShiftVersion),
	)))
}

// correctVersion does what the condition asks for, and checks that no control-plane Machine is replaced.
func correctVersion(t *testing.T, s story) {
	g := NewWithT(t)
	before, _ := s.machines(t)
	g.Expect(world.ScaleTopology(t.Context(), s.key, 0)).To(Succeed())
	s.await(t, installTimeout, "the worker to go", sandbox.All(world.Running(s.key, 1), s.workersSeen()))
	g.Expect(s.setVersions(t, kubeletVersion, sandbox.OpenShiftVersion)).To(Succeed())
	s.await(t, settleTimeout, "the version", sandbox.All(s.versionsMatch(controlplanev1.VersionsMatchReason, ""), s.runs(kubeletVersion)))
	after, _ := s.machines(t)
	g.Expect(after[0].UID).To(Equal(before[0].UID))
}

// runs checks that every control-plane Machine has the version and is up to date.
func (s story) runs(version string) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		machines, err := world.Machines(ctx, s.key)
		if err != nil {
			return "", err
		}
		for i := range machines {
			if machines[i].Spec.Version != version || !conditions.IsTrue(&machines[i], clusterv1.MachineUpToDateCondition) {
				return fmt.Sprintf("Machine %s has version %s", machines[i].Name, machines[i].Spec.Version), nil
			}
		}
		return "", nil
	}
}

// workersSeen checks that status.workers.versions of the Cluster is versions. Cluster API computes that field from the Machines in the
// cache of its manager. Its webhook for Clusters reads the same cache to decide whether spec.topology.version may change.
func (s story) workersSeen(versions ...clusterv1.StatusVersion) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		cluster := &clusterv1.Cluster{}
		if err := world.Watch.Get(ctx, s.key, cluster); err != nil {
			return "", err
		}
		if shown := ptr.Deref(cluster.Status.Workers, clusterv1.WorkersStatus{}).Versions; !slices.Equal(shown, versions) {
			return fmt.Sprintf("Cluster API shows the workers %+v", shown), nil
		}
		return "", nil
	}
}
