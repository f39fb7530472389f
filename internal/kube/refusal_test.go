// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestInOwnWords: nothing that the API server or a webhook quotes of an object is in the error, and a webhook's words only where they may
// be.
func TestInOwnWords(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	const password = "hunter2"
	webhook := apierrors.NewForbidden(secrets, "s", nil)
	webhook.ErrStatus.Message = `admission webhook "x.example.com" denied the request: ` + password
	policy := apierrors.NewForbidden(secrets, "s", nil)
	policy.ErrStatus.Message = `secrets "s" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ` + password
	quota := apierrors.NewForbidden(secrets, "s", errors.New("exceeded quota: q"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", field.ErrorList{
		field.Invalid(field.NewPath("spec", "b"), password+`": "`, "must be short"), field.Duplicate(field.NewPath("spec", "a"), password),
		field.Invalid(field.NewPath("spec", "c"), []string{password}, "must be short"),
		field.Required(field.NewPath("spec", "d"), "it is needed"),
		field.NotSupported(field.NewPath("spec", "e"), password, []string{"x", "y"}),
	})
	silence := apierrors.NewInternalError(errors.New(`failed calling webhook "x.example.com": Post "https://` + password + `": refused`))
	const problems = `spec.a: Duplicate value; spec.b: must be short; spec.c: Invalid value; spec.d: Required value: it is needed; ` +
		`spec.e: supported values: "x", "y"`
	for name, test := range map[string]struct {
		err       error
		want      string
		explained string
	}{
		"a webhook": {
			err: webhook, want: "admission webhook x.example.com refused Secret s: whoever runs it can tell why",
			explained: `Secret s is refused: admission webhook "x.example.com" denied the request: ` + password,
		},
		"a policy": {
			err: policy, want: "an admission policy refused Secret s: whoever runs it can tell why",
			explained: "Secret s is refused: " + policy.ErrStatus.Message,
		},
		"a webhook that does not answer": {
			err: silence, want: "the API server cannot take Secret s now: admission webhook x.example.com does not answer",
		},
		"a quota":      {err: quota, want: `Secret s: secrets "s" is forbidden: exceeded quota: q`},
		"wrong values": {err: invalid, want: "the API server refused Secret s: " + problems},
		"wrong values, unnamed": {
			err: apierrors.NewInvalid(schema.GroupKind{}, "s", nil), want: "the API server refused Secret s: it does not say for which field",
		},
		"what cannot be decoded": {err: apierrors.NewBadRequest(password), want: "the API server cannot read Secret s"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var refusal Refusal
			g.Expect(errors.As(InOwnWords(test.err, "Secret s"), &refusal)).To(BeTrue())
			g.Expect(string(refusal)).To(Equal(test.want))
			if test.explained == "" {
				test.explained = test.want
			}
			g.Expect(Explained(test.err, "Secret s")).To(MatchError(test.explained))
		})
	}
	t.Run("only the values are left out", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(WithoutValues(fmt.Errorf("create Secret s: %w", invalid))).
			To(MatchError("create Secret s: the API server refused it: " + problems))
		g.Expect(WithoutValues(fmt.Errorf("create Secret s: %w", silence))).
			To(MatchError("create Secret s: admission webhook x.example.com does not answer"))
		for _, err := range []error{webhook, quota, errDown, nil} {
			if err == nil {
				g.Expect(WithoutValues(err)).To(Succeed())
			} else {
				g.Expect(WithoutValues(err)).To(BeIdenticalTo(err))
			}
		}
	})
	t.Run("what is not about the object", func(t *testing.T) {
		g := NewWithT(t)
		changed := apierrors.NewConflict(secrets, "s", errors.New("it changed"))
		g.Expect(IsConflict(InOwnWords(changed, "Secret s"))).To(BeTrue())
		g.Expect(InOwnWords(errDown, "Secret s")).To(MatchError(errDown))
		var refusal Refusal
		g.Expect(errors.As(InOwnWords(apierrors.NewInternalError(errDown), "Secret s"), &refusal)).To(BeFalse())
		g.Expect(InOwnWords(nil, "Secret s")).To(Succeed())
		g.Expect(Explained(nil, "Secret s")).To(Succeed())
	})
}
