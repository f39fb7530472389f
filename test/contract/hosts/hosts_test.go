// SPDX-License-Identifier: Apache-2.0

// Package hosts tells the life of the control-plane hosts of an installed cluster: they come, go, fail and are rolled out, with the real
// Cluster API core and its MachineHealthChecks.
package hosts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// speed makes an installation take some seconds of simulated time.
	speed = 4

	installTimeout = 4 * time.Minute
	// joinTimeout is for one host that leaves and one that joins.
	joinTimeout = 3 * time.Minute
	poll        = 200 * time.Millisecond

	hosts = 3
)

// story is a cluster of three hosts that are all of the control plane.
type story struct {
	*sandbox.World
	key     types.NamespacedName
	request sandbox.ClusterRequest
}

// TestContractHosts goes on in every part where the one before it left the cluster. There is one host more than the cluster begins with.
func TestContractHosts(t *testing.T) {
	ctrl.SetLogger(klog.Background())
	g := NewWithT(t)
	world, err := sandbox.NewWorld(t.Context(), sandbox.WorldOptions{Progress: t.Output(), Speed: speed})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(world.Stop()).To(Succeed()) }()
	s := &story{
		World:   world,
		request: sandbox.ClusterRequest{Namespace: "hosts", Name: "demo", Topology: sandbox.Compact, Address: "127.30.1.28"},
	}
	s.key = s.request.Key()
	g.Expect(world.CreateInputs(t.Context(), s.key.Namespace, hosts+1)).To(Succeed())
	g.Expect(world.ApplyCluster(t.Context(), s.request)).To(Succeed())
	s.expectHosts(t, installTimeout, hosts)

	t.Run("KCP-6 KCP-7 a host joins, and the one that a user marks leaves", s.scale)
	t.Run("KCP-24 a Machine that a user deletes leaves etcd before its host goes", s.replace)
	t.Run("E2E-24 CP-67 a Machine that a health check gave up is replaced", s.remediate)
	t.Run("KCP-9 CP-61 all hosts are replaced from a point in time on", s.rollOut)
}

func (s *story) controlPlane(t *testing.T, g Gomega) *controlplanev1.OpenshiftAssistedControlPlane {
	t.Helper()
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	g.Expect(s.Client.Get(t.Context(), sandbox.InstallKey(s.key), cp)).To(Succeed())
	return cp
}

// change patches an object as a user would.
func (s *story) change(t *testing.T, object client.Object, change func()) {
	t.Helper()
	before := object.DeepCopyObject().(client.Object)
	change()
	NewWithT(t).Expect(s.Client.Patch(t.Context(), object, client.MergeFrom(before))).To(Succeed())
}

// expectHosts waits until the cluster runs with as many hosts, all of which are members of etcd, and every other host is free again.
func (s *story) expectHosts(t *testing.T, timeout time.Duration, wanted int) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(s.AwaitCluster(t.Context(), s.key, timeout, fmt.Sprintf("%d hosts", wanted),
		sandbox.All(s.Running(s.key, wanted), s.Voters(s.key, wanted)))).To(Succeed())
	agents, err := s.VerifyHosts(t.Context(), s.key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(agents).To(HaveLen(wanted))
	g.Expect(s.LostQuorum(s.key)).To(BeFalse())
}

// machines are the control-plane Machines, by age.
func (s *story) machines(t *testing.T, g Gomega) []clusterv1.Machine {
	t.Helper()
	machines, err := s.Machines(t.Context(), s.key)
	g.Expect(err).NotTo(HaveOccurred())
	machines = slices.DeleteFunc(machines, func(m clusterv1.Machine) bool { return !util.IsControlPlaneMachine(&m) })
	slices.SortFunc(machines, func(a, b clusterv1.Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return machines
}

// expectGone waits until the Machines are gone, and others run in their places.
func (s *story) expectGone(t *testing.T, gone ...clusterv1.Machine) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		for _, m := range s.machines(t, g) {
			g.Expect(slices.ContainsFunc(gone, func(other clusterv1.Machine) bool { return other.UID == m.UID })).To(BeFalse(), m.Name)
		}
	}).WithContext(t.Context()).WithTimeout(time.Duration(len(gone)) * joinTimeout).WithPolling(poll).Should(Succeed())
	s.expectHosts(t, joinTimeout, hosts)
}

func (s *story) scale(t *testing.T) {
	g := NewWithT(t)
	replicas := func(n int32) {
		cp := s.controlPlane(t, g)
		s.change(t, cp, func() { cp.Spec.Replicas = ptr.To(n) })
	}
	replicas(hosts + 1)
	s.expectHosts(t, joinTimeout, hosts+1)
	marked := s.machines(t, g)[1]
	s.change(t, &marked, func() { metav1.SetMetaDataAnnotation(&marked.ObjectMeta, clusterv1.DeleteMachineAnnotation, "") })
	replicas(hosts)
	s.expectGone(t, marked)
}

func (s *story) replace(t *testing.T) {
	victim := s.machines(t, NewWithT(t))[0]
	NewWithT(t).Expect(s.Client.Delete(t.Context(), &victim)).To(Succeed())
	s.expectGone(t, victim)
}

func (s *story) remediate(t *testing.T) {
	g := NewWithT(t)
	victim := s.machines(t, g)[0]
	s.change(t, &victim, func() { metav1.SetMetaDataAnnotation(&victim.ObjectMeta, clusterv1.RemediateMachineAnnotation, "") })
	s.expectGone(t, victim)
	machines := s.machines(t, g)
	g.Expect(machines[hosts-1].Annotations).To(HaveKey(controlplanev1.RemediationForAnnotation))
	g.Expect(s.controlPlane(t, g).Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
}

func (s *story) rollOut(t *testing.T) {
	g := NewWithT(t)
	before := s.machines(t, g)
	cp := s.controlPlane(t, g)
	s.change(t, cp, func() { cp.Spec.Rollout.After = metav1.Now() })
	s.expectGone(t, before...)
}
