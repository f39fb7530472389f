// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDocument(t *testing.T) {
	for name, tt := range map[string]struct {
		tree       any
		conditions []string
		want       string
	}{
		"plain":        {tree: object{"a": "1", "b": list{int64(1), true}}, want: "---\na: \"1\"\nb:\n- 1\n- true\n"},
		"empty values": {tree: object{"a": object{}, "b": list{}}, want: "---\na: {}\nb: []\n"},
		"conditions": {
			tree: object{"a": "b"}, conditions: []string{"x", "y"}, want: "{{- if x }}\n{{- if y }}\n---\na: b\n{{- end }}\n{{- end }}\n",
		},
		"an expression":     {tree: object{"a": text("{{ .x }}")}, want: "---\na: {{ .x }}\n"},
		"one in a list":     {tree: object{"a": list{text("{{ .x }}")}}, want: "---\na:\n  -\n    {{ .x }}\n"},
		"a block":           {tree: object{"a": block(".x")}, want: "---\na:\n{{ toYaml .x | indent 2 }}\n"},
		"an optional value": {tree: object{"a": optional(".x")}, want: "---\n{{- with .x }}\na:\n{{ toYaml . | indent 2 }}\n{{- end }}\n"},
		"further items": {
			tree: object{"a": list{"b", further(".x")}}, want: "---\na:\n  - b\n{{- with .x }}\n{{ toYaml . | indent 2 }}\n{{- end }}\n",
		},
		"a guarded value":    {tree: object{"a": guarded{"x", "1"}, "b": "2"}, want: "---\n{{- if x }}\na: \"1\"\n{{- end }}\nb: \"2\"\n"},
		"a guarded item":     {tree: object{"a": list{guarded{"x", "b"}}}, want: "---\na:\n{{- if x }}\n  - b\n{{- end }}\n"},
		"a choice":           {tree: object{"a": choice{"x", "b", "c"}}, want: "---\na:\n{{- if x }}\n  b\n{{- else }}\n  c\n{{- end }}\n"},
		"no template in it":  {tree: object{"a": "use {{ .x }}"}, want: "---\na: use {{ \"{{\" }} .x }}\n"},
		"a map in a list":    {tree: object{"a": list{object{"b": text("{{ .x }}")}}}, want: "---\na:\n  -\n    b: {{ .x }}\n"},
		"a string like true": {tree: object{"a": "true"}, want: "---\na: \"true\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &printer{}
			g.Expect(p.document(tt.tree, tt.conditions)).To(Succeed())
			g.Expect(p.out.String()).To(Equal(tt.want))
		})
	}
	t.Run("a guarded value that is no value of a map", func(t *testing.T) {
		NewWithT(t).Expect((&printer{}).document(object{"a": choice{"x", guarded{"y", "b"}, "c"}}, nil)).
			To(MatchError(ContainSubstring("is not in a map or a list")))
	})
}
