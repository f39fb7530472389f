// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// The reason and the message of an approval, in the installed cluster.
const (
	approvedReason  = "MachineOfCluster"
	approvedMessage = "The names and addresses are those of a Node of a Cluster API Machine"
)

// apply approves what is to be approved, and tells once of what is not.
func (r *Reconciler) apply(ctx context.Context, s *scope, d decision) []error {
	var errs []error
	for _, a := range d.approve {
		ctrl.LoggerFrom(ctx).
			Info("Approving the serving certificate of a kubelet", "CertificateSigningRequest", a.request.Name, "Machine", a.machine)
		err := r.Certificates.Approve(ctx, client.ObjectKeyFromObject(s.cluster), a.request, approvedReason, approvedMessage)
		// The request has changed or is gone: the watch triggers another pass.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, refused := range d.refuse {
		if _, told := r.reported.Get(refused.request.UID); told {
			continue
		}
		r.reported.Add(refused.request.UID, nil)
		// Events that differ in their text only are one to the recorder: the related request keeps them apart.
		r.Recorder.Eventf(
			s.controlPlane, referenceTo(refused.request), corev1.EventTypeWarning, controlplanev1.EventServingCertificateNotApproved, "Approve",
			"CertificateSigningRequest %s of %s in the installed cluster is left alone: %s", refused.request.Name, refused.request.Spec.Username,
			refused.reason,
		)
	}
	return errs
}

// referenceTo refers to a request in the installed cluster.
func referenceTo(request *certificatesv1.CertificateSigningRequest) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest", Name: request.Name, UID: request.UID,
	}
}
