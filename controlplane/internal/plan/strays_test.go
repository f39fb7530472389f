// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// TestStraysFrom: members that no Machine accounts for are looked for when the operator of etcd names one, however many Machines there are.
func TestStraysFrom(t *testing.T) {
	since := noon.Add(-time.Hour)
	due := since.Add(10 * time.Minute)
	for name, tc := range map[string]struct {
		message string
		change  func(*view.View)
		want    time.Time
	}{
		"all serve":                           {message: "3 members are available"},
		"that of a Machine does not":          {message: "2 of 3 members are available, n0 is unhealthy"},
		"that of a Machine has not started":   {message: "2 of 3 members are available, NAME-PENDING-10.0.0.1 has not started"},
		"one of nobody, and as many Machines": {message: "2 of 3 members are available, gone is unhealthy", want: due},
		"nobody's beside that of a Machine":   {message: "2 of 4 members are available, n0 is unhealthy, gone is unhealthy", want: due},
		"somebody else's Machines may account for it": {
			message: "2 of 3 members are available, gone is unhealthy", change: func(v *view.View) { v.Machines.Foreign = []string{"gone"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := unhealthyView(voter(0), voter(1), voter(2))
			v.Workload.Etcd.MembersAvailable.Message = tc.message
			v.Workload.Etcd.MembersDegraded = yes
			v.Workload.Etcd.MembersDegraded.Since = since
			if tc.change != nil {
				tc.change(v)
			}
			g := NewWithT(t)
			g.Expect(plan.StraysFrom(v)).To(Equal(tc.want))
			says(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionTrue)(v.Machines.Owned["cp-0"])
			g.Expect(plan.AsksUpdates(v)).To(Equal(!tc.want.IsZero()), "nothing but the stray member asks whether hosts are restarted")
		})
	}
}
