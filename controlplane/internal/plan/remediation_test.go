// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	deprecated "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// noon is the time of the passes.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// unhealthyView is an installed cluster of as many control-plane Machines as members of etcd, each at its own address, whose Machine cp-0
// waits to be replaced.
func unhealthyView(members ...workload.Member) *view.View {
	v := installedView(len(members) + 1)
	v.ControlPlane.Spec.Replicas = new(int32(len(members)))
	v.ControlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
	v.Now, v.Workload.Members = noon, members
	answering(v)
	for n, name := range []string{"cp-0", "cp-1", "cp-2", "cp-3", "cp-4"}[:len(members)] {
		m := v.Machines.Owned[name]
		host := etcdHost(n)
		m.Status.NodeRef.Name = host.Node
		for _, address := range host.Addresses {
			m.Status.Addresses = append(m.Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
		}
		says(clusterv1.MachineNodeReadyCondition, metav1.ConditionTrue)(m)
	}
	markUnhealthy(v, "cp-0")
	return v
}

// answering makes Cluster API core say that the cluster answers since an hour.
func answering(v *view.View) {
	conditions.Set(v.Cluster, metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionTrue,
		Reason: "Test", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))})
}

// markUnhealthy does what a MachineHealthCheck does to a Machine.
func markUnhealthy(v *view.View, name string) {
	m := v.Machines.Owned[name]
	says(clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown)(m)
	says(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse)(m)
	says(clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse)(m)
}

// unwell makes the operator of etcd report, for a while, members that are not healthy.
func unwell(v *view.View, since time.Duration) {
	v.Workload.Etcd.MembersDegraded = because(yes, "a member is unhealthy")
	v.Workload.Etcd.MembersDegraded.Since = noon.Add(-since)
}

// awaitTurn makes a Machine one that is being deleted and that nothing but the hook of etcd keeps.
func awaitTurn(v *view.View, name string) {
	m := v.Machines.Owned[name]
	m.DeletionTimestamp, m.Annotations = &metav1.Time{Time: noon}, map[string]string{controlplanev1.EtcdHookAnnotation: ""}
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
}

// drain makes a Machine one that is being deleted and whose Node is drained without a time limit.
func drain(v *view.View, name string) {
	awaitTurn(v, name)
	conditions.Set(v.Machines.Owned[name], metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.MachineDeletingDrainingNodeReason})
}

// drainedBeside is an upgrade that is paused because cp-0 has died, while cp-1 waits to leave etcd, whose host restarts as well or not.
func drainedBeside(v *view.View, restarts bool) {
	unwell(v, 31*time.Minute)
	awaitTurn(v, "cp-1")
	askForUpgrade(v)
	pauseUpdate(v, 2)
	v.Workload.Nodes = []workload.ControlPlaneNode{{Name: v.Machines.Owned["cp-0"].Status.NodeRef.Name},
		{Name: v.Machines.Owned["cp-1"].Status.NodeRef.Name, Cordoned: true, Ready: true, Changing: restarts}}
}

// askForUpgrade makes a cluster that runs 4.20.4 be asked for another release.
func askForUpgrade(v *view.View) {
	v.Workload.Version.Desired.Version, v.Workload.Version.Requested.Version = "4.20.4", "4.20.8"
}

// replacementOf makes Machine cp-0 the replacement of another, since an hour.
func replacementOf(v *view.View, retries int) {
	record := view.Remediation{Machine: "cp-9", Timestamp: metav1.NewTime(noon.Add(-time.Hour)), RetryCount: retries}
	v.Machines.Owned["cp-0"].Annotations[controlplanev1.RemediationForAnnotation] = record.String()
}

func TestContractRemediation(t *testing.T) {
	const wait, never = controlplanev1.MachineRemediationDeferredReason, controlplanev1.MachineCannotBeRemediatedReason
	type members = []workload.Member
	three, five := members{dead(0), voter(1), voter(2)}, members{dead(0), voter(1), voter(2), voter(3), voter(4)}
	for name, tc := range map[string]struct {
		members members
		change  func(*view.View)
		// reason and says are those of the condition OwnerRemediated of cp-0; empty when it is replaced.
		reason, says string
	}{
		"KCP-20 CP-67 its host is dead": {members: three},
		"its member serves":             {members: members{voter(0), voter(1), voter(2)}},
		"five with two dead":            {members: members{dead(0), dead(1), voter(2), voter(3), voter(4)}},
		"it never became a member":      {members: members{voter(1), voter(2), voter(3)}},
		"etcd would lose its quorum":    {members: members{dead(0), dead(1), voter(2)}, reason: never, says: "etcd quorum is lost"},
		"its member serves, one dead":   {members: members{voter(0), dead(1), voter(2)}, reason: wait, says: "have to recover or to leave first"},
		"its host is dead, somebody deleted its Node, and its addresses are those of its inspection": {members: three,
			change: func(v *view.View) { v.Machines.Owned["cp-0"].Status.Addresses[0].Address = "172.22.0.9" }},
		"its host is dead, and its Node has another address": {members: three, reason: wait, says: "is none of the Machine's",
			change: func(v *view.View) {
				v.Machines.Owned["cp-0"].Status.Addresses[0].Address = "172.22.0.9"
				v.Workload.Nodes = []workload.ControlPlaneNode{{Name: "n0", Addresses: []string{"10.0.0.9"}}}
			}},
		"another waits for its turn": {members: three, change: func(v *view.View) { awaitTurn(v, "cp-1") }},
		"another was drained and waits for its turn, and the pool is paused": {members: three, change: func(v *view.View) {
			drainedBeside(v, false)
		}},
		"another was drained, waits for its turn, and restarts, and the pool is paused": {
			members: three, reason: never, says: "hosts beside that of member n0 are cordoned, not ready, or being changed (1)",
			change: func(v *view.View) { drainedBeside(v, true) },
		},
		"another is drained": {members: three, change: func(v *view.View) { drain(v, "cp-1") }},
		"another is drained, and it is its own host that works": {
			members: three, reason: wait, says: "Machine cp-1 is being deleted, and its Node is drained without a time limit",
			change: func(v *view.View) {
				drain(v, "cp-1")
				says(clusterv1.MachineNodeReadyCondition, metav1.ConditionTrue)(v.Machines.Owned["cp-0"])
			},
		},
		"another is drained, whose host nothing keeps": {
			members: three, reason: wait, says: "or annotation machine.cluster.x-k8s.io/exclude-node-draining on the Machine",
			change: func(v *view.View) {
				drain(v, "cp-1")
				v.Machines.Owned["cp-1"].Annotations = nil
			},
		},
		"another is being replaced, and is drained": {members: five, change: func(v *view.View) {
			drain(v, "cp-1")
			v.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = view.Remediation{Machine: "cp-1"}.String()
		}},
		"another is drained, and etcd would lose its quorum": {
			members: members{dead(0), dead(1), voter(2)}, reason: never, says: "etcd quorum is lost",
			change: func(v *view.View) { drain(v, "cp-1") },
		},
		"another is drained during an upgrade, and the pool is paused": {members: three, change: func(v *view.View) {
			drainedBeside(v, false)
			drain(v, "cp-1")
		}},
		"another is drained during an upgrade, and restarts, and the pool is paused": {
			members: three, reason: never, says: "hosts beside that of member n0 are cordoned, not ready, or being changed (1)",
			change: func(v *view.View) {
				drainedBeside(v, true)
				drain(v, "cp-1")
			},
		},
		"another is about to be drained": {members: three, reason: wait, says: "Machine cp-1 is being deleted", change: func(v *view.View) {
			awaitDrain(v, "cp-1")
		}},
		"another waits to be drained": {members: five, change: func(v *view.View) {
			awaitDrain(v, "cp-1")
			updating(v)
			unwell(v, 31*time.Minute)
		}},
		"another is being replaced, and waits to be drained": {members: five, change: func(v *view.View) {
			awaitDrain(v, "cp-1")
			updating(v)
			unwell(v, 31*time.Minute)
			v.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = view.Remediation{Machine: "cp-1"}.String()
		}},
		"nobody knows its Node, and a member is of no other": {members: three, reason: wait, says: "Machine cp-0 has no Node, and member",
			change: func(v *view.View) {
				status := &v.Machines.Owned["cp-0"].Status
				status.NodeRef.Name, status.Addresses = "", nil
			}},
		"its host has never joined": {members: members{voter(1), voter(2)}, change: func(v *view.View) {
			v.Machines.Owned["cp-0"].Status.NodeRef.Name = ""
			v.Machines.Owned["cp-2"] = &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp-2"}}
			v.Machines.Owned["cp-2"].Status.NodeRef.Name = etcdHost(2).Node
		}},
		"another is being deleted": {members: three, reason: wait, says: "Machine cp-1 is being deleted", change: func(v *view.View) {
			v.Machines.Owned["cp-1"].DeletionTimestamp = &metav1.Time{Time: noon}
		}},
		"another joins": {members: three, reason: wait, says: "Machine cp-1 has no Node yet", change: func(v *view.View) {
			v.Machines.Owned["cp-1"].Status.NodeRef.Name = ""
		}},
		"there are too many: the unhealthy one goes first": {members: three, change: func(v *view.View) {
			v.ControlPlane.Spec.Replicas = new(int32(2))
		}},
		"an upgrade is on its way": {members: three, reason: wait, says: "asks for version v1.34.1", change: func(v *view.View) {
			v.Cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.34.1"}
		}},
		"another host is being restarted": {members: three, reason: wait, says: "Node cp-1 is cordoned", change: func(v *view.View) {
			v.Workload.Updates.PoolUpdating = because(yes, "1 of 3")
			own := v.Machines.Owned["cp-0"].Status.NodeRef.Name
			v.Workload.Nodes = []workload.ControlPlaneNode{{Name: own, Cordoned: true}, {Name: "cp-1", Ready: true, Cordoned: true}}
		}},
		"another host goes too, and does not come back by itself": {
			members: []workload.Member{dead(0), dead(1), voter(2), voter(3), voter(4)},
			change: func(v *view.View) {
				markUnhealthy(v, "cp-1")
				unwell(v, 31*time.Minute)
				v.Workload.Updates.PoolUpdating = because(yes, "3 of 5")
				v.Workload.Nodes = []workload.ControlPlaneNode{{Name: v.Machines.Owned["cp-0"].Status.NodeRef.Name},
					{Name: v.Machines.Owned["cp-1"].Status.NodeRef.Name, Cordoned: true}}
			},
		},
		"it is being restarted itself": {
			members: three, reason: wait, says: "it is removed when that lasts longer than 30 minutes", change: func(v *view.View) {
				unwell(v, 29*time.Minute)
				v.Workload.Updates.PoolUpdating = because(yes, "1 of 3")
			},
		},
		"an upgrade was just asked for": {
			members: three, reason: wait, says: "it is removed when that lasts longer than 30 minutes", change: func(v *view.View) {
				askForUpgrade(v)
			},
		},
		"an upgrade was asked for and refused": {members: three, change: func(v *view.View) {
			askForUpgrade(v)
			v.Workload.Version.Observed, v.Workload.Version.Accepted = true, because(no, "it is not signed")
		}},
		"it is being restarted itself, and does not come back, so that two would be left for the next restart": {
			members: three, reason: never, says: "set spec.paused of MachineConfigPool master to true", change: func(v *view.View) {
				unwell(v, 31*time.Minute)
				v.Workload.Updates.PoolUpdating = because(yes, "1 of 3")
			},
		},
		"it is being restarted itself, and does not come back, and the pool is paused": {members: three, change: func(v *view.View) {
			unwell(v, 31*time.Minute)
			pauseUpdate(v, 1)
			v.Workload.Nodes = []workload.ControlPlaneNode{{Name: v.Machines.Owned["cp-0"].Status.NodeRef.Name, Cordoned: true}}
		}},
		"it does not come back, the pool is paused, and another host has begun": {
			members: three, reason: wait, says: "Node cp-1 is cordoned or not ready: its host may restart yet", change: func(v *view.View) {
				unwell(v, 31*time.Minute)
				askForUpgrade(v)
				pauseUpdate(v, 2)
				own := v.Machines.Owned["cp-0"].Status.NodeRef.Name
				v.Workload.Nodes = []workload.ControlPlaneNode{{Name: own}, {Name: "cp-1", Ready: true, Cordoned: true}}
			},
		},
		"it does not come back, the pool is paused, and another host is about to be drained": {
			members: three, reason: never, says: "hosts beside that of member n0 are cordoned, not ready, or being changed (1)",
			change: func(v *view.View) {
				unwell(v, 31*time.Minute)
				pauseUpdate(v, 2)
				v.Workload.Nodes = []workload.ControlPlaneNode{{Name: v.Machines.Owned["cp-0"].Status.NodeRef.Name}}
			},
		},
		"another cluster answers": {members: three, reason: wait, says: "Cluster 9b7e answers", change: func(v *view.View) {
			v.Record, v.Workload.OtherCluster = &view.Installed{ClusterID: "3c1d"}, "9b7e"
		}},
		"nobody can ask etcd": {members: three, reason: wait, says: "does not answer", change: func(v *view.View) {
			v.Workload.Members = nil
		}},
		"the API is gone": {members: three, reason: wait, says: "does not answer Cluster API", change: func(v *view.View) {
			conditions.Set(v.Cluster, metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionFalse,
				Reason: "Test", LastTransitionTime: metav1.NewTime(noon)})
		}},
		"the API has just come back": {members: three, reason: wait, says: "again since 2026-01-01T11:59:00Z", change: func(v *view.View) {
			conditions.Set(v.Cluster, metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionFalse,
				Reason: "Test"})
			conditions.Set(v.Cluster, metav1.Condition{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionTrue,
				Reason: "Test", LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))})
		}},
		"a Machine API": {members: three, reason: never, says: "has a Machine API", change: func(v *view.View) { v.Workload.MachineAPI = true }},
		"a two-node cluster": {members: three, reason: never, says: "two-node cluster", change: func(v *view.View) {
			v.ControlPlane.Spec.Install.TwoNode = controlplanev1.TwoNodeFencing
		}},
		"a single-node cluster":                {members: members{dead(0)}, reason: never, says: "single-node cluster"},
		"KCP-20 a replacement, without limits": {members: three, change: func(v *view.View) { replacementOf(v, 7) }},
		"KCP-20 a replacement, and another may follow": {members: three, change: func(v *view.View) {
			replacementOf(v, 1)
			v.ControlPlane.Spec.Remediation.MaxRetry = new(int32(2))
		}},
		"KCP-20 too many replacements": {members: three, reason: never, says: "3 replacements in a row have failed", change: func(v *view.View) {
			replacementOf(v, 2)
			v.ControlPlane.Spec.Remediation.MaxRetry = new(int32(2))
		}},
		"KCP-20 too soon after the last": {members: three, reason: wait, says: "from 2026-01-01T13:00:00Z on", change: func(v *view.View) {
			replacementOf(v, 0)
			v.ControlPlane.Spec.Remediation.RetryPeriodSeconds = new(int32(7200))
		}},
		"KCP-20 it was healthy for long": {members: three, change: func(v *view.View) {
			replacementOf(v, 2)
			v.ControlPlane.Spec.Remediation.MaxRetry, v.ControlPlane.Spec.Remediation.MinHealthyPeriodSeconds = new(int32(2)), new(int32(3600))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := unhealthyView(tc.members...)
			if tc.change != nil {
				tc.change(v)
			}
			d := plan.DecideRemediation(v)
			if tc.reason != "" {
				g.Expect(d.Record).To(BeNil())
				g.Expect(d.Verdicts["cp-0"]).To(And(HaveField("Reason", tc.reason), HaveField("Message", ContainSubstring(tc.says))))
				return
			}
			g.Expect(d.Delete).To(BeNil(), "it is recorded first")
			g.Expect(d.Record).To(HaveField("Machine", "cp-0"), "%v", d.Verdicts)
			v.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = d.Record.String()
			g.Expect(plan.DecideRemediation(v).Delete).To(HaveField("Name", "cp-0"))
		})
	}
}

// TestRemediationChoice: the most broken Machine goes first, and the others wait for it.
func TestRemediationChoice(t *testing.T) {
	g := NewWithT(t)
	v := unhealthyView(dead(0), voter(1), voter(2), voter(3), voter(4))
	markUnhealthy(v, "cp-3")
	g.Expect(plan.DecideRemediation(v).Record).To(HaveField("Machine", "cp-0"), "the first of equals")
	says(clusterv1.MachineNodeReadyCondition, metav1.ConditionTrue)(v.Machines.Owned["cp-0"])
	d := plan.DecideRemediation(v)
	g.Expect(d.Verdicts).To(HaveKeyWithValue("cp-3", HaveField("Reason", controlplanev1.MachineRemediationDeferredReason)),
		"it comes first, and etcd cannot do without its member")
	g.Expect(d.Record).To(HaveField("Machine", "cp-0"))
	v.Machines.Owned["cp-0"].Annotations[clusterv1.RemediateMachineAnnotation] = ""
	d = plan.DecideRemediation(v)
	g.Expect(d.Record).To(HaveField("Machine", "cp-0"), "a user has chosen")
	g.Expect(d.Verdicts).To(HaveKeyWithValue("cp-3", HaveField("Message", "Machine cp-0 is replaced first")))
}

// TestRemediationEnds: the record goes with the replacement, with the recovery of the Machine, and when no Machine is missing.
func TestRemediationEnds(t *testing.T) {
	record := view.Remediation{Machine: "cp-0", Timestamp: metav1.NewTime(noon)}
	inProgress := func(change func(*view.View)) plan.RemediationDecision {
		v := unhealthyView(dead(0), voter(1), voter(2))
		v.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = record.String()
		change(v)
		return plan.DecideRemediation(v)
	}
	g := NewWithT(t)
	g.Expect(inProgress(func(*view.View) {}).Done).To(BeFalse())
	g.Expect(inProgress(func(v *view.View) { v.Machines.Owned["cp-0"].DeletionTimestamp = &metav1.Time{Time: noon} }).Done).To(BeFalse())
	g.Expect(inProgress(func(v *view.View) { delete(v.Machines.Owned, "cp-0") }).Done).To(BeFalse(), "its replacement is missing")
	g.Expect(inProgress(func(v *view.View) {
		v.Machines.Owned["cp-2"].Annotations = map[string]string{controlplanev1.RemediationForAnnotation: record.String()}
	}).Done).To(BeTrue(), "cp-2 is its replacement")
	g.Expect(inProgress(func(v *view.View) {
		delete(v.Machines.Owned, "cp-0")
		v.ControlPlane.Spec.Replicas = new(int32(2))
	}).Done).To(BeTrue(), "no replacement is wanted any more")
	surging := func(outdated string) bool {
		return inProgress(func(v *view.View) {
			delete(v.Machines.Owned, "cp-0")
			v.ControlPlane.Spec.Replicas = new(int32(2))
			rolling(v, 1)
			if outdated != "" {
				outdate(v, outdated)
			}
		}).Done
	}
	g.Expect(surging("cp-1")).To(BeFalse(), "it was the one that comes before an outdated one goes")
	g.Expect(surging("")).To(BeTrue(), "none is outdated any more")
	recovered := inProgress(func(v *view.View) {
		says(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionTrue)(v.Machines.Owned["cp-0"])
	})
	g.Expect(recovered.Done).To(BeTrue(), "it has recovered")
	g.Expect(recovered.Recovered).To(HaveExactElements(HaveField("Name", "cp-0")))
	g.Expect(inProgress(func(v *view.View) { v.Workload.Members = nil })).To(And(HaveField("Done", BeTrue()), HaveField("Delete", BeNil())),
		"etcd does not answer any more: it may be the turn of another")
}

// TestExternalRemediation: Metal3Remediation hands a Machine over by the deprecated condition alone.
func TestExternalRemediation(t *testing.T) {
	g := NewWithT(t)
	v := unhealthyView(dead(0), voter(1), voter(2))
	m := v.Machines.Owned["cp-0"]
	conditions.Delete(m, clusterv1.MachineOwnerRemediatedCondition)
	g.Expect(plan.DecideRemediation(v).Record).To(BeNil(), "Metal3Remediation power-cycles the host first")
	deprecated.MarkFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.WaitingForRemediationV1Beta1Reason,
		clusterv1.ConditionSeverityWarning, "")
	g.Expect(plan.DecideRemediation(v).Record).To(HaveField("Machine", "cp-0"))
}
