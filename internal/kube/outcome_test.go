// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestOutcomeOf(t *testing.T) {
	agents := schema.GroupResource{Resource: "agents"}
	changed := apierrors.NewConflict(agents, "a", errors.New("it changed"))
	denied := apierrors.NewForbidden(agents, "a", errors.New("admission webhook denied the request"))
	platform := apierrors.NewConflict(agents, "a", nil)
	platform.ErrStatus.Message = `admission webhook "agentclusterinstallvalidators" denied the request: Can't set platform`
	quota := apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("it changed"))
	for name, test := range map[string]struct {
		err                   error
		done, refused, silent bool
	}{
		"written":                          {done: true, silent: true},
		"changed meanwhile":                {err: changed, silent: true},
		"changed meanwhile, in words":      {err: fmt.Errorf("bind Agent a: %w", changed), silent: true},
		"all changed meanwhile":            {err: kerrors.NewAggregate([]error{changed, fmt.Errorf("b: %w", changed)}), silent: true},
		"all changed meanwhile, in words":  {err: fmt.Errorf("c: %w", kerrors.NewAggregate([]error{changed})), silent: true},
		"all changed meanwhile, joined":    {err: errors.Join(changed, changed), silent: true},
		"one changed, the other failed":    {err: kerrors.NewAggregate([]error{changed, errDown})},
		"one changed, the other is denied": {err: errors.Join(denied, changed), refused: true},
		"a quota changed meanwhile":        {err: fmt.Errorf("create: %w", quota)},
		"changed and failed, joined twice": {err: errors.Join(errDown, kerrors.NewAggregate([]error{changed}))},
		"denied with code 409":             {err: fmt.Errorf("create: %w", platform), refused: true},
		"denied":                           {err: fmt.Errorf("bind Agent a: %w", denied), refused: true},
		"invalid":                          {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Agent"}, "a", nil), refused: true},
		"bad request":                      {err: apierrors.NewBadRequest("unknown field"), refused: true},
		"refused, in other words":          {err: fmt.Errorf("Agent a: %w", Refusal("correct it")), refused: true},
		"no answer":                        {err: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			outcome := OutcomeOf(test.err)
			g.Expect(outcome.Done()).To(Equal(test.done))
			g.Expect(outcome.Stops()).To(Equal(!test.done))
			g.Expect(outcome.Refusal() != nil).To(Equal(test.refused))
			g.Expect(outcome.Err() == nil).To(Equal(test.silent))
		})
	}
	g := NewWithT(t)
	g.Expect(Outcome{}.Done() || Outcome{}.Stops()).To(BeFalse(), "nothing was tried")
	g.Expect(Outcome{}.Err()).NotTo(HaveOccurred())
}
