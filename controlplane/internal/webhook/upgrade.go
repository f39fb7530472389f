// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

// validateUpgrade refuses releases that an installed cluster cannot be upgraded to: older ones, and those that are more than one minor
// version ahead of the one that it runs completely (DESIGN D28).
func validateUpgrade(former, cp *controlplanev1.OpenshiftAssistedControlPlane, spec *field.Path) field.ErrorList {
	wanted, path := cp.Spec.DistributionVersion, spec.Child("distributionVersion")
	if !installed(former) || wanted == former.Spec.DistributionVersion {
		return nil
	}
	running := cmp.Or(former.Status.DistributionVersion, former.Spec.DistributionVersion)
	switch plan.StepBetween(running, wanted) { // The CRD refuses what is no version.
	case plan.StepBack:
		return field.ErrorList{
			field.Forbidden(path, fmt.Sprintf("must not be older than the release that the cluster runs, which is %s", running)),
		}
	case plan.StepJump:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
			"must not be more than one minor version ahead of the release that the cluster runs, which is %s: upgrade it step by step, "+
				"to %s first", running, plan.NextMinors(running),
		))}
	}
	return nil
}
