// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestPoolUpdating: a host that is cordoned or dead is not one that gets another configuration, whatever the condition Updating says.
func TestPoolUpdating(t *testing.T) {
	for name, tc := range map[string]struct {
		updating       corev1.ConditionStatus
		hosts, updated int32
		wanted, has    string
		want           configv1.ConditionStatus
	}{
		"all is well":                    {corev1.ConditionFalse, 3, 3, "a", "a", configv1.ConditionFalse},
		"a host is not ready":            {corev1.ConditionTrue, 3, 3, "a", "a", configv1.ConditionFalse},
		"a host has an older one":        {corev1.ConditionTrue, 3, 2, "a", "a", configv1.ConditionTrue},
		"another is wanted":              {corev1.ConditionTrue, 3, 3, "b", "a", configv1.ConditionTrue},
		"no host is counted yet":         {corev1.ConditionTrue, 0, 0, "a", "a", configv1.ConditionTrue},
		"the operator has said nothing":  {"", 0, 0, "", "", configv1.ConditionUnknown},
		"the operator does not know yet": {corev1.ConditionUnknown, 3, 3, "a", "a", configv1.ConditionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &machineconfigv1.MachineConfigPool{}
			pool.Spec.Configuration.Name, pool.Status.Configuration.Name = tc.wanted, tc.has
			pool.Status.MachineCount, pool.Status.UpdatedMachineCount = tc.hosts, tc.updated
			if tc.updating != "" {
				pool.Status.Conditions = []machineconfigv1.MachineConfigPoolCondition{
					{Type: machineconfigv1.MachineConfigPoolUpdating, Status: tc.updating},
				}
			}
			NewWithT(t).Expect(poolUpdating(pool).Status).To(Equal(tc.want))
		})
	}
}
