// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"
	capipatch "sigs.k8s.io/cluster-api/util/patch"
)

// withConditions is an object with conditions.
type withConditions interface {
	client.Object
	conditions.Setter
}

// PatchStatus writes what a pass changed in the status of an object, conditions and all, in one patch, under the resource version that was
// read: so the conditions of others survive (CONTRACT BOOT-52). If somebody has changed the object since, Cluster API's helper writes the
// same in several patches: it takes the owned conditions from the pass, and all others from the API server. alone reports whether what is
// stored now differs from what was read by this pass alone, which is known of one patch only.
func PatchStatus(ctx context.Context, c client.Client, before, after withConditions, owned []string) (alone bool, err error) {
	err = c.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if !IsConflict(err) {
		return err == nil, err
	}
	helper, err := capipatch.NewHelper(before, c)
	if err != nil {
		return false, err
	}
	return false, helper.Patch(ctx, after, capipatch.WithOwnedConditions{Conditions: owned})
}
