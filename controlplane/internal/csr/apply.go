// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reason and the message of an approval, in the installed cluster.
const (
	approvedReason  = "MachineOfCluster"
	approvedMessage = "The names and addresses are those of a Node of a Cluster API Machine"
)

// apply approves what is to be approved. One request that cannot be approved keeps none of the others.
func (r *Reconciler) apply(ctx context.Context, s *scope, d decision) error {
	var errs []error
	for _, a := range d.approve {
		ctrl.LoggerFrom(ctx).
			Info("Approving the serving certificate of a kubelet", "CertificateSigningRequest", a.request.Name, "Machine", a.machine)
		err := r.Certificates.Approve(ctx, client.ObjectKeyFromObject(s.cluster), a.request, approvedReason, approvedMessage)
		// The request has changed or is gone, which triggers another pass.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return kerrors.NewAggregate(errs)
}
