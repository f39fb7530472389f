// SPDX-License-Identifier: Apache-2.0

// Package windows knows until when a field of a spec can change. The description of the field, or of a field around it, says so in its last
// sentence, which is one of a few. The API reference and the tests of what admission refuses are made of it.
package windows

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Window is until when a field can change, as its description says it.
type Window string

const (
	// Never: the field is what it is when the object is created.
	Never Window = "Never changeable."
	// UntilRecognised: until the Machine's host is recognised, after which it may be given to the Assisted Installer at any moment.
	UntilRecognised Window = "Changeable until the host is recognised."
	// UntilBound: until the host is bound to the cluster, for which its disk is chosen.
	UntilBound Window = "Changeable until the host is bound."
	// BeforeInstallation: until the installation begins, and again when it has failed.
	BeforeInstallation Window = "Changeable before the installation."
	// AfterInstallation: once the cluster is installed, or its installation has failed.
	AfterInstallation Window = "Changeable after the installation."
	// AtAnyTime: whatever the cluster is doing.
	AtAnyTime Window = "Changeable at any time."
)

// all are the windows there are.
var all = []Window{Never, UntilRecognised, UntilBound, BeforeInstallation, AfterInstallation, AtAnyTime}

// Short is the window in a table whose heading says what it is about.
func (w Window) Short() string {
	if w == Never {
		return "never"
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(w), "Changeable "), ".")
}

// Split takes the window from the end of a description, which is one line afterwards. The window is empty when there is none.
func Split(description string) (rest string, window Window) {
	rest = strings.Join(strings.Fields(description), " ")
	for _, w := range all {
		if before, found := strings.CutSuffix(rest, string(w)); found {
			return strings.TrimSpace(before), w
		}
	}
	return rest, ""
}

// At returns the windows that are said on the way to a field, whose path is in the form of crdschema: that of an object around it comes
// before its own. There are none when there is no such field.
func At(schema *apiextensionsv1.JSONSchemaProps, path string) []Window {
	var found []Window
	for part := range strings.SplitSeq(path, ".") {
		property, ok := schema.Properties[strings.TrimRight(part, "[]{}")]
		if !ok {
			return nil
		}
		if _, window := Split(property.Description); window != "" {
			found = append(found, window)
		}
		schema = &property
		for schema.Items != nil && schema.Items.Schema != nil {
			schema = schema.Items.Schema
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			schema = schema.AdditionalProperties.Schema
		}
	}
	return slices.Compact(found)
}
