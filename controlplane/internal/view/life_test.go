// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func TestLifeOf(t *testing.T) {
	install := func(change func(*hiveext.AgentClusterInstall)) func(*view.View) {
		return func(v *view.View) {
			v.Install.ClusterDeployment, v.Install.AgentClusterInstall = &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}
			change(v.Install.AgentClusterInstall)
		}
	}
	state := func(state string) func(*view.View) {
		return install(func(i *hiveext.AgentClusterInstall) {
			i.Status.DebugInfo.State = state
			reason := hiveext.ClusterInstallationInProgressReason
			if state == assisted.ClusterStateInsufficient {
				reason = hiveext.ClusterInstallationNotStartedReason
			}
			i.Status.Conditions = []hivev1.ClusterInstallCondition{
				{Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionFalse, Reason: reason},
			}
		})
	}
	condition := func(conditionType hivev1.ClusterInstallConditionType) func(*view.View) {
		return install(func(i *hiveext.AgentClusterInstall) {
			i.Status.Conditions = []hivev1.ClusterInstallCondition{{Type: conditionType, Status: corev1.ConditionTrue}}
		})
	}
	recorded := func(change func(*view.View)) func(*view.View) {
		return func(v *view.View) {
			change(v)
			v.Record = &view.Installed{Attempt: "1", ClusterID: "id"}
		}
	}
	tests := []struct {
		name   string
		change func(*view.View)
		want   view.Life
	}{
		{"nothing exists", func(*view.View) {}, view.NotStarted},
		{"deleted", func(v *view.View) { v.ControlPlane.DeletionTimestamp = new(metav1.Now()) }, view.Deleting},
		{"held", state(assisted.ClusterStateInsufficient), view.DayOneOpen},
		{"the service has said nothing", install(func(*hiveext.AgentClusterInstall) {}), view.DayOneOpen},
		{"hosts are fixed", install(func(i *hiveext.AgentClusterInstall) {
			i.Annotations = map[string]string{assisted.DayOneAgentsAnnotation: assisted.FormatDayOneAgents([]string{"a"})}
			i.Status.DebugInfo.State = "ready"
		}), view.DayOneClosed},
		{"prepared", state(assisted.ClusterStatePreparing), view.Installing},
		{"hosts are written to", state("installing"), view.Installing},
		{"operators are installed", state(assisted.ClusterStateFinalizing), view.Installing},
		{"failed", condition(hiveext.ClusterFailedCondition), view.Failed},
		{"complete and not recorded", condition(hiveext.ClusterCompletedCondition), view.Completed},
		{"complete and recorded", recorded(condition(hiveext.ClusterCompletedCondition)), view.Running},
		{"recorded, and the service says that it failed", recorded(condition(hiveext.ClusterFailedCondition)), view.Running},
		{"moved here, unknown to the service", recorded(func(*view.View) {}), view.Imported},
		{"moved here, made known", recorded(func(v *view.View) {
			v.Install.ClusterDeployment = &hivev1.ClusterDeployment{}
			v.Install.ClusterDeployment.Spec.Installed, v.Install.ClusterDeployment.Spec.PreserveOnDelete = true, true
		}), view.Imported},
		{"initialized before there were records", func(v *view.View) {
			state("installed")(v)
			v.ControlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
		}, view.Running},
		{"the recorded cluster answers", recorded(func(v *view.View) { v.Workload.ClusterID = "id" }), view.Imported},
		{"another cluster answers", recorded(func(v *view.View) { v.Workload.ClusterID = "other" }), view.Mismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			v := &view.View{ControlPlane: controlPlane()}
			tt.change(v)
			life := view.LifeOf(v)
			g.Expect(life).To(Equal(tt.want))
			g.Expect(life.Installed()).To(Equal(v.Record != nil || v.Initialized()))
		})
	}
}
