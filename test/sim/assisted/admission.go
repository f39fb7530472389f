// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

const (
	// serviceGroup is the API group of assisted-service's webhooks.
	serviceGroup = "admission.agentinstall.openshift.io"
	// mutating is the name of the one mutating webhook.
	mutating = "agentclusterinstallmutators"
)

// admissionHook is one webhook of assisted-service or hive. What it refuses is never seen by the service (ASSISTED 1.5).
type admissionHook struct {
	name     string
	group    string
	resource schema.GroupVersionResource
	// operations are those that the API server asks about.
	operations []admissionregistrationv1.OperationType
	// admit says why a request is refused.
	admit func(ctx context.Context, reader client.Reader, req admission.Request) admission.Response
}

var createAndUpdate = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}

// admissionHooks are the webhooks that AgentServiceConfig and hive's operator install, by their real names and paths.
func admissionHooks() []admissionHook {
	installs := hiveext.GroupVersion.WithResource("agentclusterinstalls")
	return []admissionHook{
		{mutating, serviceGroup, installs, createAndUpdate, defaultInstall},
		{"agentclusterinstallvalidators", serviceGroup, installs, createAndUpdate, admitInstall},
		{"agentvalidators", serviceGroup, aiv1.GroupVersion.WithResource("agents"), createAndUpdate, admitAgent},
		{"infraenvvalidators", serviceGroup, aiv1.GroupVersion.WithResource("infraenvs"), createAndUpdate, admitInfraEnv},
		{
			"clusterdeploymentvalidators", "admission.hive.openshift.io", hivev1.SchemeGroupVersion.WithResource("clusterdeployments"),
			append(slices.Clone(createAndUpdate), admissionregistrationv1.Delete), admitDeployment,
		},
	}
}

func (h admissionHook) path() string { return "/apis/" + h.group + "/v1/" + h.name }

// ServeAdmission registers the webhooks of assisted-service with a server, and that of hive with another. reader reads past every cache.
func ServeAdmission(service, hive webhook.Server, reader client.Reader) {
	for _, hook := range admissionHooks() {
		server := hive
		if hook.group == serviceGroup {
			server = service
		}
		server.Register(hook.path(), &admission.Webhook{Handler: admission.HandlerFunc(
			func(ctx context.Context, req admission.Request) admission.Response {
				return hook.admit(ctx, reader, req)
			},
		)})
	}
}

// AdmissionConfigurations returns the configurations of the webhooks that ServeAdmission serves, each behind a Service.
func AdmissionConfigurations() []client.Object {
	var out []client.Object
	for _, hook := range admissionHooks() {
		name := hook.name + "." + hook.group
		if hook.name == mutating {
			out = append(out, &admissionregistrationv1.MutatingWebhookConfiguration{
				TypeMeta: configurationType("MutatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: name},
				Webhooks: []admissionregistrationv1.MutatingWebhook{{
					Name: name, ClientConfig: hook.client(), Rules: hook.rules(), SideEffects: noSideEffects(),
					FailurePolicy: ptr.To(admissionregistrationv1.Fail), AdmissionReviewVersions: []string{"v1"},
				}},
			})
			continue
		}
		out = append(out, &admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta: configurationType("ValidatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: name, ClientConfig: hook.client(), Rules: hook.rules(), SideEffects: noSideEffects(),
				FailurePolicy: ptr.To(admissionregistrationv1.Fail), AdmissionReviewVersions: []string{"v1"},
			}},
		})
	}
	return out
}

func configurationType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

func noSideEffects() *admissionregistrationv1.SideEffectClass {
	return ptr.To(admissionregistrationv1.SideEffectClassNone)
}

func (h admissionHook) client() admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: metav1.NamespaceDefault, Name: "kubernetes", Path: ptr.To(h.path()),
	}}
}

func (h admissionHook) rules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: h.operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{h.resource.Group}, APIVersions: []string{h.resource.Version}, Resources: []string{h.resource.Resource},
		},
	}}
}

// decide decodes the objects of a request, each absent one being empty, and refuses what rule finds wrong.
func decide[T any](req admission.Request, rule func(before, after *T) error) admission.Response {
	before, after := new(T), new(T)
	for raw, into := range map[*[]byte]*T{&req.OldObject.Raw: before, &req.Object.Raw: after} {
		if len(*raw) == 0 {
			continue
		}
		if err := json.Unmarshal(*raw, into); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	return answerOf(rule(before, after))
}

// answerOf is a refusal in the form of the real webhooks, or the permission.
func answerOf(err error) admission.Response {
	if err == nil {
		return admission.Allowed("")
	}
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: err.Error(),
	}
	var conflict *platformConflict
	var invalid apierrors.APIStatus
	switch {
	case errors.As(err, &conflict):
		status.Code, status.Reason = http.StatusConflict, metav1.StatusReasonConflict
	case errors.As(err, &invalid):
		status = invalid.Status()
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// platformConflict is what the real webhook answers with the code of a conflict.
type platformConflict struct{ text string }

func (e *platformConflict) Error() string { return e.text }

func conflictf(format string, args ...any) error {
	return &platformConflict{fmt.Sprintf(format, args...)}
}
