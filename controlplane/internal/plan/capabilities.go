// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// installConfigOverrides is the part of the install-config that is overridden (ASSISTED 1.3).
type installConfigOverrides struct {
	Capabilities configv1.ClusterVersionCapabilitiesSpec `json:"capabilities"`
}

// capabilitiesSince lists what an installed cluster gets, by the first release that knows it: everything of openshift/api's sets but
// MachineAPI, which would write a provider ID of its own into Nodes (DESIGN D7), and openshift-samples and CloudControllerManager, which
// mean nothing here. The installer insists on baremetal for the platform, on Ingress, and on OperatorLifecycleManager with marketplace.
var capabilitiesSince = []struct {
	release      string
	capabilities []configv1.ClusterVersionCapability
}{
	{release: "4.17.0-0", capabilities: []configv1.ClusterVersionCapability{
		configv1.ClusterVersionCapabilityBuild,
		configv1.ClusterVersionCapabilityCSISnapshot,
		configv1.ClusterVersionCapabilityCloudCredential,
		configv1.ClusterVersionCapabilityConsole,
		configv1.ClusterVersionCapabilityDeploymentConfig,
		configv1.ClusterVersionCapabilityImageRegistry,
		configv1.ClusterVersionCapabilityIngress,
		configv1.ClusterVersionCapabilityInsights,
		configv1.ClusterVersionCapabilityNodeTuning,
		configv1.ClusterVersionCapabilityOperatorLifecycleManager,
		configv1.ClusterVersionCapabilityStorage,
		configv1.ClusterVersionCapabilityBaremetal,
		configv1.ClusterVersionCapabilityMarketplace,
	}},
	{release: "4.18.0-0", capabilities: []configv1.ClusterVersionCapability{
		configv1.ClusterVersionCapabilityOperatorLifecycleManagerV1,
	}},
}

// InstallConfigOverrides is the value of assisted-service's override annotation for a release on platform BareMetal: no baseline, and the
// capabilities that the release knows, without MachineAPI (DESIGN D7). It fails when the release is no version or older than 4.17.
func InstallConfigOverrides(distributionVersion string) (string, error) {
	release, err := semver.Parse(distributionVersion)
	if err != nil {
		return "", fmt.Errorf("parse spec.distributionVersion %q: %w", distributionVersion, err)
	}
	overrides := installConfigOverrides{Capabilities: configv1.ClusterVersionCapabilitiesSpec{
		BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone,
	}}
	for _, since := range capabilitiesSince {
		if release.GE(semver.MustParse(since.release)) {
			overrides.Capabilities.AdditionalEnabledCapabilities = append(overrides.Capabilities.AdditionalEnabledCapabilities, since.capabilities...)
		}
	}
	if len(overrides.Capabilities.AdditionalEnabledCapabilities) == 0 {
		return "", fmt.Errorf("platform BareMetal needs release 4.17 or newer, spec.distributionVersion is %s: use a newer release or platform None", distributionVersion)
	}
	value, err := json.Marshal(overrides)
	if err != nil {
		return "", fmt.Errorf("encode the install-config overrides: %w", err)
	}
	return string(value), nil
}
