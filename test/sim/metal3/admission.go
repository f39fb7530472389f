// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"strings"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// admissionHook is one webhook of CAPM3 or BMO, by its real name and path (M3-90). The controllers never see what it refuses.
type admissionHook struct {
	name, path string
	group      string
	versions   []string
	resource   string
	// answer returns the webhook's response to a request of the API server.
	answer func(admission.Request) admission.Response
}

// defaultingHooks are those of CAPM3 that change an object. Only the one on which a verdict depends is here (M3-92).
func defaultingHooks() []admissionHook {
	return []admissionHook{capm3Hook("default.", "/mutate-", kindCluster, defaultCluster)}
}

// capm3Hooks are those of CAPM3 that refuse an object.
func capm3Hooks() []admissionHook {
	return []admissionHook{
		capm3Hook("validation.", "/validate-", kindMachine, refusing(machineErrors)),
		capm3Hook("validation.", "/validate-", kindMachineTemplate, refusing(templateErrors)),
		capm3Hook("validation.", "/validate-", kindCluster, refusing(clusterErrors)),
	}
}

// bmoHooks are those of BMO that refuse an object.
func bmoHooks() []admissionHook {
	return []admissionHook{{
		name: "baremetalhost.metal3.io", path: "/validate-metal3-io-v1alpha1-baremetalhost", group: bmov1alpha1.GroupVersion.Group,
		versions: []string{bmov1alpha1.GroupVersion.Version}, resource: "baremetalhosts", answer: admitHost,
	}}
}

// capm3Hook is asked in both API versions. The real one is asked in v1beta2, to which the API server converts; but the older CRDs have
// v1beta1 alone, and the rules of both versions are here in one place.
func capm3Hook(name, path, kind string, answer func(admission.Request) admission.Response) admissionHook {
	singular := strings.ToLower(kind)
	return admissionHook{
		name: name + singular + "." + infrastructureGroup, path: path + "infrastructure-cluster-x-k8s-io-v1beta2-" + singular,
		group: infrastructureGroup, versions: []string{versionV1Beta1, versionV1Beta2}, resource: singular + "s", answer: answer,
	}
}

// ServeAdmission registers the webhooks of CAPM3 and BMO with a server.
func ServeAdmission(server webhook.Server) {
	for _, hooks := range [][]admissionHook{defaultingHooks(), capm3Hooks(), bmoHooks()} {
		for _, hook := range hooks {
			server.Register(hook.path, &admission.Webhook{Handler: admission.HandlerFunc(
				func(_ context.Context, req admission.Request) admission.Response { return hook.answer(req) },
			)})
		}
	}
}

// AdmissionConfigurations returns the configurations of the webhooks that ServeAdmission serves, each behind a Service.
func AdmissionConfigurations() []client.Object {
	defaulting := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: configurationType("MutatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: "capm3-mutating-webhook-configuration"},
	}
	for _, hook := range defaultingHooks() {
		defaulting.Webhooks = append(defaulting.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: hook.name, ClientConfig: hook.client(), Rules: hook.rules(), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		})
	}
	return []client.Object{
		defaulting,
		validating("capm3-validating-webhook-configuration", capm3Hooks()),
		validating("baremetal-operator-validating-webhook-configuration", bmoHooks()),
	}
}

func validating(name string, hooks []admissionHook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: configurationType("ValidatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	for _, hook := range hooks {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: hook.name, ClientConfig: hook.client(), Rules: hook.rules(), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		})
	}
	return configuration
}

func configurationType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

func (h admissionHook) client() admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: metav1.NamespaceDefault, Name: "kubernetes", Path: ptr.To(h.path),
	}}
}

// rules leave out the status, as the real ones do: the controllers write it without being asked.
func (h admissionHook) rules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{h.group}, APIVersions: h.versions, Resources: []string{h.resource},
		},
	}}
}
