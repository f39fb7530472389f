// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// step is by how much what belongs to a key stands to its right.
const step = 2

// printer writes trees as a template of Helm.
type printer struct{ out bytes.Buffer }

// linef writes one line of the manifest.
func (p *printer) linef(indent int, format string, args ...any) {
	fmt.Fprintf(&p.out, "%*s%s\n", indent, "", fmt.Sprintf(format, args...))
}

// begin and end write lines of the template that leave no line in the manifest.
func (p *printer) begin(condition string) { fmt.Fprintf(&p.out, "{{- if %s }}\n", condition) }

func (p *printer) end() { p.out.WriteString("{{- end }}\n") }

// document writes one object; an empty condition is always true.
func (p *printer) document(object any, conditions []string) error {
	for _, condition := range conditions {
		p.begin(condition)
	}
	p.linef(0, "---")
	if err := p.value(object, 0); err != nil {
		return err
	}
	for range conditions {
		p.end()
	}
	return nil
}

// value writes a value on lines of its own.
func (p *printer) value(value any, indent int) error {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := p.entry(key, value[key], indent); err != nil {
				return err
			}
		}
		return nil
	case []any:
		if len(value) == 0 {
			break
		}
		for _, item := range value {
			if err := p.item(item, indent); err != nil {
				return err
			}
		}
		return nil
	case text:
		p.linef(indent, "%s", value)
		return nil
	case block:
		p.linef(0, "{{ toYaml %s | indent %d }}", value, indent)
		return nil
	case choice:
		p.begin(value.condition)
		if err := p.value(value.yes, indent); err != nil {
			return err
		}
		p.out.WriteString("{{- else }}\n")
		if err := p.value(value.otherwise, indent); err != nil {
			return err
		}
		p.end()
		return nil
	case guarded, optional, further:
		return fmt.Errorf("%T %v is not in a map or a list", value, value)
	}
	return p.plain(value, indent)
}

// plain writes a value that YAML knows.
func (p *printer) plain(value any, indent int) error {
	data, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %v: %w", value, err)
	}
	for line := range strings.Lines(string(data)) {
		// What looks like a template in a description is none.
		p.linef(indent, "%s", strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "{{", `{{ "{{" }}`))
	}
	return nil
}

func (p *printer) entry(key string, value any, indent int) error {
	switch value := value.(type) {
	case guarded:
		p.begin(value.condition)
		if err := p.entry(key, value.value, indent); err != nil {
			return err
		}
		p.end()
		return nil
	case optional:
		p.linef(0, "{{- with %s }}", value)
		p.linef(indent, "%s:", key)
		p.linef(0, "{{ toYaml . | indent %d }}", indent+step)
		p.end()
		return nil
	case text:
		p.linef(indent, "%s: %s", key, value)
		return nil
	}
	if !isPlain(value) {
		p.linef(indent, "%s:", key)
		return p.value(value, indent+step)
	}
	return p.plain(map[string]any{key: value}, indent)
}

func (p *printer) item(item any, indent int) error {
	switch item := item.(type) {
	case guarded:
		p.begin(item.condition)
		if err := p.item(item.value, indent); err != nil {
			return err
		}
		p.end()
		return nil
	case further:
		p.linef(0, "{{- with %s }}", item)
		p.linef(0, "{{ toYaml . | indent %d }}", indent)
		p.end()
		return nil
	}
	if !isPlain(item) {
		p.linef(indent, "-")
		return p.value(item, indent+step)
	}
	return p.plain([]any{item}, indent)
}

// isPlain reports whether a tree has nothing of the template in it.
func isPlain(value any) bool {
	switch value := value.(type) {
	case text, block, optional, further, guarded, choice:
		return false
	case map[string]any:
		for _, child := range value {
			if !isPlain(child) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(value, func(child any) bool { return !isPlain(child) })
	}
	return true
}
