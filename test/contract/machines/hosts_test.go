// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// hosts is how many the control plane begins with.
const hosts = 3

// hostsStory is a cluster whose hosts are all of the control plane.
type hostsStory struct {
	*story
	// replaced are the replacements that the manager has counted, by cause and result.
	replaced map[string]float64
}

func TestContractHosts(t *testing.T) {
	t.Parallel()
	request := sandbox.ClusterRequest{Namespace: "hosts", Name: "demo", Topology: sandbox.Compact, Address: "127.30.1.28"}
	s := hostsStory{begin(t, request, util.IsControlPlaneMachine), map[string]float64{}}
	s.expectHosts(t, installTimeout, hosts)
	s.expectCounted(t, hosts, nil)

	tell(t,
		part{"KCP-6 KCP-7 a host joins, and the one that a user marks leaves", s.scale},
		part{"KCP-24 a Machine that a user deletes leaves etcd before its host goes, though etcdctl fails", s.replace},
		part{"E2E-24 CP-67 a Machine that a health check gave up is replaced", s.remediate},
		part{"KCP-9 CP-61 all hosts are replaced from a point in time on", s.rollOut},
		part{"a cluster whose Machine API works gets no host", s.machineAPI},
	)
}

func (s hostsStory) controlPlane(t *testing.T) *controlplanev1.OpenshiftAssistedControlPlane {
	t.Helper()
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	NewWithT(t).Expect(world.Client.Get(t.Context(), sandbox.InstallKey(s.key), cp)).To(Succeed())
	return cp
}

// expectHosts waits until the cluster runs with as many hosts, all of which are members of etcd.
func (s hostsStory) expectHosts(t *testing.T, timeout time.Duration, wanted int) {
	t.Helper()
	s.expectRunning(t, timeout, wanted, world.Voters(s.key, wanted))
	NewWithT(t).Expect(world.LostQuorum(s.key)).To(BeFalse())
}

// expectReplaced waits until the Machines are gone, and others run in their places.
func (s hostsStory) expectReplaced(t *testing.T, gone ...clusterv1.Machine) {
	t.Helper()
	s.expectGone(t, gone...)
	s.expectHosts(t, joinTimeout, hosts)
}

func (s hostsStory) scaleTo(t *testing.T, replicas int32) {
	t.Helper()
	cp := s.controlPlane(t)
	change(t, cp, func() { cp.Spec.Replicas = ptr.To(replicas) })
}

func (s hostsStory) scale(t *testing.T) {
	s.scaleTo(t, hosts+1)
	s.expectHosts(t, joinTimeout, hosts+1)
	s.expectCounted(t, hosts+1, nil)
	marked := s.machines(t, NewWithT(t))[1]
	annotate(t, &marked, clusterv1.DeleteMachineAnnotation)
	s.scaleTo(t, hosts)
	s.expectReplaced(t, marked)
}

// replace lets no command run in a Pod of etcd at first. Then the connection of each removal ends before its answer has come.
func (s hostsStory) replace(t *testing.T) {
	g := NewWithT(t)
	s.failEtcdctl(t, func(string, []string) etcd.ExecFault { return etcd.ExecRefused })
	victim := s.machines(t, g)[0]
	g.Expect(world.Client.Delete(t.Context(), &victim)).To(Succeed())
	s.expectMessage(t, controlplanev1.ScalingDownCondition, "etcd cannot be asked for its members")
	s.expectKept(t, victim)
	var removed sync.Map // By ID: the operator may add the host again before its Node is gone, as another member.
	var twice atomic.Value
	s.failEtcdctl(t, func(_ string, args []string) etcd.ExecFault {
		i := slices.Index(args, "remove")
		if i < 0 {
			return ""
		}
		if _, known := removed.LoadOrStore(args[i+1], true); known {
			twice.Store(args[i+1])
		}
		return etcd.ExecCut
	})
	s.expectReplaced(t, victim)
	g.Expect(twice.Load()).To(BeNil(), "nobody repeats the removal of a member")
	s.failEtcdctl(t, nil)
	s.expectCounted(t, hosts, nil)
}

// expectKept checks that nobody has begun to free the host of a Machine.
func (s hostsStory) expectKept(t *testing.T, machine clusterv1.Machine) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(s.node(t, machine.Status.NodeRef.Name).DeletionTimestamp).To(BeNil())
	list := &bmov1alpha1.BareMetalHostList{}
	g.Expect(world.Client.List(t.Context(), list, client.InNamespace(s.key.Namespace))).To(Succeed())
	i := slices.IndexFunc(list.Items, func(host bmov1alpha1.BareMetalHost) bool {
		return host.Spec.ConsumerRef != nil && host.Spec.ConsumerRef.Name == machine.Spec.InfrastructureRef.Name
	})
	g.Expect(i).NotTo(Equal(-1), "the BareMetalHost is the Machine's")
	g.Expect(list.Items[i].Spec.Online).To(BeTrue())
	g.Expect(list.Items[i].Status.Provisioning.State).To(Equal(bmov1alpha1.StateProvisioned))
}

// failEtcdctl decides how each command in a Pod of etcd fails.
func (s hostsStory) failEtcdctl(t *testing.T, fault func(from string, args []string) etcd.ExecFault) {
	t.Helper()
	NewWithT(t).Expect(world.Workload.EtcdFaults(sandbox.InstallKey(s.key), etcd.Faults{Exec: fault})).To(Succeed())
}

// expectMessage waits until a condition of the control plane says a text.
func (s hostsStory) expectMessage(t *testing.T, condition, text string) {
	t.Helper()
	NewWithT(t).Eventually(func() string { return conditions.GetMessage(s.controlPlane(t), condition) }).
		WithContext(t.Context()).WithTimeout(joinTimeout).WithPolling(poll).Should(ContainSubstring(text))
}

func (s hostsStory) remediate(t *testing.T) {
	g := NewWithT(t)
	victim := s.machines(t, g)[0]
	annotate(t, &victim, clusterv1.RemediateMachineAnnotation)
	s.expectReplaced(t, victim)
	g.Expect(s.machines(t, g)[hosts-1].Annotations).To(HaveKey(controlplanev1.RemediationForAnnotation))
	g.Expect(s.controlPlane(t).Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
	s.expectCounted(t, hosts, map[string]float64{"unhealthy,started": 1, "unhealthy,completed": 1})
}

func (s hostsStory) rollOut(t *testing.T) {
	before := s.machines(t, NewWithT(t))
	cp := s.controlPlane(t)
	change(t, cp, func() { cp.Spec.Rollout.After = metav1.Now() })
	s.expectReplaced(t, before...)
	s.expectCounted(t, hosts, map[string]float64{"outdated,started": hosts, "outdated,completed": hosts})
}

// machineAPI is the last part: nothing takes the Machine API away again.
func (s hostsStory) machineAPI(t *testing.T) {
	NewWithT(t).Expect(world.Workload.StartMachineAPI(t.Context(), sandbox.InstallKey(s.key))).To(Succeed())
	s.scaleTo(t, hosts+1)
	s.expectMessage(t, controlplanev1.ScalingUpCondition, "The cluster has a Machine API that works")
	s.scaleTo(t, hosts)
	s.expectHosts(t, joinTimeout, hosts)
}
