// SPDX-License-Identifier: Apache-2.0

// Package infrastructure reads objects of infrastructure providers, of Metal3 and of any other, by Cluster API's contract. The kind is what
// a user writes into a reference, so nothing here may wait for a kind that the manager is not allowed to read.
package infrastructure

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/contract"
)

// readTimeout bounds one read. The first cached read of a kind waits for its informer, which may never be filled; without a bound it waits
// for the whole minute that a pass has, and a hundred such objects hold every worker.
const readTimeout = 5 * time.Second

// Get reads an infrastructure object of a kind that the manager's role names, in the API version that its CRD gives for Cluster API's
// contract. It returns nil when the object does not exist, or cannot because its CRD is gone: Cluster API's own function makes an error of
// the latter that nobody can tell from others.
func Get(
	ctx context.Context, c client.Reader, ref clusterv1.ContractVersionedObjectReference, namespace string,
) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
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
