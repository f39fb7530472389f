// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// agentServiceConfig is the name of the only AgentServiceConfig of a management cluster.
const agentServiceConfig = "agent"

// capture reads all that there is of a namespace, what others own before what they own. Of the Secrets it leaves out none.
func capture(ctx context.Context, c client.Client, namespace string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, k := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.gvk())
		var options []client.ListOption
		if !k.clusterScoped {
			options = append(options, client.InNamespace(namespace))
		}
		if err := c.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list every %s: %w", k.kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if k.clusterScoped && !belongs(o.GetName(), namespace) {
				continue
			}
			o.SetManagedFields(nil)
			o.SetResourceVersion("")
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// belongs reports whether a name in the whole cluster is that of a namespace or made from it, or one that all namespaces need.
func belongs(name, namespace string) bool {
	return name == namespace || name == agentServiceConfig || strings.HasPrefix(name, namespace+".")
}
