// SPDX-License-Identifier: Apache-2.0

// Package webhook refuses what the CRDs' own rules cannot see: what OpenshiftAssistedConfigs say beyond single fields.
package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-openshiftassistedconfig,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,versions=v1beta1,name=validation.openshiftassistedconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-openshiftassistedconfigtemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigtemplates,versions=v1beta1,name=validation.openshiftassistedconfigtemplate.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// Setup adds the webhooks to the manager.
func Setup(mgr ctrl.Manager) error {
	if err := ctrl.NewWebhookManagedBy(mgr, &bootstrapv1.OpenshiftAssistedConfig{}).WithValidator(configValidator{}).Complete(); err != nil {
		return fmt.Errorf("set up the webhook of OpenshiftAssistedConfig: %w", err)
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &bootstrapv1.OpenshiftAssistedConfigTemplate{}).
		WithValidator(templateValidator{}).
		Complete(); err != nil {
		return fmt.Errorf("set up the webhook of OpenshiftAssistedConfigTemplate: %w", err)
	}
	return nil
}

type configValidator struct{}

// ValidateCreate refuses configs that could never work.
func (configValidator) ValidateCreate(_ context.Context, config *bootstrapv1.OpenshiftAssistedConfig) (admission.Warnings, error) {
	return nil, invalid("OpenshiftAssistedConfig", config.Name, validateConfig(config))
}

// ValidateUpdate refuses changes after which a config could never work, and those that come too late. Those come too late for a config that
// is being deleted as well: as long as its Machine lives, its host is worked on. Its finalizer can always go.
func (configValidator) ValidateUpdate(_ context.Context, old, config *bootstrapv1.OpenshiftAssistedConfig) (admission.Warnings, error) {
	errs := frozen(old, config)
	if config.DeletionTimestamp.IsZero() {
		errs = append(errs, validation.Ratchet(validateConfig(old), validateConfig(config))...)
	}
	return nil, invalid("OpenshiftAssistedConfig", config.Name, errs)
}

// ValidateDelete allows every deletion.
func (configValidator) ValidateDelete(context.Context, *bootstrapv1.OpenshiftAssistedConfig) (admission.Warnings, error) {
	return nil, nil
}

func validateConfig(config *bootstrapv1.OpenshiftAssistedConfig) field.ErrorList {
	errs := validation.Config(config.Spec, field.NewPath("spec"))
	if config.Spec.NodeRegistration.Name != bootstrapv1.NodeNameBareMetalHost {
		// A config is named as its Machine, whose name the Node gets.
		errs = append(errs, validation.Hostname(config.Name, field.NewPath("metadata", "name"))...)
	}
	return errs
}

type templateValidator struct{}

// ValidateCreate refuses templates whose configs would be refused.
func (templateValidator) ValidateCreate(
	_ context.Context, template *bootstrapv1.OpenshiftAssistedConfigTemplate,
) (admission.Warnings, error) {
	return nil, invalid("OpenshiftAssistedConfigTemplate", template.Name, validateTemplate(template))
}

// ValidateUpdate refuses changes after which the configs of a template would be refused. Nothing is immutable (CONTRACT BOOT-40).
func (templateValidator) ValidateUpdate(
	_ context.Context, old, template *bootstrapv1.OpenshiftAssistedConfigTemplate,
) (admission.Warnings, error) {
	if !template.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return nil, invalid(
		"OpenshiftAssistedConfigTemplate", template.Name, validation.Ratchet(validateTemplate(old), validateTemplate(template)),
	)
}

// ValidateDelete allows every deletion.
func (templateValidator) ValidateDelete(context.Context, *bootstrapv1.OpenshiftAssistedConfigTemplate) (admission.Warnings, error) {
	return nil, nil
}

func validateTemplate(template *bootstrapv1.OpenshiftAssistedConfigTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := validation.TemplateMetadata(template.Spec.Template.ObjectMeta, path.Child("metadata"))
	return append(errs, validation.Config(template.Spec.Template.Spec, path.Child("spec"))...)
}

func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(bootstrapv1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}
