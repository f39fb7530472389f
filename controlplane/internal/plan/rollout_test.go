// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// rolling makes a control plane replace outdated Machines by itself.
func rolling(v *view.View, maxSurge int32) {
	v.ControlPlane.Spec.Rollout.Strategy.Type = controlplanev1.RollingUpdateRollout
	v.ControlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = &maxSurge
}

// outdate makes the infrastructure machines of Machines those of another template than is asked for.
func outdate(v *view.View, names ...string) {
	for _, name := range names {
		if v.Machines.Infra == nil {
			v.Machines.Infra = map[string]*unstructured.Unstructured{}
		}
		v.Machines.Infra[name] = madeFrom("old")
	}
}

func TestContractRollout(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas int
		change   func(*view.View)
		// due and waiting are the Machines that are replaced, and those that stay; goes is the one that is deleted, and blocked part of the
		// first thing that stands in the way.
		due, waiting, fixed []string
		goes, blocked       string
		surge               bool
	}{
		"all are up to date": {replicas: 3, change: func(v *view.View) { rolling(v, 0) }},
		"KCP-9 OnDelete": {replicas: 3, waiting: []string{"cp-0", "cp-1"}, change: func(v *view.View) {
			outdate(v, "cp-0", "cp-1")
		}},
		"KCP-9 OnDelete, and a user marks one": {replicas: 3, waiting: []string{"cp-0"}, due: []string{"cp-1"}, goes: "cp-1",
			change: func(v *view.View) {
				outdate(v, "cp-0", "cp-1")
				v.Machines.Owned["cp-1"].Annotations[clusterv1.DeleteMachineAnnotation] = ""
			}},
		"a user marks one that is up to date": {replicas: 3, change: func(v *view.View) {
			v.Machines.Owned["cp-1"].Annotations[clusterv1.DeleteMachineAnnotation] = ""
		}},
		"CP-15 CP-61 OnDelete, and the time of the rollout has come": {replicas: 3, due: []string{"cp-0", "cp-1", "cp-2"}, goes: "cp-0",
			change: func(v *view.View) { v.ControlPlane.Spec.Rollout.After = metav1.NewTime(noon) }},
		"KCP-9 without a spare host": {replicas: 3, due: []string{"cp-1", "cp-2"}, goes: "cp-1", change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1", "cp-2")
		}},
		"KCP-9 with a spare host": {replicas: 3, due: []string{"cp-1", "cp-2"}, surge: true, change: func(v *view.View) {
			rolling(v, 1)
			outdate(v, "cp-1", "cp-2")
		}},
		"the one that a user marks goes first": {replicas: 3, due: []string{"cp-0", "cp-2"}, goes: "cp-2", change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-0", "cp-2")
			v.Machines.Owned["cp-2"].Annotations[clusterv1.DeleteMachineAnnotation] = ""
		}},
		"one more has come, which goes as the surplus": {replicas: 4, due: []string{"cp-1"}, change: func(v *view.View) {
			rolling(v, 1)
			outdate(v, "cp-1")
			v.ControlPlane.Spec.Replicas = new(int32(3))
		}},
		"one is missing, which comes first": {replicas: 3, due: []string{"cp-1"}, change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			delete(v.Machines.Owned, "cp-0")
		}},
		"with a spare host, the one before still leaves": {replicas: 4, due: []string{"cp-1"}, blocked: "Machine cp-0 is being deleted",
			change: func(v *view.View) {
				rolling(v, 1)
				outdate(v, "cp-0", "cp-1")
				v.Machines.Owned["cp-0"].DeletionTimestamp = &metav1.Time{Time: noon}
				v.ControlPlane.Spec.Replicas = new(int32(3))
			}},
		"the one before has no Node yet": {replicas: 3, due: []string{"cp-1"}, blocked: "Machine cp-0 has no Node yet",
			change: func(v *view.View) {
				rolling(v, 0)
				outdate(v, "cp-1")
				v.Machines.Owned["cp-0"].Status.NodeRef.Name = ""
				v.Workload.Etcd.MembersAvailable.Message = "2 members are available"
			}},
		"the one before has not joined etcd": {replicas: 3, due: []string{"cp-1"}, blocked: "the newest has to join it first",
			change: func(v *view.View) {
				rolling(v, 0)
				outdate(v, "cp-1")
				v.Workload.Etcd.MembersAvailable.Message = "2 members are available"
			}},
		"the one before has not started": {replicas: 3, due: []string{"cp-1"}, blocked: "etcd has not started yet", change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			v.Workload.Etcd.MembersProgressing = yes
		}},
		"a member is not healthy": {replicas: 3, due: []string{"cp-1"}, blocked: "Members of etcd are not healthy", change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			v.Workload.Etcd.MembersDegraded = yes
		}},
		"an operator is degraded": {replicas: 3, due: []string{"cp-1"}, blocked: "kube-apiserver is degraded", change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			degrade(v, workload.OperatorAPIServer, "slow")
		}},
		"an unhealthy Machine is replaced first": {replicas: 3, due: []string{"cp-1"}, blocked: "Machine cp-2 is not healthy",
			change: func(v *view.View) {
				rolling(v, 1)
				outdate(v, "cp-1")
				markUnhealthy(v, "cp-2")
			}},
		"an unhealthy Machine is being replaced": {replicas: 3, due: []string{"cp-1"}, blocked: "Machine cp-2, which is not healthy, is being",
			change: func(v *view.View) {
				rolling(v, 1)
				outdate(v, "cp-1")
				v.ControlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation] = view.Remediation{Machine: "cp-2"}.String()
				markUnhealthy(v, "cp-2")
			}},
		"a single-node cluster": {replicas: 1, fixed: []string{"cp-0"}, change: func(v *view.View) { outdate(v, "cp-0") }},
		"CP-61 a single-node cluster that is old": {replicas: 1, fixed: []string{"cp-0"}, change: func(v *view.View) {
			v.ControlPlane.Spec.Rollout.After = metav1.NewTime(noon)
		}},
		"another cluster answers": {replicas: 3, fixed: []string{"cp-1"}, change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			v.Life = view.Mismatch
		}},
		"the host restarts in an upgrade": {replicas: 3, due: []string{"cp-1"}, blocked: "ClusterVersion version is progressing",
			change: func(v *view.View) {
				rolling(v, 0)
				outdate(v, "cp-1")
				answering(v)
				says(clusterv1.MachineNodeReadyCondition, metav1.ConditionFalse)(v.Machines.Owned["cp-1"])
				v.Workload.Version.Progressing = because(yes, "Working towards 4.21.3")
			}},
		"the host is dead": {replicas: 3, due: []string{"cp-1"}, goes: "cp-1", change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			answering(v)
			notReady(v, "cp-1", 30*time.Minute)
			v.Workload.Etcd.MembersDegraded = because(yes, "cp-1 is unhealthy")
		}},
		"the host is dead, and an upgrade waits for it": {replicas: 3, due: []string{"cp-1"}, goes: "cp-1", change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			answering(v)
			notReady(v, "cp-1", 30*time.Minute)
			v.Workload.Version.Progressing = because(yes, "Working towards 4.21.3")
		}},
		"the host is dead, and nobody says what restarts the others": {replicas: 3, due: []string{"cp-1"}, blocked: "has not said whether",
			change: func(v *view.View) {
				rolling(v, 0)
				outdate(v, "cp-1")
				answering(v)
				notReady(v, "cp-1", 30*time.Minute)
				v.Workload.Updates = nil
			}},
		"the host restarts for a reason of its own": {replicas: 3, due: []string{"cp-1"}, blocked: "is waited for until 2026-01-01T12:01:00Z",
			change: func(v *view.View) {
				rolling(v, 0)
				outdate(v, "cp-1")
				answering(v)
				notReady(v, "cp-1", 29*time.Minute)
			}},
		"nobody has seen the host since the network was cut": {replicas: 3, due: []string{"cp-1"}, blocked: "does not answer Cluster API",
			change: func(v *view.View) {
				rolling(v, 0)
				outdate(v, "cp-1")
				says(clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown)(v.Machines.Owned["cp-1"])
			}},
		"the Machine has no hook yet": {replicas: 3, due: []string{"cp-1"}, blocked: "Machine cp-1 has not got the annotation",
			change: func(v *view.View) {
				rolling(v, 0)
				outdate(v, "cp-1")
				v.Machines.Owned["cp-1"].Annotations = nil
			}},
		"defaults that are written down replace no host": {replicas: 3, change: func(v *view.View) {
			rolling(v, 0)
			writeDefaults(&v.ControlPlane.Spec.OpenshiftAssistedConfigSpec)
		}},
		"a cluster that is not installed": {replicas: 3, change: func(v *view.View) {
			rolling(v, 0)
			outdate(v, "cp-1")
			v.Life = view.Installing
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := currentView(tc.replicas)
			tc.change(v)
			d := plan.DecideRollout(v)
			g.Expect(d.Due).To(HaveExactElements(tc.due), "due")
			g.Expect(d.Waiting).To(HaveExactElements(tc.waiting), "waiting")
			g.Expect(d.Fixed).To(HaveExactElements(tc.fixed), "fixed")
			unfit := d.Unfit != ""
			g.Expect(unfit).To(Equal(len(tc.fixed) > 0), d.Unfit)
			g.Expect(d.Surge).To(Equal(tc.surge), "surge")
			if tc.goes == "" {
				g.Expect(d.Delete).To(BeNil())
			} else {
				g.Expect(d.Delete).To(HaveField("Name", tc.goes))
			}
			if tc.blocked == "" {
				g.Expect(d.Blockers).To(BeEmpty())
			} else {
				g.Expect(d.Blockers).To(ContainElement(ContainSubstring(tc.blocked)))
			}
		})
	}
}

func TestRolloutWaitsForItsTime(t *testing.T) {
	g := NewWithT(t)
	v := currentView(3)
	v.ControlPlane.Spec.Rollout.After = metav1.NewTime(noon.Add(time.Hour))
	g.Expect(plan.DecideRollout(v).AfterAt).To(BeTemporally("==", noon.Add(time.Hour)))
	v.Now = noon.Add(time.Hour)
	g.Expect(plan.DecideRollout(v).AfterAt).To(BeZero())
}

// TestRolloutCreatesOneMore follows one replacement with a spare host, from the Machine that comes to the one that goes.
func TestRolloutCreatesOneMore(t *testing.T) {
	g := NewWithT(t)
	v := currentView(3)
	rolling(v, 1)
	outdate(v, "cp-0")
	v.ControlPlane.Annotations[controlplanev1.NextMachineAnnotation] = "3"
	g.Expect(plan.DecideMachines(v, nil, true).Create).To(Equal([]string{"cp-3"}))
	g.Expect(plan.DecideMachines(v, nil, false).Create).To(BeEmpty())

	v = currentView(4)
	rolling(v, 1)
	outdate(v, "cp-0")
	v.ControlPlane.Spec.Replicas = new(int32(3))
	v.ControlPlane.Annotations[controlplanev1.NextMachineAnnotation] = "4"
	d := plan.DecideMachines(v, nil, plan.DecideRollout(v).Surge)
	g.Expect(d.Create).To(BeEmpty())
	g.Expect(d.Surplus).To(HaveExactElements(HaveField("Name", "cp-0")))
}
