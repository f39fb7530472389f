// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"path"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookTimeoutSeconds is the most that an API server waits: on a busy machine a webhook may answer late, and who applies something by
// hand does not try again.
const webhookTimeoutSeconds = 30

// webhookEndpoint is where one component serves its webhooks: a port of loopback, with a certificate of our authority.
// It is chosen at its first use and never changes, because CRDs with conversion webhooks are installed before the component runs.
type webhookEndpoint struct {
	port    int
	certDir string // has tls.crt and tls.key
	ca      []byte
}

func (cp *ControlPlane) webhookEndpoint(component string) (*webhookEndpoint, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if endpoint, ok := cp.webhooks[component]; ok {
		return endpoint, nil
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	serving, err := cp.api.ca.serving(localhost)
	if err != nil {
		return nil, err
	}
	endpoint := &webhookEndpoint{port: port, certDir: filepath.Join(cp.dir, component, "webhook"), ca: cp.api.ca.pem}
	if _, _, err := serving.write(endpoint.certDir, "tls"); err != nil {
		return nil, err
	}
	cp.webhooks[component] = endpoint
	return endpoint, nil
}

// WebhookServer is where a component that runs in a test's own process has to serve its webhooks.
type WebhookServer struct {
	// Port of localhost.
	Port int
	// CertDir has the serving certificate, tls.crt, and its key, tls.key.
	CertDir string
	// CA is the authority of the certificate.
	CA []byte
}

// WebhookServer returns where a component has to serve its webhooks, always the same place for one component.
func (cp *ControlPlane) WebhookServer(component string) (WebhookServer, error) {
	endpoint, err := cp.webhookEndpoint(component)
	if err != nil {
		return WebhookServer{}, err
	}
	return WebhookServer{Port: endpoint.port, CertDir: endpoint.certDir, CA: endpoint.ca}, nil
}

// InstallWebhooks installs admission webhook configurations. Their webhooks, which name a Service, are those of a component, whatever the
// Service: see WebhookServer. They are in force before the component runs, and until it does, they refuse everything.
func (cp *ControlPlane) InstallWebhooks(ctx context.Context, component string, configurations ...client.Object) error {
	endpoint, err := cp.webhookEndpoint(component)
	if err != nil {
		return err
	}
	objects := make([]unstructured.Unstructured, len(configurations))
	for i, configuration := range configurations {
		if objects[i].Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(configuration); err != nil {
			return fmt.Errorf("cannot convert the webhook configuration %s: %w", configuration.GetName(), err)
		}
	}
	webhooks, err := endpoint.admission(objects, everyService)
	if err != nil {
		return err
	}
	return apply(ctx, cp.Admin(), webhooks)
}

// url returns the address that replaces a Service's path.
func (w *webhookEndpoint) url(servicePath *string) *string {
	url := "https://" + address(localhost, w.port)
	if servicePath != nil {
		url += path.Clean("/" + *servicePath)
	}
	return &url
}

// services says which Services lead to an endpoint.
type services func(namespace, name string) bool

func everyService(string, string) bool { return true }

// rewireCRDs points the conversion webhooks of crds that are behind the given services to this endpoint, and returns the CRDs that have
// one.
func (w *webhookEndpoint) rewireCRDs(
	crds []*apiextensionsv1.CustomResourceDefinition, behind services,
) []*apiextensionsv1.CustomResourceDefinition {
	var rewired []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		conversion := crd.Spec.Conversion
		if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig.Service == nil {
			continue
		}
		if service := conversion.Webhook.ClientConfig.Service; !behind(service.Namespace, service.Name) {
			continue
		}
		conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{
			URL: w.url(conversion.Webhook.ClientConfig.Service.Path), CABundle: w.ca,
		}
		rewired = append(rewired, crd)
	}
	return rewired
}

// admission returns the admission webhook configurations among objects. Those of their webhooks that are behind the given services point
// to this endpoint.
func (w *webhookEndpoint) admission(objects []unstructured.Unstructured, behind services) ([]unstructured.Unstructured, error) {
	var rewired []unstructured.Unstructured
	for _, object := range ofKind(objects, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") {
		typed, err := w.rewireAdmission(object, behind)
		if err != nil {
			return nil, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, err
		}
		rewired = append(rewired, unstructured.Unstructured{Object: content})
	}
	return rewired, nil
}

func (w *webhookEndpoint) rewireAdmission(object unstructured.Unstructured, behind services) (any, error) {
	if object.GetKind() == "MutatingWebhookConfiguration" {
		typed := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := fromUnstructured(object, typed); err != nil {
			return nil, err
		}
		for i := range typed.Webhooks {
			w.rewireClient(&typed.Webhooks[i].ClientConfig, &typed.Webhooks[i].TimeoutSeconds, behind)
		}
		return typed, nil
	}
	typed := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := fromUnstructured(object, typed); err != nil {
		return nil, err
	}
	for i := range typed.Webhooks {
		w.rewireClient(&typed.Webhooks[i].ClientConfig, &typed.Webhooks[i].TimeoutSeconds, behind)
	}
	return typed, nil
}

// rewireClient points a webhook to this endpoint, with a longer timeout, if it is behind the given services.
func (w *webhookEndpoint) rewireClient(config *admissionregistrationv1.WebhookClientConfig, timeoutSeconds **int32, behind services) {
	if config.Service == nil || !behind(config.Service.Namespace, config.Service.Name) {
		return
	}
	*config = admissionregistrationv1.WebhookClientConfig{URL: w.url(config.Service.Path), CABundle: w.ca}
	*timeoutSeconds = ptr.To[int32](webhookTimeoutSeconds)
}
