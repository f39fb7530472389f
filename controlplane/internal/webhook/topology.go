// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

// releaseOfFive is the first release with 4 or 5 control-plane hosts.
var releaseOfFive = semver.MustParse("4.18.0-0")

// releases of two-node clusters, and those before which they are a technology preview.
var (
	releaseOfArbiterPreview = semver.MustParse("4.19.0-0")
	releaseOfArbiter        = semver.MustParse("4.20.0-0")
	releaseOfFencingPreview = semver.MustParse("4.20.0-0")
	releaseOfFencing        = semver.MustParse("4.22.0-0")
)

// validateTwoNode checks that a release can be installed on two control-plane hosts.
func validateTwoNode(spec controlplanev1.OpenshiftAssistedControlPlaneSpec, release semver.Version, path *field.Path) field.ErrorList {
	twoNode, first, supported := spec.Install.TwoNode, releaseOfArbiterPreview, releaseOfArbiter
	switch twoNode {
	case "":
		return nil
	case controlplanev1.TwoNodeFencing:
		first, supported = releaseOfFencingPreview, releaseOfFencing
	}
	switch {
	case release.LT(first):
		return field.ErrorList{
			field.Invalid(path, twoNode, fmt.Sprintf("release %s has no two-node clusters of this kind: they need release %d.%d or newer",
				spec.DistributionVersion, first.Major, first.Minor)),
		}
	case release.LT(supported) && spec.Install.FeatureSet == "":
		return field.ErrorList{field.Invalid(path, twoNode, fmt.Sprintf("is a technology preview in release %s: it needs install.featureSet "+
			"TechPreviewNoUpgrade, with which the cluster can never be upgraded, or release %d.%d or newer",
			spec.DistributionVersion, supported.Major, supported.Minor))}
	}
	return nil
}

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
	strategy := spec.Rollout.Strategy
	if surge := ptr.Deref(strategy.RollingUpdate.MaxSurge, 0); surge > 0 && release.LT(releaseOfFive) {
		errs = append(errs, field.Invalid(
			path.Child("rollout", "strategy", "rollingUpdate", "maxSurge"),
			surge,
			fmt.Sprintf(
				"release %s takes 3 control-plane hosts and no fourth meanwhile: that needs release 4.18 or newer",
				spec.DistributionVersion,
			),
		))
	}
	errs = append(errs, validateTwoNode(spec, release, path.Child("install", "twoNode"))...)
	_, problems := render.Capabilities(spec, path.Child("install"))
	return append(errs, problems...)
}

// validateTimeSources checks that the servers of the cluster do not contend with those of its hosts, which assisted-service refuses.
func validateTimeSources(
	install controlplanev1.InstallSpec, config bootstrapv1.OpenshiftAssistedConfigSpec, path *field.Path,
) field.ErrorList {
	if len(install.NTPSources) == 0 || len(config.AdditionalNTPSources) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("install", "ntpSources"),
		"replaces the time servers of hosts: must not be set together with openshiftAssistedConfigSpec.additionalNTPSources")}
}
