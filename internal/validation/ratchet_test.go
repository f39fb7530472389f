// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestRatchet(t *testing.T) {
	taint := func(at int, value string) *field.Error {
		return field.Invalid(field.NewPath("taints").Index(at), value, "is reserved")
	}
	for name, test := range map[string]struct{ before, after, want field.ErrorList }{
		"nothing wrong": {},
		"new":           {after: field.ErrorList{taint(0, "a")}, want: field.ErrorList{taint(0, "a")}},
		"untouched":     {before: field.ErrorList{taint(0, "a")}, after: field.ErrorList{taint(0, "a")}},
		"mended":        {before: field.ErrorList{taint(0, "a")}},
		"another wrong value": {before: field.ErrorList{taint(0, "a")}, after: field.ErrorList{taint(0, "b")},
			want: field.ErrorList{taint(0, "b")}},
		"one of two mended": {before: field.ErrorList{taint(0, "a"), taint(1, "b")}, after: field.ErrorList{taint(0, "b")}},
		"the same once more": {before: field.ErrorList{taint(0, "a")}, after: field.ErrorList{taint(0, "a"), taint(1, "a")},
			want: field.ErrorList{taint(1, "a")}},
		"another field of the same": {before: field.ErrorList{taint(0, "a")},
			after: field.ErrorList{field.Invalid(field.NewPath("x"), "a", "is reserved")},
			want:  field.ErrorList{field.Invalid(field.NewPath("x"), "a", "is reserved")}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(Ratchet(test.before, test.after)).To(Equal(test.want)) })
	}
}
