// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// untold are those of the refusals that no event has told of. For the others no cluster is asked which one it is.
func (r *Reconciler) untold(refused []refusal) []refusal {
	return slices.DeleteFunc(refused, func(f refusal) bool {
		_, told := r.reported.Get(f.request.UID)
		return told
	})
}

// report tells once, in an event of the control plane, of each request that is left alone.
func (r *Reconciler) report(s *scope, d decision) {
	for _, refused := range d.refuse {
		r.reported.Add(refused.request.UID, nil)
		// Events that differ in their text only are one to the recorder: the related request keeps them apart.
		r.Recorder.Eventf(
			s.controlPlane, referenceTo(refused.request), corev1.EventTypeWarning, controlplanev1.EventServingCertificateNotApproved, "Approve",
			"CertificateSigningRequest %s of %s in the installed cluster is left alone: %s", refused.request.Name, refused.request.Spec.Username,
			refused.reason,
		)
	}
}

// referenceTo refers to a request in the installed cluster.
func referenceTo(request *certificatesv1.CertificateSigningRequest) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest", Name: request.Name, UID: request.UID,
	}
}
