// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/validation"
)

// maxNameLength leaves room for the ordinal in Machine names, which become hostnames: "-" and up to two digits of 63 characters (DESIGN
// D7).
const maxNameLength = apivalidation.DNS1123LabelMaxLength - 3

// Setup adds the webhooks to a manager.
func Setup(mgr ctrl.Manager) error {
	err := ctrl.NewWebhookManagedBy(mgr, &controlplanev1.OpenshiftAssistedControlPlane{}).
		WithDefaulter(&ControlPlane{}).
		WithValidator(&ControlPlane{}).
		Complete()
	if err != nil {
		return fmt.Errorf("set up the webhooks of OpenshiftAssistedControlPlanes: %w", err)
	}
	err = ctrl.NewWebhookManagedBy(mgr, &controlplanev1.OpenshiftAssistedControlPlaneTemplate{}).
		WithValidator(&ControlPlaneTemplate{}).
		Complete()
	if err != nil {
		return fmt.Errorf("set up the webhook of OpenshiftAssistedControlPlaneTemplates: %w", err)
	}
	mgr.GetWebhookServer().Register(scalePath, &admission.Webhook{Handler: &Scale{Reader: mgr.GetAPIReader()}})
	return nil
}

// ControlPlane defaults and validates OpenshiftAssistedControlPlanes.
type ControlPlane struct{}

// +kubebuilder:webhook:verbs=create;update,path=/mutate-controlplane-cluster-x-k8s-io-v1beta1-openshiftassistedcontrolplane,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,versions=v1beta1,name=default.openshiftassistedcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-cluster-x-k8s-io-v1beta1-openshiftassistedcontrolplane,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,versions=v1beta1,name=validation.openshiftassistedcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var (
	_ admission.Defaulter[*controlplanev1.OpenshiftAssistedControlPlane] = &ControlPlane{}
	_ admission.Validator[*controlplanev1.OpenshiftAssistedControlPlane] = &ControlPlane{}
)

// Default adds the leading v of spec.version, which Cluster API allows to leave out (CONTRACT CP-9).
func (*ControlPlane) Default(_ context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane) error {
	if cp.Spec.Version != "" && !strings.HasPrefix(cp.Spec.Version, "v") {
		cp.Spec.Version = "v" + cp.Spec.Version
	}
	return nil
}

// ValidateCreate refuses a control plane that cannot work.
func (*ControlPlane) ValidateCreate(_ context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane) (admission.Warnings, error) {
	return nil, refuse(cp, validateControlPlane(cp))
}

// ValidateUpdate refuses a change after which a control plane cannot work, or that comes too late. While it is being deleted every
// update is accepted: otherwise its finalizer could not be removed.
func (*ControlPlane) ValidateUpdate(
	_ context.Context, former, cp *controlplanev1.OpenshiftAssistedControlPlane,
) (admission.Warnings, error) {
	if !cp.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	errs := validateWindows(former, cp, field.NewPath("spec"))
	errs = append(errs, validateUpgrade(former, cp, field.NewPath("spec"))...)
	errs = append(errs, validateAttemptChange(former, cp, field.NewPath("metadata", "annotations"))...)
	return nil, refuse(cp, append(errs, validation.Ratchet(validateControlPlane(former), validateControlPlane(cp))...))
}

// ValidateDelete refuses nothing.
func (*ControlPlane) ValidateDelete(context.Context, *controlplanev1.OpenshiftAssistedControlPlane) (admission.Warnings, error) {
	return nil, nil
}

func validateControlPlane(cp *controlplanev1.OpenshiftAssistedControlPlane) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateName(cp.Name, field.NewPath("metadata", "name"))
	errs = append(errs, validateAttempt(cp.Annotations, field.NewPath("metadata", "annotations"))...)
	errs = append(errs, validation.TemplateMetadata(cp.Spec.MachineTemplate.ObjectMeta, spec.Child("machineTemplate", "metadata"))...)
	errs = append(errs, validateInstall(cp.Spec.Install, ptr.Deref(cp.Spec.Replicas, 0), spec.Child("install"))...)
	errs = append(errs, validateRelease(cp.Spec, spec)...)
	errs = append(errs, validateTimeSources(cp.Spec.Install, cp.Spec.OpenshiftAssistedConfigSpec, spec)...)
	errs = append(errs, validation.ControlPlaneConfig(cp.Spec.OpenshiftAssistedConfigSpec, spec.Child("openshiftAssistedConfigSpec"))...)
	return append(errs, validateTaints(cp.Spec.MachineTemplate.Spec.Taints, spec.Child("machineTemplate", "spec", "taints"))...)
}

// validateName checks the prefix of Machine names, which become hostnames.
func validateName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range apivalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, "Machine names begin with it and become hostnames: "+problem))
	}
	if len(name) > maxNameLength {
		errs = append(
			errs,
			field.Invalid(
				path, name, fmt.Sprintf("must be no more than %d characters: Machine names begin with it and become hostnames", maxNameLength),
			),
		)
	}
	return errs
}

// validateAttempt checks the annotation that counts installations: objects of any other attempt than the one it names are removed.
func validateAttempt(annotations map[string]string, path *field.Path) field.ErrorList {
	value, ok := annotations[controlplanev1.InstallAttemptAnnotation]
	if !ok {
		return nil
	}
	if attempt, err := strconv.ParseInt(value, 10, 32); err != nil || attempt < 1 || strconv.FormatInt(attempt, 10) != value {
		return field.ErrorList{
			field.Invalid(
				path.Key(controlplanev1.InstallAttemptAnnotation), value, "must be the number of an installation: 1, 2, 3, …; leave it to the provider",
			),
		}
	}
	return nil
}

// validateAttemptChange keeps the number of the installation from going down: the objects of the cluster that is being installed, or is,
// would be those of another attempt.
func validateAttemptChange(former, cp *controlplanev1.OpenshiftAssistedControlPlane, path *field.Path) field.ErrorList {
	before, after := view.AttemptNumber(view.Attempt(former)), view.AttemptNumber(view.Attempt(cp))
	if after == 0 || after >= before {
		return nil // What is no number is refused as such.
	}
	return field.ErrorList{field.Forbidden(path.Key(controlplanev1.InstallAttemptAnnotation),
		fmt.Sprintf("must not go down from %d, nor be removed: the cluster of attempt %d would be deleted", before, before))}
}

func refuse(cp *controlplanev1.OpenshiftAssistedControlPlane, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlane").GroupKind(), cp.Name, errs)
}
