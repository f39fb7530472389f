// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// unrecordedView is a control plane without a record, whose Machines cp-0 and cp-1 have Nodes.
func unrecordedView() *view.View {
	v := installedView(3)
	v.Life = view.NotStarted
	return v
}

func TestUnrecorded(t *testing.T) {
	attempt := func(v *view.View, wanted, of string) {
		v.ControlPlane.Annotations[controlplanev1.InstallAttemptAnnotation] = wanted
		for _, m := range v.Machines.Owned {
			m.Annotations[controlplanev1.InstallAttemptAnnotation] = of
		}
	}
	both := []string{"cp-0", "cp-1"}
	for name, tt := range map[string]struct {
		change func(*view.View)
		want   []string
	}{
		"its Machines have Nodes": {func(*view.View) {}, both},
		"Machines that it could adopt have Nodes": {func(v *view.View) {
			v.Machines.Orphans, v.Machines.Owned = v.Machines.Owned.SortedByCreationTimestamp(), collections.New()
		}, both},
		"its Machines have no Nodes": {func(v *view.View) {
			for _, m := range v.Machines.Owned {
				m.Status.NodeRef = clusterv1.MachineNodeReference{}
			}
		}, nil},
		"a cluster was installed":            {func(v *view.View) { v.Life = view.Running }, nil},
		"it is being deleted":                {func(v *view.View) { v.Life = view.Deleting }, nil},
		"an installation is there":           {func(v *view.View) { v.Install.AgentClusterInstall = &hiveext.AgentClusterInstall{} }, nil},
		"an installation is gone":            {func(v *view.View) { v.Started = view.Started{Attempt: view.Attempt(v.ControlPlane)} }, nil},
		"Machines are of a failed attempt":   {func(v *view.View) { attempt(v, "2", "1") }, nil},
		"Machines are of a later attempt":    {func(v *view.View) { attempt(v, "1", "2") }, both},
		"Machines are of the wanted attempt": {func(v *view.View) { attempt(v, "2", "2") }, both},
		"Machines are of no attempt":         {func(v *view.View) { attempt(v, "2", "") }, both},
	} {
		t.Run(name, func(t *testing.T) {
			v := unrecordedView()
			tt.change(v)
			NewWithT(t).Expect(plan.Unrecorded(v)).To(Equal(tt.want))
		})
	}
}

// TestUnrecordedHostsStay: nobody knows which cluster the host of a Machine is a member of, so it stays.
func TestUnrecordedHostsStay(t *testing.T) {
	g := NewWithT(t)
	v := unrecordedView()
	m := v.Machines.Owned["cp-0"]
	m.DeletionTimestamp = &metav1.Time{Time: noon}
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
	d := plan.LeavingOf(v)
	g.Expect(d.Release).To(BeEmpty())
	g.Expect(d.Waiting).To(HaveKeyWithValue("cp-0", ContainSubstring("of which cluster")))
	v.Life = view.Deleting
	g.Expect(plan.LeavingOf(v).Waiting).To(BeEmpty())
}
