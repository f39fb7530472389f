// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// CheckInstalled compares a components file with a cluster: every object is there, with the labels by which clusterctl finds those of the
// provider. Objects of the kinds in unlabelled only have to be there.
func CheckInstalled(ctx context.Context, cluster client.Reader, file, provider string, unlabelled ...string) error {
	components, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the components of %s: %w", provider, err)
	}
	objects, err := utilyaml.ToUnstructured(components)
	if err != nil {
		return fmt.Errorf("cannot read the components of %s: %w", provider, err)
	}
	if len(objects) == 0 {
		return fmt.Errorf("%s has no objects", file)
	}
	ours := labels.SelectorFromSet(labels.Set{clusterctlv1.ClusterctlLabel: "", clusterv1.ProviderNameLabel: provider})
	var problems []error
	for i := range objects {
		object := &objects[i]
		name := object.GetKind() + " " + object.GetName()
		err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("cannot read %s: %w", name, err))
		case !slices.Contains(unlabelled, object.GetKind()) && !ours.Matches(labels.Set(object.GetLabels())):
			problems = append(problems, fmt.Errorf("%s has the labels %v, want %s", name, object.GetLabels(), ours))
		}
	}
	return errors.Join(problems...)
}
