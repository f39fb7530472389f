// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capi-openshift/agent-providers/test/windows"
)

// child is a field of an object.
type child struct {
	name, path string
	required   bool
	schema     apiextensionsv1.JSONSchemaProps
}

// children are the fields of an object, sorted.
func children(path string, schema *apiextensionsv1.JSONSchemaProps) []child {
	found := make([]child, 0, len(schema.Properties))
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		c := child{name: name, path: path + "." + name, required: slices.Contains(schema.Required, name), schema: schema.Properties[name]}
		if c.element() != nil {
			c.path += "[]"
		}
		found = append(found, c)
	}
	return found
}

// element is the schema of a list's items or a map's values; nil for all else.
func (c child) element() *apiextensionsv1.JSONSchemaProps {
	switch {
	case c.schema.Items != nil:
		return c.schema.Items.Schema
	case c.schema.AdditionalProperties != nil:
		return c.schema.AdditionalProperties.Schema
	default:
		return nil
	}
}

// object is the object that gets a section of its own; nil when there is none.
func (c child) object() *apiextensionsv1.JSONSchemaProps {
	for _, schema := range []*apiextensionsv1.JSONSchemaProps{&c.schema, c.element()} {
		if schema != nil && len(schema.Properties) > 0 {
			return schema
		}
	}
	return nil
}

func (c child) nameText() string {
	if c.required {
		return "`" + c.name + "` *"
	}
	return "`" + c.name + "`"
}

// prefix says what stands around an element.
func (c child) prefix() string {
	switch {
	case c.schema.Items != nil:
		return "list of "
	case c.schema.AdditionalProperties != nil:
		return "map of "
	default:
		return ""
	}
}

func (c child) typeText() string {
	schema := &c.schema
	if element := c.element(); element != nil {
		schema = element
	}
	if schema.XIntOrString {
		return c.prefix() + "integer or string"
	}
	return c.prefix() + schema.Type
}

// allowed lists what the API server checks of a field: numbers first, then the messages of its rules.
func (c child) allowed() string {
	parts := append(limits(&c.schema), fieldRules(&c.schema)...)
	if element := c.element(); element != nil {
		for _, part := range append(limits(element), fieldRules(element)...) {
			parts = append(parts, "each: "+part)
		}
	}
	return strings.Join(parts, "; ")
}

// fieldRules are the rules of a field that has no section of its own, which has them otherwise.
func fieldRules(schema *apiextensionsv1.JSONSchemaProps) []string {
	if len(schema.Properties) > 0 {
		return nil
	}
	return rules(schema)
}

// rules are the messages of an object's validation rules, without repetitions.
func rules(schema *apiextensionsv1.JSONSchemaProps) []string {
	var messages []string
	for _, rule := range schema.XValidations {
		message := rule.Message
		if rule.FieldPath != "" {
			message = fmt.Sprintf("`%s`: %s", strings.TrimPrefix(rule.FieldPath, "."), message)
		}
		if message = text(message); message != "" && !slices.Contains(messages, message) {
			messages = append(messages, message)
		}
	}
	return messages
}

// limits are the bounds of a value.
func limits(schema *apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	if values := enumText(schema); values != "" {
		found = append(found, values)
	}
	for _, bound := range []struct {
		from, to *int64
		unit     string
	}{
		{schema.MinLength, schema.MaxLength, "characters"},
		{schema.MinItems, schema.MaxItems, "items"},
		{schema.MinProperties, schema.MaxProperties, "properties"},
		{integer(schema.Minimum), integer(schema.Maximum), ""},
	} {
		if limit := boundText(bound.from, bound.to, bound.unit); limit != "" {
			found = append(found, limit)
		}
	}
	if schema.Pattern != "" {
		found = append(found, "matches `"+strings.ReplaceAll(schema.Pattern, "|", `\|`)+"`")
	}
	if schema.Format != "" && schema.Type == "string" {
		found = append(found, schema.Format)
	}
	return found
}

func enumText(schema *apiextensionsv1.JSONSchemaProps) string {
	values := make([]string, 0, len(schema.Enum))
	for _, value := range schema.Enum {
		values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
	}
	return strings.Join(values, ", ")
}

func integer(number *float64) *int64 {
	if number == nil {
		return nil
	}
	value := int64(*number)
	return &value
}

func boundText(from, to *int64, unit string) string {
	var limit string
	switch {
	case from != nil && to != nil:
		limit = fmt.Sprintf("%d to %d %s", *from, *to, unit)
	case from != nil:
		limit = fmt.Sprintf("at least %d %s", *from, unit)
	case to != nil:
		limit = fmt.Sprintf("at most %d %s", *to, unit)
	}
	return strings.TrimSpace(limit)
}

// split takes the default and the window out of a description. What goes on after the default stays with the description.
func split(description string) (rest, initial, window string) {
	rest, until := windows.Split(description)
	rest, window = text(rest), until.Short()
	if before, value, found := strings.Cut(rest, "Defaults to "); found {
		sentence, after, _ := strings.Cut(value, ". ")
		initial = strings.TrimSuffix(sentence, ".")
		rest = strings.TrimSpace(before + after)
	}
	return rest, initial, window
}

// text makes a text fit into a cell of a table and keeps Markdown from taking it for HTML.
func text(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(s), " "))
}

// link refers to a section by its title, in GitHub's spelling of anchors.
func link(title string) string {
	anchor := strings.NewReplacer(" ", "-", ".", "", "[", "", "]", "").Replace(strings.ToLower(title))
	return fmt.Sprintf("[%s](#%s)", title, anchor)
}
