// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// request is one of the kubelet of Node n, with the conditions that it has.
func request(name string, conditions ...certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequest {
	r := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec.Username = "system:node:n"
	for _, condition := range conditions {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: condition})
	}
	return r
}

func TestCheckApprovals(t *testing.T) {
	requests := certificates{nodes: []string{"n"}, renewals: []string{"renewal"}, foreign: map[string]string{"foreign": "192.0.2.99"}}
	const approved = certificatesv1.CertificateApproved
	for _, tt := range []struct {
		name string
		list []certificatesv1.CertificateSigningRequest
		want string
	}{
		{"as it should be", []certificatesv1.CertificateSigningRequest{request("first", approved), request("renewal", approved),
			request("foreign")}, ""},
		{"the first is pending", []certificatesv1.CertificateSigningRequest{request("first"), request("renewal", approved), request("foreign")},
			"with which Node n started"},
		{"the renewal is pending", []certificatesv1.CertificateSigningRequest{request("first", approved), request("renewal"),
			request("foreign")}, "renewal, with which Node n renews"},
		{"the foreign one is approved", []certificatesv1.CertificateSigningRequest{request("first", approved), request("renewal", approved),
			request("foreign", approved)}, "foreign for 192.0.2.99 is to be left alone"},
		{"the foreign one is denied", []certificatesv1.CertificateSigningRequest{request("first", approved), request("renewal", approved),
			request("foreign", certificatesv1.CertificateDenied)}, "is Denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			err := requests.checkApprovals(tt.list)
			if tt.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestCheckEvents(t *testing.T) {
	g := NewWithT(t)
	requests := certificates{
		controlPlane: types.NamespacedName{Namespace: "ns", Name: "cp"}, foreign: map[string]string{"csr-1": "192.0.2.99"},
	}
	event := eventsv1.Event{
		Reason: controlplanev1.EventServingCertificateNotApproved, Regarding: corev1.ObjectReference{Name: "cp"},
		Note: "CertificateSigningRequest csr-1 is left alone: 192.0.2.99",
	}
	g.Expect(requests.checkEvents([]eventsv1.Event{event})).To(Succeed())
	other := event
	other.Note = "CertificateSigningRequest csr-2 is left alone: 192.0.2.99"
	g.Expect(requests.checkEvents([]eventsv1.Event{other})).To(MatchError(ContainSubstring("csr-1 for 192.0.2.99")))
	other = event
	other.Regarding.Name = "another"
	g.Expect(requests.checkEvents([]eventsv1.Event{other})).NotTo(Succeed())
}
