// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

// releaseOfFive is the first release with 4 or 5 control-plane hosts.
var releaseOfFive = semver.MustParse("4.18.0-0")

// validateRelease checks what a release allows.
func validateRelease(spec controlplanev1.OpenshiftAssistedControlPlaneSpec, path *field.Path) field.ErrorList {
	release, err := semver.Parse(spec.DistributionVersion)
	if err != nil {
		return nil // The CRD refuses what is no version.
	}
	var errs field.ErrorList
	if replicas := ptr.Deref(spec.Replicas, 0); replicas > 3 && release.LT(releaseOfFive) {
		errs = append(errs, field.Invalid(path.Child("replicas"), replicas,
			fmt.Sprintf("release %s takes 1 or 3 control-plane hosts: 4 and 5 need release 4.18 or newer", spec.DistributionVersion)))
	}
	_, problems := plan.Capabilities(spec, path.Child("install"))
	return append(errs, problems...)
}

// validateTimeSources checks that the servers of the cluster do not contend with those of its hosts, which assisted-service refuses.
func validateTimeSources(spec controlplanev1.OpenshiftAssistedControlPlaneSpec, path *field.Path) field.ErrorList {
	if len(spec.Install.NTPSources) == 0 || len(spec.OpenshiftAssistedConfigSpec.AdditionalNTPSources) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("install", "ntpSources"),
		"replaces the time servers of hosts: must not be set together with openshiftAssistedConfigSpec.additionalNTPSources")}
}
