// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// yes and no are conditions of operators.
var (
	yes = workload.OperatorCondition{Status: "True"}
	no  = workload.OperatorCondition{Status: "False"}
)

// because is a condition with a message.
func because(c workload.OperatorCondition, message string) workload.OperatorCondition {
	c.Message = message
	return c
}

// installedView is an installed cluster that is well and misses one control-plane Machine: as many Machines with Nodes, and members of
// etcd, as there should be but one.
func installedView(replicas int) *view.View {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	cp.Name = "cp"
	cp.Annotations = map[string]string{controlplanev1.NextMachineAnnotation: strconv.Itoa(replicas)}
	cp.Spec.Replicas, cp.Spec.Version = new(int32(replicas)), "v1.33.4"
	v := &view.View{ControlPlane: cp, Cluster: &clusterv1.Cluster{}, Life: view.Running}
	v.Machines.Owned = collections.New()
	report := &workload.EtcdReport{
		MembersAvailable: because(yes, fmt.Sprintf("%d members are available", replicas-1)), MembersDegraded: no, MembersProgressing: no,
		LatestRevision: 7,
	}
	for n := range replicas - 1 {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cp-%d", n)}}
		m.Status.NodeRef.Name = m.Name
		m.Annotations = map[string]string{controlplanev1.EtcdHookAnnotation: ""}
		v.Machines.Owned.Insert(m)
		report.Nodes = append(report.Nodes, workload.EtcdNode{Name: m.Name, CurrentRevision: 7})
	}
	v.Workload.Updates = &workload.Updates{PoolUpdating: no, PoolDegraded: no}
	v.Workload.Version = &workload.ClusterVersion{Progressing: no, Failing: no}
	v.Workload.Etcd, v.Workload.Operators = report, map[string]workload.Operator{}
	for _, name := range workload.OperatorNames() {
		v.Workload.Operators[name] = workload.Operator{Available: yes, Progressing: no, Degraded: no}
	}
	return v
}

// degrade makes an operator Degraded.
func degrade(v *view.View, name, message string) {
	operator := v.Workload.Operators[name]
	operator.Degraded = because(yes, message)
	v.Workload.Operators[name] = operator
}

func TestContractPreflight(t *testing.T) {
	topology := func(v *view.View, version string) {
		v.Cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: version}
	}
	deleted := func(v *view.View, name string) { v.Machines.Owned[name].DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		replicas int
		voting   []string
		change   func(*view.View)
		// want is part of the only thing that stands in the way; empty when nothing does.
		want string
	}{
		"all is well":                         {replicas: 3},
		"the fifth of five":                   {replicas: 5},
		"KCP-6 topology has the same version": {replicas: 3, change: func(v *view.View) { topology(v, "v1.33.4") }},
		"KCP-6 topology has another version": {
			replicas: 3, change: func(v *view.View) { topology(v, "v1.34.1") },
			want: "The Cluster's topology asks for version v1.34.1, and spec.version is v1.33.4",
		},
		"KCP-6 topology goes by steps": {replicas: 3, change: func(v *view.View) {
			topology(v, "v1.35.1")
			v.Cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: "v1.33.4"}
		}},
		"KCP-6 a Machine is being deleted": {
			replicas: 3, change: func(v *view.View) { deleted(v, "cp-1") }, want: "Machine cp-1 is being deleted",
		},
		"a Machine waits for its turn to leave etcd": {replicas: 3, voting: []string{"cp-1"}, change: func(v *view.View) { deleted(v, "cp-1") }},
		"KCP-6 a Machine has no Node": {
			replicas: 4, change: func(v *view.View) { v.Machines.Owned["cp-1"].Status.NodeRef.Name = "" }, want: "Machine cp-1 has no Node yet",
		},
		"there is no host for a Machine": {
			replicas: 4, want: "Machine cp-1 has no Node yet: Metal3Machine cp-1 has no host: none is free", change: func(v *view.View) {
				v.Machines.Owned["cp-1"].Status.NodeRef.Name = ""
				config := &bootstrapv1.OpenshiftAssistedConfig{}
				conditions.Set(config, metav1.Condition{
					Type: bootstrapv1.HostRecognizedCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.NoHostAvailableReason,
					Message: "Metal3Machine cp-1 has no host: none is free",
				})
				v.Machines.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{"cp-1": config}
			},
		},
		"nothing is known of etcd": {
			replicas: 3, change: func(v *view.View) { v.Workload.Etcd = nil }, want: "has not said how its etcd is",
		},
		"etcd has no quorum": {
			replicas: 3, change: func(v *view.View) { v.Workload.Etcd.MembersAvailable = because(no, "No quorum") },
			want: "does not say that its members are available: No quorum",
		},
		"KCP-6 a member of etcd is not healthy": {
			replicas: 3, change: func(v *view.View) { v.Workload.Etcd.MembersDegraded = because(yes, "cp-1 is unhealthy") },
			want: "Members of etcd are not healthy: cp-1 is unhealthy",
		},
		"KCP-6 a member of etcd has not started": {
			replicas: 3, change: func(v *view.View) { v.Workload.Etcd.MembersProgressing = because(yes, "cp-1 has not started") },
			want: "A member of etcd has not started yet: cp-1 has not started",
		},
		"etcd counts a host that is gone": {
			replicas: 3, change: func(v *view.View) { v.Workload.Etcd.MembersAvailable.Message = "3 members are available" },
			want: "etcd has 3 members, and 2 control-plane Machines have Nodes: a member whose host is gone has to leave first",
		},
		"KCP-6 the newest Machine has not joined etcd": {
			replicas: 5, change: func(v *view.View) { v.Workload.Etcd.MembersAvailable.Message = "3 members are available" },
			want: "etcd has 3 members, and 4 control-plane Machines have Nodes: the host of the newest has to join it first",
		},
		"the hosts of etcd restart": {
			replicas: 4, change: func(v *view.View) { v.Workload.Etcd.LatestRevision = 8 },
			want: "etcd is being rolled out to its hosts: 0 of 3 run revision 8",
		},
		"KCP-6 an operator is degraded": {
			replicas: 4, change: func(v *view.View) { degrade(v, workload.OperatorAPIServer, "slow") },
			want: "ClusterOperator kube-apiserver is degraded: slow",
		},
		"KCP-6 an operator is degraded while an unhealthy host is replaced": {
			replicas: 5, change: func(v *view.View) {
				degrade(v, workload.OperatorAPIServer, "slow")
				v.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = view.Remediation{Machine: "cp-9"}.String()
			},
		},
		"nobody knows of a Machine API": {
			replicas: 4, change: func(v *view.View) { v.Workload.MachineAPIProblem = errors.New("forbidden") },
			want: "It is not known whether the cluster has a Machine API that works: forbidden",
		},
		"KCP-6 an operator has said nothing": {
			replicas: 4, change: func(v *view.View) { delete(v.Workload.Operators, workload.OperatorScheduler) },
			want: "ClusterOperator kube-scheduler has not said anything yet",
		},
		"the API servers restart": {
			replicas: 4, want: "The API servers restart one after the other: 2 nodes are at revision 9", change: func(v *view.View) {
				operator := v.Workload.Operators[workload.OperatorAPIServer]
				operator.Progressing = because(yes, "2 nodes are at revision 9")
				v.Workload.Operators[workload.OperatorAPIServer] = operator
			},
		},
		"an upgrade is on its way": {
			replicas: 4, change: func(v *view.View) { v.Workload.Version.Progressing = because(yes, "Working towards 4.21.3") },
			want: "ClusterVersion version is progressing: Working towards 4.21.3",
		},
		"the release fails": {
			replicas: 4, change: func(v *view.View) { v.Workload.Version.Failing = because(yes, "x") }, want: "ClusterVersion version is failing: x",
		},
		"the hosts are being changed": {
			replicas: 4, change: func(v *view.View) { v.Workload.Updates.PoolUpdating = because(yes, "x") },
			want: "MachineConfigPool master is updating its hosts: x",
		},
		"a host cannot be changed": {
			replicas: 4, change: func(v *view.View) { v.Workload.Updates.PoolDegraded = because(yes, "x") },
			want: "MachineConfigPool master is degraded: x",
		},
		"nothing is known of its hosts": {
			replicas: 4, change: func(v *view.View) { v.Workload.Updates = nil }, want: "whether its hosts are about to be restarted",
		},
		"another cluster answers through the kubeconfig": {
			replicas: 4, want: "Cluster 9b7e answers, and 3c1d was installed", change: func(v *view.View) {
				v.Record, v.Workload.OtherCluster, v.Workload.Version = &view.Installed{ClusterID: "3c1d"}, "9b7e", nil
			},
		},
		"another cluster answers through the kubeconfig, and its etcd may be short of a member": {
			replicas: 3, want: "Cluster 9b7e answers, and 3c1d was installed", change: func(v *view.View) {
				v.Record, v.Workload.OtherCluster, v.Workload.Version = &view.Installed{ClusterID: "3c1d"}, "9b7e", nil
			},
		},
		"another cluster answers": {
			replicas: 3, change: func(v *view.View) { v.Life = view.Mismatch }, want: "Another cluster answers",
		},
		"an unhealthy Machine is deleted first": {
			replicas: 4, want: "Machine cp-1, which is not healthy, is deleted first", change: func(v *view.View) {
				markUnhealthy(v, "cp-1")
				v.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = view.Remediation{Machine: "cp-1"}.String()
			},
		},
		"operators and revisions wait for the third member": {replicas: 3, change: func(v *view.View) {
			degrade(v, workload.OperatorEtcd, "RevisionControllerDegraded")
			v.Workload.Version.Failing = because(yes, "ClusterOperatorDegraded")
			v.Workload.Etcd.LatestRevision = 8
		}},
		"another waits to be drained": {replicas: 3, change: func(v *view.View) {
			awaitDrain(v, "cp-1")
			updating(v)
		}},
		"another is about to be drained": {replicas: 3, want: "Machine cp-1 is being deleted", change: func(v *view.View) {
			awaitDrain(v, "cp-1")
		}},
		"another waits to be drained, and the newest has not joined": {
			replicas: 3, want: "the newest has to join it first", change: func(v *view.View) {
				awaitDrain(v, "cp-1")
				updating(v)
				v.Workload.Etcd.MembersAvailable.Message = "1 members are available"
			},
		},
		"a two-node cluster": {
			replicas: 2, change: func(v *view.View) { v.ControlPlane.Spec.Install.TwoNode = controlplanev1.TwoNodeArbiter },
			want: "A host of a two-node cluster",
		},
		"a single-node cluster": {replicas: 1, want: "The host of a single-node cluster is not replaced"},
		"a Machine API": {
			replicas: 3, change: func(v *view.View) { v.Workload.MachineAPI = true }, want: "has a Machine API that works",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := installedView(tc.replicas)
			if tc.change != nil {
				tc.change(v)
			}
			d := plan.DecideMachines(v, tc.voting, false)
			if tc.want == "" {
				g.Expect(d.Blockers).To(BeEmpty())
				g.Expect(d.Create).To(Equal([]string{fmt.Sprintf("cp-%d", tc.replicas)}))
				return
			}
			g.Expect(d.Create).To(BeEmpty())
			g.Expect(d.Blockers).To(ContainElement(ContainSubstring(tc.want)))
		})
	}
}

// TestDrainWithoutEnd: a Machine that is being deleted keeps another from being made. When its Node is drained without a time limit, the
// blocker names the field and the annotation that end the drain.
func TestDrainWithoutEnd(t *testing.T) {
	g := NewWithT(t)
	v := installedView(3)
	drain(v, "cp-1")
	g.Expect(plan.DecideMachines(v, nil, false).Blockers).To(ConsistOf(And(
		HavePrefix("Machine cp-1 is being deleted, and its Node is drained"),
		ContainSubstring("set spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds"))))
	v.Machines.Owned["cp-1"].Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(600))
	g.Expect(plan.DecideMachines(v, nil, false).Blockers).To(ConsistOf("Machine cp-1 is being deleted"))
}
