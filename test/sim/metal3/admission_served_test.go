// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// checkServedAdmission asks an API server with both versions of CAPM3's API, which asks the webhooks over the network.
func checkServedAdmission(t *testing.T, cp *localcontrolplane.ControlPlane) {
	g := NewWithT(t)
	serveWebhooks(t, cp)
	g.Expect(cp.InstallCRDs(t.Context(), localcontrolplane.CRDsMetal3V1Beta2)).To(Succeed())
	g.Expect(cp.InstallWebhooks(t.Context(), localcontrolplane.Simulators, AdmissionConfigurations()...)).To(Succeed())
	config := rest.CopyConfig(cp.Admin())
	config.WarningHandler = rest.NoWarnings{} // v1beta1 is deprecated, and used here on purpose.
	cl := newClient(t, config)
	g.Expect(cl.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: admissionNamespace}})).To(Succeed())
	decide := decidedBy(cl)

	cases := recordedCases(t)
	for _, name := range []string{
		"v1beta2 Metal3Machine: no image key", "v1beta1 Metal3Cluster: host only", "BareMetalHost: bmc address garbage",
	} {
		before, after := writtenIn(t, cases, name)
		g.Eventually(func() string { return decide(t, before, after) }, settleTimeout, pollInterval).Should(
			Equal(recordedAnswer(cases[name].Result)), "the API server asks the webhooks of each configuration",
		)
	}
	expectRecorded(t, decide, undecided())
}

// serveWebhooks serves the conversion and the admission webhooks until the test ends.
func serveWebhooks(t *testing.T, cp *localcontrolplane.ControlPlane) {
	t.Helper()
	g := NewWithT(t)
	address, err := cp.WebhookServer(localcontrolplane.Simulators)
	g.Expect(err).NotTo(HaveOccurred())
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: address.Port, CertDir: address.CertDir})
	server.Register(ConversionPath, Conversion())
	ServeAdmission(server)
	done := make(chan error, 1)
	go func() { done <- server.Start(t.Context()) }()
	t.Cleanup(func() { g.Expect(<-done).To(Succeed()) })
}

// decidedBy writes nothing but what was there before, and removes it again.
func decidedBy(cl client.Client) decider {
	return func(t *testing.T, before, after *unstructured.Unstructured) string {
		t.Helper()
		g := NewWithT(t)
		written := after.DeepCopy()
		if before == nil {
			return asKubectl(cl.Create(t.Context(), written, client.DryRunAll))
		}
		stored := before.DeepCopy()
		g.Expect(cl.Create(t.Context(), stored)).To(Succeed())
		if status := before.Object["status"]; status != nil {
			stored.Object["status"] = status
			g.Expect(cl.Status().Update(t.Context(), stored)).To(Succeed())
		}
		written.SetResourceVersion(stored.GetResourceVersion())
		answer := asKubectl(cl.Update(t.Context(), written, client.DryRunAll))
		g.Expect(cl.Delete(t.Context(), stored)).To(Succeed())
		return answer
	}
}
