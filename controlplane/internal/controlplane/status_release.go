// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/release"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// setRelease writes what is known into status.
func setRelease(cp *controlplanev1.OpenshiftAssistedControlPlane, facts view.Release) {
	if cp.Status.Release.Image != facts.Image {
		cp.Status.Release = controlplanev1.ReleaseStatus{}
	}
	if found := facts.Answer.Release; found != nil {
		cp.Status.Release = controlplanev1.ReleaseStatus{
			Image: facts.Image, Digest: found.Digest, Version: found.Version, KubernetesVersion: found.KubernetesVersion,
			Architectures: architectureNames(found.Architectures),
		}
	}
}

// architectureNames are architectures as status has them.
func architectureNames(architectures []bootstrapv1.CPUArchitecture) []string {
	names := make([]string, 0, len(architectures))
	for _, architecture := range architectures {
		names = append(names, string(architecture))
	}
	return names
}

// architectureCheck compares the hosts of the Machines that exist with the release image.
func architectureCheck(v *view.View) plan.ArchitectureCheck {
	check := plan.ArchitectureCheck{
		Spec: v.ControlPlane.Spec, Resolved: v.ControlPlane.Status.Release, Hosts: map[string]bootstrapv1.CPUArchitecture{},
	}
	for machine, config := range v.Machines.Configs {
		check.Hosts[machine] = config.Spec.Architecture()
	}
	return check
}

func releaseCondition(cp *controlplanev1.OpenshiftAssistedControlPlane, facts view.Release) metav1.Condition {
	condition := metav1.Condition{Type: controlplanev1.ReleaseResolvedCondition, Status: metav1.ConditionUnknown}
	switch {
	case facts.Image == "":
		condition.Reason = controlplanev1.ReleaseResolutionSkippedReason
		condition.Message = fmt.Sprintf(
			"The release is that of ClusterImageSet %s: there is nothing to resolve", cp.Spec.Release.ImageSetRef.Name,
		)
	case cp.Status.Release.Image != "":
		condition.Status, condition.Reason = metav1.ConditionTrue, controlplanev1.ReleaseResolvedReason
	case facts.Off:
		condition.Reason = controlplanev1.ReleaseResolutionSkippedReason
		condition.Message = "The manager runs with --resolve-releases=false"
	case errors.Is(facts.Answer.Err, release.ErrManagementCluster):
		condition.Reason = controlplanev1.ReleaseResolvingReason
		condition.Message = fmt.Sprintf("Image %s is not asked for yet: %s", facts.Image, release.Explain(facts.Answer.Err))
	case facts.Answer.Err != nil:
		condition.Status, condition.Reason = metav1.ConditionFalse, controlplanev1.ReleaseNotResolvedReason
		condition.Message = fmt.Sprintf("Image %s: %s; the installation does not wait for it", facts.Image, release.Explain(facts.Answer.Err))
	default:
		condition.Reason = controlplanev1.ReleaseResolvingReason
		condition.Message = fmt.Sprintf("Asking the registry what %s is", facts.Image)
	}
	return condition
}
