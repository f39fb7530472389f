// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func TestEtcdMembers(t *testing.T) {
	for message, want := range map[string][2]int{
		"StaticPodsAvailable: 3 nodes are active; 1 node is at revision 8 EtcdMembersAvailable: 3 members are available": {3, 3},
		"EtcdMembersAvailable: 2 of 3 members are available, cp-1 is unhealthy":                                          {3, 2},
		"StaticPodsAvailable: 3 nodes are active":                                                                        {},
		"99999999999999999999 members are available":                                                                     {},
		"99999999999999999999 of 3 members are available":                                                                {},
	} {
		if members, healthy := plan.EtcdMembers(message); [2]int{members, healthy} != want {
			t.Errorf("%q tells %v, got %d members and %d that serve", message, want, members, healthy)
		}
	}
}

func TestNextMachine(t *testing.T) {
	if got := plan.NextMachine("cp", []string{"cp-0", "cp-4", "cp-2", "cp-old", "other-7"}); got != 5 {
		t.Errorf("got %d", got)
	}
	if got := plan.NextMachine("cp", nil); got != 0 {
		t.Errorf("got %d", got)
	}
}
