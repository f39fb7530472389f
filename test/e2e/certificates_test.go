// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// expectServingCertificates waits until the request of every kubelet for a serving certificate is approved (DESIGN D7). The simulated kubelets
// ask when they start.
func (s scene) expectServingCertificates(ctx context.Context) {
	config, err := world.Workload.Config(s.install())
	Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	installed, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	approved := func() (int, error) {
		requests := &certificatesv1.CertificateSigningRequestList{}
		err := installed.List(ctx, requests, client.MatchingFields{"spec.signerName": certificatesv1.KubeletServingSignerName})
		n := 0
		for i := range requests.Items {
			for _, condition := range requests.Items[i].Status.Conditions {
				if condition.Type == certificatesv1.CertificateApproved {
					n++
				}
			}
		}
		return n, err
	}
	Eventually(approved).WithContext(ctx).WithTimeout(settleTimeout).Should(Equal(s.request.Machines()))
}
