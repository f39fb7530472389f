// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/contract"
)

// CRDs returns the CRDs without which the infrastructure object that the reference names cannot exist or be provisioned; none for
// infrastructure of others.
func CRDs(ref clusterv1.ContractVersionedObjectReference) []string {
	if ref.APIGroup == InfrastructureGroup && (ref.Kind == MachineKind || ref.Kind == MachineKind+"Template") {
		return []string{CRDMachines, CRDBareMetalHosts}
	}
	return nil
}

// Get reads an infrastructure object of any provider, in the API version that its CRD gives for Cluster API's contract. It returns nil when the
// object does not exist, or cannot because its CRD is gone: Cluster API's own function makes an error of the latter that nobody can tell from
// others.
func Get(ctx context.Context, c client.Reader, ref clusterv1.ContractVersionedObjectReference, namespace string) (*unstructured.Unstructured, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	name := contract.CalculateCRDName(ref.APIGroup, ref.Kind)
	err := c.Get(ctx, types.NamespacedName{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	o, err := external.GetObjectFromContractVersionedRef(ctx, c, ref, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}
