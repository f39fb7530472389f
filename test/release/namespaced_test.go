// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// TestNamespacedWebhooks: the webhooks of a provider for one namespace are asked about that namespace only. When its manager does not
// answer, the objects of other teams can still be written.
func TestNamespacedWebhooks(t *testing.T) {
	tools, err := localcontrolplane.NewTools(t.Output())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	kustomize, err := tools.Path(t.Context(), "kustomize")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, provider := range []string{"bootstrap", "controlplane"} {
		t.Run(provider, func(t *testing.T) {
			g := NewWithT(t)
			rendered, err := exec.CommandContext(t.Context(), kustomize, "build", "../../config/"+provider+"/namespaced").Output()
			g.Expect(err).NotTo(HaveOccurred())
			objects, err := utilyaml.ToUnstructured(bytes.TrimSpace(rendered))
			g.Expect(err).NotTo(HaveOccurred())
			validating := only[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration")
			g.Expect(validating.Webhooks).NotTo(BeEmpty())
			for _, webhook := range validating.Webhooks {
				g.Expect(webhook.NamespaceSelector).
					To(HaveField("MatchLabels", HaveKeyWithValue("kubernetes.io/metadata.name", "clusters")), webhook.Name)
			}
			if len(ofKind(objects, "MutatingWebhookConfiguration")) == 0 {
				return
			}
			mutating := only[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration")
			for _, webhook := range mutating.Webhooks {
				g.Expect(webhook.NamespaceSelector).
					To(HaveField("MatchLabels", HaveKeyWithValue("kubernetes.io/metadata.name", "clusters")), webhook.Name)
			}
		})
	}
}
