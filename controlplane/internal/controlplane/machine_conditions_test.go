// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

func TestMemberCondition(t *testing.T) {
	m := &clusterv1.Machine{}
	m.Status.NodeRef.Name = "cp-1"
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "fd00::5"}}
	for name, tc := range map[string]struct {
		says, node string
		status     metav1.ConditionStatus
		reason     string
	}{
		"all serve": {"3 members are available", "cp-1", metav1.ConditionTrue, controlplanev1.MachineEtcdMemberHealthyReason},
		"another does not": {
			"2 of 3 members are available, cp-10 is unhealthy", "cp-1", metav1.ConditionTrue, controlplanev1.MachineEtcdMemberHealthyReason,
		},
		"it does not": {
			"1 of 3 members are available, cp-0 is unhealthy, cp-1 is unhealthy", "cp-1", metav1.ConditionFalse,
			controlplanev1.MachineEtcdMemberNotHealthyReason,
		},
		"it has never started": {
			"3 of 4 members are available, NAME-PENDING-[fd00::5] has not started", "cp-1", metav1.ConditionFalse,
			controlplanev1.MachineEtcdMemberNotHealthyReason,
		},
		"it is none yet": {
			"3 members are available", "cp-9", metav1.ConditionUnknown, controlplanev1.MachineEtcdMemberInspectionFailedReason,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := &view.View{}
			v.Workload.Etcd = &workload.EtcdReport{
				MembersAvailable: workload.OperatorCondition{Message: tc.says}, Nodes: []workload.EtcdNode{{Name: tc.node}},
			}
			NewWithT(t).Expect(memberCondition(v, m)).To(And(HaveField("Status", tc.status), HaveField("Reason", tc.reason)))
		})
	}
	t.Run("nobody tells", func(t *testing.T) { NewWithT(t).Expect(memberCondition(&view.View{}, m)).To(BeNil()) })
}
