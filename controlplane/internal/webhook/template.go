// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// ControlPlaneTemplate validates OpenshiftAssistedControlPlaneTemplates, so that a ClusterClass fails when it is written and not when it is
// used.
type ControlPlaneTemplate struct{}

// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-cluster-x-k8s-io-v1beta1-openshiftassistedcontrolplanetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanetemplates,versions=v1beta1,name=validation.openshiftassistedcontrolplanetemplate.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var _ admission.Validator[*controlplanev1.OpenshiftAssistedControlPlaneTemplate] = &ControlPlaneTemplate{}

// ValidateCreate refuses a template from which no working control plane can be made.
func (*ControlPlaneTemplate) ValidateCreate(
	_ context.Context, t *controlplanev1.OpenshiftAssistedControlPlaneTemplate,
) (admission.Warnings, error) {
	return nil, refuseTemplate(t, validateTemplate(t))
}

// ValidateUpdate refuses a change after which no working control plane can be made from a template. While it is being deleted every
// update is accepted.
func (*ControlPlaneTemplate) ValidateUpdate(
	_ context.Context, former, t *controlplanev1.OpenshiftAssistedControlPlaneTemplate,
) (admission.Warnings, error) {
	if !t.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return nil, refuseTemplate(t, validation.Ratchet(validateTemplate(former), validateTemplate(t)))
}

// ValidateDelete refuses nothing.
func (*ControlPlaneTemplate) ValidateDelete(
	context.Context, *controlplanev1.OpenshiftAssistedControlPlaneTemplate,
) (admission.Warnings, error) {
	return nil, nil
}

func validateTemplate(t *controlplanev1.OpenshiftAssistedControlPlaneTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	spec := t.Spec.Template.Spec
	errs := validation.TemplateMetadata(t.Spec.Template.ObjectMeta, path.Child("metadata"))
	errs = append(errs, validation.TemplateMetadata(spec.MachineTemplate.ObjectMeta, path.Child("spec", "machineTemplate", "metadata"))...)
	errs = append(errs, validateInstall(spec.Install, 0, path.Child("spec", "install"))...)
	errs = append(errs, validateTimeSources(spec.Install, spec.OpenshiftAssistedConfigSpec, path.Child("spec"))...)
	errs = append(errs, validation.ControlPlaneConfig(spec.OpenshiftAssistedConfigSpec, path.Child("spec", "openshiftAssistedConfigSpec"))...)
	return append(errs, validateTaints(spec.MachineTemplate.Spec.Taints, path.Child("spec", "machineTemplate", "spec", "taints"))...)
}

func refuseTemplate(t *controlplanev1.OpenshiftAssistedControlPlaneTemplate, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlaneTemplate").GroupKind(), t.Name, errs)
}
