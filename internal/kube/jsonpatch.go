// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operation is one of a JSON patch (RFC 6902): Op is what is done at Path, as in {"test", "/metadata/uid", uid}.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// JSONPatch is a patch of operations, which the API server carries out all or none. It answers a test that fails with 422 (Invalid), as it
// does a value that is not valid, and not with 409 (Conflict).
func JSONPatch(operations ...Operation) (client.Patch, error) {
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}

// AnnotationPath is the path of an annotation in a JSON patch. No key of an annotation has a ~, which would have to be escaped too.
func AnnotationPath(annotation string) string {
	return "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1")
}
