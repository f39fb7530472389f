// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func TestImageSetName(t *testing.T) {
	long := strings.Repeat("n", 63)
	tests := map[string]types.NamespacedName{
		"a-b.c":           {Namespace: "a-b", Name: "c"},
		"a.b-c":           {Namespace: "a", Name: "b-c"},
		long + "." + long: {Namespace: long, Name: long},
	}
	for want, key := range tests {
		if got := plan.ImageSetName(key); got != want {
			t.Errorf("ImageSetName(%s) = %q, want %q", key, got, want)
		}
	}
}

func TestImageSetNameShortened(t *testing.T) {
	base := strings.Repeat("x", 172) + "." + strings.Repeat("y", 79)
	first := plan.ImageSetName(types.NamespacedName{Namespace: "ns", Name: base + "1"})
	second := plan.ImageSetName(types.NamespacedName{Namespace: "ns", Name: base + "2"})
	if first == second {
		t.Errorf("two names were shortened to the same %q", first)
	}
	for _, name := range []string{first, second} {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%q is no name of an object: %v", name, problems)
		}
	}
}

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
