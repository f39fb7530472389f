// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// only returns the one object of a kind, as its type.
func only[T any](t *testing.T, objects []unstructured.Unstructured, kind string) *T {
	t.Helper()
	g := NewWithT(t)
	found := ofKind(objects, kind)
	g.Expect(found).To(HaveLen(1), kind)
	typed := new(T)
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, typed)).To(Succeed())
	return typed
}

// checkDeployment checks what clusterctl and the Cluster API operator need of the pod; TestHardening has the rest.
func checkDeployment(t *testing.T, p provider) {
	g := NewWithT(t)
	objects := installed(t, p, "").Objs()
	pod := only[appsv1.Deployment](t, objects, "Deployment").Spec.Template.Spec
	g.Expect(pod.Containers).To(HaveLen(1))
	g.Expect(pod.ServiceAccountName).To(Equal(only[corev1.ServiceAccount](t, objects, "ServiceAccount").Name))
	container := pod.Containers[0]
	g.Expect(container.Name).To(Equal("manager"))
	g.Expect(container.Args).To(ContainElements("--leader-elect=true", "--diagnostics-address=:8443", "--insecure-diagnostics=false"))
	g.Expect(container.TerminationMessagePolicy).To(Equal(corev1.TerminationMessageFallbackToLogsOnError))
	g.Expect(container.ReadinessProbe.HTTPGet.Path).To(Equal("/readyz"))
	g.Expect(container.LivenessProbe.HTTPGet.Path).To(Equal("/healthz"))
}

// checkCertificate checks the names that kustomize does not follow, also as kubectl applies them: clusterctl would correct some.
func checkCertificate(t *testing.T, p provider) {
	asReleased, err := utilyaml.ToUnstructured(read(t, released, p.components()))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	checkCertificateIn(t, p, asReleased)
	checkCertificateIn(t, p, installed(t, p, "").Objs())
}

// checkCertificateIn checks that Service, Certificate, its Secret and the annotation for its authority are about the same.
func checkCertificateIn(t *testing.T, p provider, objects []unstructured.Unstructured) {
	t.Helper()
	g := NewWithT(t)
	service := only[corev1.Service](t, objects, "Service")
	deployment := only[appsv1.Deployment](t, objects, "Deployment")
	certificate := only[unstructured.Unstructured](t, objects, "Certificate").Object
	host := service.Name + "." + service.Namespace + ".svc"
	g.Expect(certificate["spec"]).To(And(
		HaveKeyWithValue("dnsNames", ConsistOf(host, host+".cluster.local")),
		HaveKeyWithValue("secretName", deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName),
		HaveKeyWithValue("issuerRef", HaveKeyWithValue("name", ofKind(objects, "Issuer")[0].GetName())),
	))
	selector := labels.SelectorFromSet(service.Spec.Selector)
	g.Expect(selector.Matches(labels.Set(deployment.Spec.Template.Labels))).To(BeTrue())
	g.Expect(service.Spec.Selector).To(HaveKeyWithValue(clusterctlProviderLabel, p.label()))

	name := ofKind(objects, "Certificate")[0].GetName()
	for _, webhooks := range ofKind(objects, "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration") {
		g.Expect(webhooks.GetAnnotations()).To(HaveKeyWithValue("cert-manager.io/inject-ca-from", p.namespace()+"/"+name))
	}
	validating := only[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects, "ValidatingWebhookConfiguration")
	for _, webhook := range validating.Webhooks {
		g.Expect(webhook.ClientConfig.Service.Name).To(Equal(service.Name))
		g.Expect(webhook.FailurePolicy).To(HaveValue(Equal(admissionregistrationv1.Fail)))
	}
}
