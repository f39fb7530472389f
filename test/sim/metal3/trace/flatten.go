// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unseen are the fields that recordings leave out.
var unseen = map[string]bool{
	"apiVersion": true, "kind": true,
	"metadata.managedFields": true, "metadata.resourceVersion": true, "metadata.generation": true,
	"metadata.selfLink": true, "status.lastUpdated": true, "status.operationHistory": true,
}

// Flatten returns an object's fields as recordings name them.
func Flatten(object *unstructured.Unstructured) map[string]any {
	flat := map[string]any{}
	flattenMap(flat, "", object.Object)
	return flat
}

func flattenMap(flat map[string]any, path string, fields map[string]any) {
	if len(fields) == 0 && path != "" {
		flat[path] = map[string]any{}
	}
	for key, value := range fields {
		flattenValue(flat, strings.TrimPrefix(path+"."+key, "."), value)
	}
}

func flattenValue(flat map[string]any, path string, value any) {
	if unseen[path] {
		return
	}
	switch typed := value.(type) {
	case map[string]any:
		flattenMap(flat, path, typed)
	case []any:
		flattenList(flat, path, typed)
	default:
		flat[path] = value
	}
}

func flattenList(flat map[string]any, path string, list []any) {
	switch {
	case strings.HasSuffix(path, "conditions"):
		for _, entry := range list {
			kind, folded := foldCondition(entry)
			flat[fmt.Sprintf("%s[%s]", path, kind)] = folded
		}
	case path == "metadata.ownerReferences":
		owners := make([]any, len(list))
		for i := range list {
			owners[i] = foldOwner(list[i])
		}
		flat[path] = owners
	default:
		flat[path] = list
	}
}

func foldCondition(entry any) (kind, folded string) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return "", fmt.Sprint(entry)
	}
	field := func(name string) string { return stringField(fields, name) }
	folded = field("status")
	if reason := field("reason"); reason != "" {
		folded += "/" + reason
	}
	if severity := field("severity"); severity != "" {
		folded += " (" + severity + ")"
	}
	if message := field("message"); message != "" {
		folded += ": " + message
	}
	return field("type"), folded
}

// UnfoldCondition is the opposite of the folding: it returns the fields of a condition.
func UnfoldCondition(kind, folded string) map[string]any {
	condition := map[string]any{"type": kind}
	head, message, found := strings.Cut(folded, ": ")
	if found {
		condition["message"] = message
	}
	if head, severity, found := strings.Cut(strings.TrimSuffix(head, ")"), " ("); found {
		condition["severity"] = severity
		condition["status"], condition["reason"], _ = strings.Cut(head, "/")
		return condition
	}
	status, reason, found := strings.Cut(head, "/")
	condition["status"] = status
	if found {
		condition["reason"] = reason
	}
	return condition
}

func foldOwner(entry any) string {
	fields, ok := entry.(map[string]any)
	if !ok {
		return fmt.Sprint(entry)
	}
	owner := strings.Join([]string{stringField(fields, "apiVersion"), stringField(fields, "kind"), stringField(fields, "name")}, "/")
	for _, flag := range []string{"controller", "blockOwnerDeletion"} {
		if set, ok := fields[flag].(bool); ok && set {
			owner += " " + flag
		}
	}
	return owner
}

func stringField(fields map[string]any, name string) string {
	value, _ := fields[name].(string)
	return value
}

// keyed are the maps whose keys may have dots.
var keyed = []string{"metadata.labels.", "metadata.annotations.", "spec.hostSelector.matchLabels."}

// SplitPath splits a flattened path into the names of the fields on the way.
func SplitPath(path string) []string {
	for _, prefix := range keyed {
		if key, found := strings.CutPrefix(path, prefix); found {
			return append(strings.Split(strings.TrimSuffix(prefix, "."), "."), key)
		}
	}
	return strings.Split(path, ".")
}
