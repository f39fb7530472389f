// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func testFreeMachineNames(t *testing.T) {
	tests := []struct {
		name  string
		n     int
		taken []string
		want  []string
	}{
		{name: "from zero", n: 3, want: []string{"cp-0", "cp-1", "cp-2"}},
		{
			name: "gaps are filled, also around Machines that are being deleted", n: 2, taken: []string{"cp-0", "cp-2", "other"},
			want: []string{"cp-1", "cp-3"},
		},
		{name: "none", n: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, plan.FreeMachineNames("cp", tt.n, sets.New(tt.taken...))); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}
