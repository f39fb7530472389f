// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestOnlyConflicts(t *testing.T) {
	conflict := fmt.Errorf("bind Agent a: %w", apierrors.NewConflict(schema.GroupResource{Resource: "agents"}, "a", errors.New("modified")))
	other := apierrors.NewBadRequest("refused")
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                       {nil, false},
		"a conflict":                     {conflict, true},
		"another error":                  {other, false},
		"conflicts, joined":              {errors.Join(conflict, conflict), true},
		"a conflict and another, joined": {fmt.Errorf("apply: %w", errors.Join(conflict, other)), false},
		"an aggregate of conflicts":      {kerrors.NewAggregate([]error{conflict}), true},
		"an aggregate with another":      {fmt.Errorf("apply: %w", kerrors.NewAggregate([]error{conflict, other})), false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(OnlyConflicts(tt.err)).To(Equal(tt.want)) })
	}
}
