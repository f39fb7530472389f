// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// sickEtcd is what the operator of another cluster says, one of whose members is not healthy. Machines of one name may be in both.
type sickEtcd struct{ workload.Etcd }

func (e sickEtcd) EtcdOperator(ctx context.Context, key client.ObjectKey, s workload.Subscriber) (*workload.EtcdReport, error) {
	report, err := e.Etcd.EtcdOperator(ctx, key, s)
	if report != nil {
		report.MembersAvailable.Message = "2 of 3 members are available, " + report.Nodes[0].Name + " is unhealthy"
	}
	return report, err
}

// TestHealthOfAnotherCluster: an installed cluster's kubeconfig leads to another one. Whether that is well or not, nothing of its health is
// told of this one, whose own nobody knows.
func TestHealthOfAnotherCluster(t *testing.T) {
	for name, lost := range map[string]bool{"as the watched ClusterVersion says": false, "as it says when install objects are lost": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := upgradable(t)
			w.reconcile()
			before, own := w.controlPlane(), w.r.Etcd
			g.Expect(conditions.IsTrue(before, controlplanev1.AvailableCondition)).To(BeTrue())
			g.Expect(before.Status.Etcd.HealthyMembers).To(HaveValue(BeEquivalentTo(3)))
			w.r.Etcd = sickEtcd{own}
			w.api.Health.Reported[workload.OperatorAPIServer] = workload.Operator{Available: workload.OperatorCondition{Status: "False"}}
			if lost {
				w.api.ID = "other"
				w.must(w.client.Delete(t.Context(), w.install()))
			} else {
				w.releases.version.Spec.ClusterID = "other"
			}
			w.reconcile()
			writes := w.countStatusWrites()
			w.reconcile()
			g.Expect(*writes).To(BeZero(), "it is told once")
			cp := w.controlPlane()
			for _, condition := range []string{
				controlplanev1.AvailableCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
			} {
				g.Expect(conditions.Get(cp, condition)).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Message",
					"Cluster other answers, and 3c1d was installed: look at Secret c-kubeconfig")), condition)
			}
			g.Expect(conditions.GetReason(cp, controlplanev1.AvailableCondition)).To(Equal(controlplanev1.OtherClusterReason))
			g.Expect(cp.Status.Etcd).To(Equal(before.Status.Etcd), "as it was")
			for _, m := range w.machines() {
				g.Expect(conditions.IsTrue(&m, controlplanev1.MachineEtcdMemberHealthyCondition)).To(BeTrue(), "as it was")
			}

			w.releases.version.Spec.ClusterID, w.r.Etcd, w.api.ID, w.api.Health.Reported = clusterID, own, clusterID, healthyOperators()
			w.reconcile()
			for _, condition := range []string{
				controlplanev1.AvailableCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
			} {
				g.Expect(conditions.IsTrue(w.controlPlane(), condition)).To(BeTrue(), condition)
			}
		})
	}
}

// unreadVersion is a cluster whose ClusterVersion has not been read yet, or cannot be.
type unreadVersion struct {
	workload.Upgrades

	err error
}

func (u unreadVersion) Version(context.Context, client.ObjectKey, workload.Subscriber) (*workload.ClusterVersion, error) {
	return nil, u.err
}

// TestHealthOfAClusterThatIsNotRecognized: while the ClusterVersion of a cluster is not read, nobody knows whether it is the installed one.
// What its operators say is not told, and what was known of the installed one stands.
func TestHealthOfAClusterThatIsNotRecognized(t *testing.T) {
	for name, unread := range map[string]error{"not read yet": nil, "it cannot be read": errors.New("forbidden")} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := upgradable(t)
			w.now = w.now.Add(time.Hour) // No manager before this one has known more.
			w.api.Last = w.now
			w.reconcile()
			before := w.controlPlane()
			w.r.Etcd, w.r.Upgrades = sickEtcd{w.r.Etcd}, unreadVersion{w.releases, unread}
			w.api.Health.Reported[workload.OperatorAPIServer] = workload.Operator{Available: workload.OperatorCondition{Status: "False"}}
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { *s.Replicas = 5 })
			_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			g.Expect(errors.Is(err, unread)).To(BeTrue(), "it is tried again: %v", err)
			cp := w.controlPlane()
			for _, condition := range []string{
				controlplanev1.AvailableCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
			} {
				g.Expect(conditions.Get(cp, condition)).To(Equal(conditions.Get(before, condition)), condition)
			}
			g.Expect(cp.Status.Etcd).To(Equal(before.Status.Etcd), "as it was")
			for _, m := range w.machines() {
				g.Expect(conditions.IsTrue(&m, controlplanev1.MachineEtcdMemberHealthyCondition)).To(BeTrue(), "as it was")
			}
			g.Expect(w.machines()).To(HaveLen(3))
			g.Expect(w.message(clusterv1.ScalingUpCondition)).To(ContainSubstring("it is not known which cluster answers"))
		})
	}
}

// TestScaleUpWhileAnotherClusterAnswers: etcd of the other cluster is short of a member. No host is added to this one for that.
func TestScaleUpWhileAnotherClusterAnswers(t *testing.T) {
	g := NewWithT(t)
	w := upgradable(t)
	w.releases.version.Spec.ClusterID, w.r.Etcd = "other", sickEtcd{w.r.Etcd}
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { *s.Replicas = 5 })
	w.reconcile()
	g.Expect(w.machines()).To(HaveLen(3))
	g.Expect(w.message(clusterv1.ScalingUpCondition)).To(ContainSubstring("Cluster other answers, and 3c1d was installed"))
}

// TestCredentialWhileAnotherClusterAnswers: the manager is connected to another cluster, such as for the seconds until it connects with a
// corrected kubeconfig, or to one whose ClusterVersion is not read yet. Neither that cluster's ServiceAccount nor its certificates say
// anything about the token of this one.
func TestCredentialWhileAnotherClusterAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		leads  func(*world)
		reason string
	}{
		"as it says": {
			leads:  func(w *world) { w.api.upgrades.Reported.ClusterID = "another" },
			reason: controlplanev1.UpgradeOtherClusterReason,
		},
		"before it says so": {
			leads:  func(w *world) { w.r.Upgrades = unreadVersion{Upgrades: &w.api.upgrades} },
			reason: controlplanev1.NotUpgradingReason,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := tokenWorld(t)
			own := w.authority("own", 100*day)
			w.trusts(own)
			w.passes(2)
			w.recorded()
			published, requested := w.kubeconfig().Data["value"], w.credentials.Requested
			tt.leads(w)
			w.credentials.Account, w.credentials.Bundle = false, w.authority("another", 100*day)
			for range 3 {
				w.after(time.Minute)
			}
			g.Expect(w.reason(controlplanev1.UpgradingCondition)).To(Equal(tt.reason))
			g.Expect(w.credentials.Requested).To(Equal(requested))
			g.Expect(string(w.kubeconfig().Data["value"])).To(Equal(string(published)))
			g.Expect(w.recorded()).NotTo(ContainElement(controlplanev1.EventKubeconfigTokenReplaced))

			w.r.Upgrades, w.api.upgrades.Reported.ClusterID, w.credentials.Bundle = &w.api.upgrades, clusterID, own
			w.after(time.Minute)
			g.Expect(w.credentials.Requested).To(BeNumerically(">", requested), "the account of this cluster is missing")
			w.checkWorks()
		})
	}
}
