// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// capabilitiesSince lists what an installed cluster gets, by the first release that knows it: everything of openshift/api's sets but
// MachineAPI, which would write a provider ID of its own into Nodes (DESIGN D7), DeploymentConfig, which is deprecated since 4.14, and
// openshift-samples and CloudControllerManager, which mean nothing here. The installer insists on baremetal for the platform, on Ingress,
// and on OperatorLifecycleManager with marketplace.
var capabilitiesSince = []struct {
	release      string
	capabilities []configv1.ClusterVersionCapability
}{
	{release: "4.17.0-0", capabilities: []configv1.ClusterVersionCapability{
		configv1.ClusterVersionCapabilityBuild, configv1.ClusterVersionCapabilityCSISnapshot, configv1.ClusterVersionCapabilityCloudCredential,
		configv1.ClusterVersionCapabilityConsole, configv1.ClusterVersionCapabilityImageRegistry, configv1.ClusterVersionCapabilityIngress,
		configv1.ClusterVersionCapabilityInsights, configv1.ClusterVersionCapabilityNodeTuning,
		configv1.ClusterVersionCapabilityOperatorLifecycleManager, configv1.ClusterVersionCapabilityStorage,
		configv1.ClusterVersionCapabilityBaremetal, configv1.ClusterVersionCapabilityMarketplace,
	}},
	{release: "4.18.0-0", capabilities: []configv1.ClusterVersionCapability{
		configv1.ClusterVersionCapabilityOperatorLifecycleManagerV1,
	}},
}

// leftOut are capabilities that a cluster gets only when the user asks for a baseline that has them.
var leftOut = []configv1.ClusterVersionCapability{
	configv1.ClusterVersionCapabilityOpenShiftSamples, configv1.ClusterVersionCapabilityCloudControllerManager,
	configv1.ClusterVersionCapabilityDeploymentConfig,
}

// Capabilities are those of the install-config, nil for the release's own. On platform BareMetal there is no baseline, because all but None
// have MachineAPI: what the baseline has is listed instead (DESIGN D7). path is that of install.
func Capabilities(
	spec controlplanev1.OpenshiftAssistedControlPlaneSpec, path *field.Path,
) (*configv1.ClusterVersionCapabilitiesSpec, field.ErrorList) {
	platform, asked := view.PlatformOf(spec), spec.Install.Capabilities
	set := configv1.ClusterVersionCapabilitySet(cmp.Or(asked.Baseline, string(configv1.ClusterVersionCapabilitySetCurrent)))
	isSet := asked.Baseline != "" || len(asked.Additional) > 0
	if platform != controlplanev1.PlatformBareMetal && !isSet {
		return nil, nil
	}
	release, err := semver.Parse(spec.DistributionVersion)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "distributionVersion"), spec.DistributionVersion, err.Error())}
	}
	known := capabilitiesOf(release)
	if platform == controlplanev1.PlatformBareMetal && len(known) == 0 {
		return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "distributionVersion"), spec.DistributionVersion,
			"platform BareMetal needs release 4.17 or newer: use a newer release or platform None")}
	}
	errs := capabilityProblems(asked, platform, release, path.Child("capabilities"))
	base := configv1.ClusterVersionCapabilitySets[set]
	if set == configv1.ClusterVersionCapabilitySetCurrent {
		base = slices.Concat(known, leftOut, []configv1.ClusterVersionCapability{configv1.ClusterVersionCapabilityMachineAPI})
	}
	if !isSet {
		base = known
	}
	additional := without(union(base, additionalOf(asked), required(spec, platform)), configv1.ClusterVersionCapabilityMachineAPI)
	capabilities := &configv1.ClusterVersionCapabilitiesSpec{
		BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone, AdditionalEnabledCapabilities: additional,
	}
	if platform != controlplanev1.PlatformBareMetal {
		capabilities.BaselineCapabilitySet = set
		capabilities.AdditionalEnabledCapabilities = without(union(additionalOf(asked), required(spec, platform)), base...)
	}
	enabled := union(base, capabilities.AdditionalEnabledCapabilities)
	if slices.Contains(enabled, configv1.ClusterVersionCapabilityMarketplace) &&
		!slices.Contains(enabled, configv1.ClusterVersionCapabilityOperatorLifecycleManager) {
		errs = append(errs, field.Invalid(path.Child("capabilities", "additional"), asked.Additional,
			"capability marketplace, which the baseline has or which is added, needs OperatorLifecycleManager: add it"))
	}
	return capabilities, errs
}

// capabilityProblems checks what is asked for against release and platform.
func capabilityProblems(
	asked controlplanev1.CapabilitiesSpec, platform controlplanev1.Platform, release semver.Version, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	var minor uint64
	if _, err := fmt.Sscanf(asked.Baseline, "v4.%d", &minor); err == nil && release.Major == 4 && minor > release.Minor {
		errs = append(
			errs,
			field.Invalid(
				path.Child("baseline"), asked.Baseline,
				fmt.Sprintf("release %s does not know it: must be v4.%d or older, or vCurrent", release, release.Minor),
			),
		)
	}
	for i, name := range asked.Additional {
		path := path.Child("additional").Index(i)
		if platform == controlplanev1.PlatformBareMetal &&
			configv1.ClusterVersionCapability(name) == configv1.ClusterVersionCapabilityMachineAPI {
			errs = append(
				errs,
				field.Forbidden(
					path, "MachineAPI cannot be installed on platform BareMetal: it would give Nodes a provider ID that Cluster API does not know",
				),
			)
		}
		for _, since := range capabilitiesSince {
			if release.LT(semver.MustParse(since.release)) && slices.Contains(since.capabilities, configv1.ClusterVersionCapability(name)) {
				errs = append(errs, field.Invalid(path, name, "is not known to releases before "+strings.TrimSuffix(since.release, ".0-0")))
			}
		}
	}
	return errs
}

// capabilitiesOf are the capabilities that a release gets by default.
func capabilitiesOf(release semver.Version) []configv1.ClusterVersionCapability {
	var known []configv1.ClusterVersionCapability
	for _, since := range capabilitiesSince {
		if release.GE(semver.MustParse(since.release)) {
			known = append(known, since.capabilities...)
		}
	}
	return known
}

// required are the capabilities that the installer insists on for a platform.
func required(spec controlplanev1.OpenshiftAssistedControlPlaneSpec, platform controlplanev1.Platform) []configv1.ClusterVersionCapability {
	capabilities := []configv1.ClusterVersionCapability{configv1.ClusterVersionCapabilityIngress}
	switch platform {
	case controlplanev1.PlatformBareMetal:
		capabilities = append(capabilities, configv1.ClusterVersionCapabilityBaremetal)
	case controlplanev1.PlatformExternal:
		capabilities = append(capabilities, configv1.ClusterVersionCapabilityCloudCredential)
	}
	if spec.Install.External.CloudControllerManager == controlplanev1.CloudControllerManagerExternal {
		capabilities = append(capabilities, configv1.ClusterVersionCapabilityCloudControllerManager)
	}
	return capabilities
}

func additionalOf(asked controlplanev1.CapabilitiesSpec) []configv1.ClusterVersionCapability {
	capabilities := make([]configv1.ClusterVersionCapability, 0, len(asked.Additional))
	for _, name := range asked.Additional {
		capabilities = append(capabilities, configv1.ClusterVersionCapability(name))
	}
	return capabilities
}

// union lists every capability once, in the order of its first place.
func union(lists ...[]configv1.ClusterVersionCapability) []configv1.ClusterVersionCapability {
	var all []configv1.ClusterVersionCapability
	for _, capability := range slices.Concat(lists...) {
		if !slices.Contains(all, capability) {
			all = append(all, capability)
		}
	}
	return all
}

func without(list []configv1.ClusterVersionCapability, out ...configv1.ClusterVersionCapability) []configv1.ClusterVersionCapability {
	return slices.DeleteFunc(slices.Clone(list), func(c configv1.ClusterVersionCapability) bool { return slices.Contains(out, c) })
}
