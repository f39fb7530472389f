// SPDX-License-Identifier: Apache-2.0

// Package webhook refuses what the CRDs' own rules cannot see: what OpenshiftAssistedConfigs say beyond single fields.
package webhook

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-openshiftassistedconfig,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,versions=v1beta1,name=validation.openshiftassistedconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-openshiftassistedconfigtemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigtemplates,versions=v1beta1,name=validation.openshiftassistedconfigtemplate.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// Setup adds the webhooks to the manager.
func Setup(mgr ctrl.Manager) error {
	if err := ctrl.NewWebhookManagedBy(mgr, &bootstrapv1.OpenshiftAssistedConfig{}).WithValidator(configValidator{}).Complete(); err != nil {
		return fmt.Errorf("set up the webhook of OpenshiftAssistedConfig: %w", err)
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &bootstrapv1.OpenshiftAssistedConfigTemplate{}).WithValidator(templateValidator{}).Complete(); err != nil {
		return fmt.Errorf("set up the webhook of OpenshiftAssistedConfigTemplate: %w", err)
	}
	return nil
}

type configValidator struct{}

// ValidateCreate refuses configs that could never work.
func (configValidator) ValidateCreate(_ context.Context, config *bootstrapv1.OpenshiftAssistedConfig) (admission.Warnings, error) {
	return nil, validateConfig(config)
}

// ValidateUpdate refuses configs that could never work. An object that is being deleted always passes, so that its finalizer can go.
func (configValidator) ValidateUpdate(_ context.Context, _, config *bootstrapv1.OpenshiftAssistedConfig) (admission.Warnings, error) {
	if !config.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return nil, validateConfig(config)
}

// ValidateDelete allows every deletion.
func (configValidator) ValidateDelete(context.Context, *bootstrapv1.OpenshiftAssistedConfig) (admission.Warnings, error) {
	return nil, nil
}

func validateConfig(config *bootstrapv1.OpenshiftAssistedConfig) error {
	return invalid("OpenshiftAssistedConfig", config.Name, ValidateSpec(config.Spec, field.NewPath("spec")))
}

type templateValidator struct{}

// ValidateCreate refuses templates whose configs would be refused.
func (templateValidator) ValidateCreate(_ context.Context, template *bootstrapv1.OpenshiftAssistedConfigTemplate) (admission.Warnings, error) {
	return nil, validateTemplate(template)
}

// ValidateUpdate refuses templates whose configs would be refused. Nothing is immutable (CONTRACT BOOT-40).
func (templateValidator) ValidateUpdate(_ context.Context, _, template *bootstrapv1.OpenshiftAssistedConfigTemplate) (admission.Warnings, error) {
	if !template.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return nil, validateTemplate(template)
}

// ValidateDelete allows every deletion.
func (templateValidator) ValidateDelete(context.Context, *bootstrapv1.OpenshiftAssistedConfigTemplate) (admission.Warnings, error) {
	return nil, nil
}

func validateTemplate(template *bootstrapv1.OpenshiftAssistedConfigTemplate) error {
	path := field.NewPath("spec", "template")
	errs := template.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	errs = append(errs, ValidateSpec(template.Spec.Template.Spec, path.Child("spec"))...)
	return invalid("OpenshiftAssistedConfigTemplate", template.Name, errs)
}

func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(bootstrapv1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}

// ValidateSpec checks what CEL cannot: certificates that parse and a label selector that compiles.
func ValidateSpec(spec bootstrapv1.OpenshiftAssistedConfigSpec, path *field.Path) field.ErrorList {
	errs := ValidateTrustBundle(spec.AdditionalTrustBundle, path.Child("additionalTrustBundle"))
	if spec.NMStateConfigSelector == nil {
		return errs
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.NMStateConfigSelector); err != nil {
		errs = append(errs, field.Invalid(path.Child("nmStateConfigSelector"), spec.NMStateConfigSelector, err.Error()))
	}
	return errs
}

// ValidateTrustBundle checks that a bundle is made of PEM certificates and nothing else.
func ValidateTrustBundle(bundle string, path *field.Path) field.ErrorList {
	if bundle == "" {
		return nil
	}
	rest := []byte(bundle)
	for count := 1; ; count++ {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return field.ErrorList{field.Invalid(path, fmt.Sprintf("PEM block %d", count), fmt.Sprintf("must hold PEM blocks of type CERTIFICATE only, block %d is of type %s", count, block.Type))}
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return field.ErrorList{field.Invalid(path, fmt.Sprintf("PEM block %d", count), fmt.Sprintf("must hold certificates, block %d is none: %v", count, err))}
		}
		rest = after
	}
	if len(rest) == len(bundle) {
		return field.ErrorList{field.Invalid(path, "no PEM block", "must hold PEM blocks of type CERTIFICATE")}
	}
	return nil
}

// ValidateHostname checks that a name can be a host's: Machine names become the names of Nodes (DESIGN D7).
func ValidateHostname(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, "becomes a host name: "+message))
	}
	return errs
}
