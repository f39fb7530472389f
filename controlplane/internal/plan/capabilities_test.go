// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func TestInstallConfigOverrides(t *testing.T) {
	tests := []struct {
		release string
		set     configv1.ClusterVersionCapabilitySet
	}{
		{release: "4.17.0", set: configv1.ClusterVersionCapabilitySet4_17},
		{release: "4.17.0-rc.1", set: configv1.ClusterVersionCapabilitySet4_17},
		{release: "4.18.3", set: configv1.ClusterVersionCapabilitySet4_18},
		{release: "4.20.4", set: configv1.ClusterVersionCapabilitySetCurrent},
	}
	left := []configv1.ClusterVersionCapability{
		configv1.ClusterVersionCapabilityMachineAPI, configv1.ClusterVersionCapabilityOpenShiftSamples, configv1.ClusterVersionCapabilityCloudControllerManager,
	}
	for _, tt := range tests {
		t.Run(tt.release, func(t *testing.T) {
			value, err := plan.InstallConfigOverrides(tt.release)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Capabilities configv1.ClusterVersionCapabilitiesSpec `json:"capabilities"`
			}
			if err := json.Unmarshal([]byte(value), &got); err != nil {
				t.Fatal(err)
			}
			if got.Capabilities.BaselineCapabilitySet != configv1.ClusterVersionCapabilitySetNone {
				t.Errorf("baseline is %q", got.Capabilities.BaselineCapabilitySet)
			}
			for _, known := range configv1.ClusterVersionCapabilitySets[tt.set] {
				enabled := slices.Contains(got.Capabilities.AdditionalEnabledCapabilities, known)
				if want := !slices.Contains(left, known); enabled != want {
					t.Errorf("capability %s: enabled %t, want %t", known, enabled, want)
				}
			}
			for _, enabled := range got.Capabilities.AdditionalEnabledCapabilities {
				if !slices.Contains(configv1.ClusterVersionCapabilitySets[tt.set], enabled) {
					t.Errorf("release %s does not know capability %s", tt.release, enabled)
				}
			}
		})
	}
}

func TestInstallConfigOverridesRefused(t *testing.T) {
	for _, release := range []string{"4.16.9", "latest", ""} {
		if value, err := plan.InstallConfigOverrides(release); err == nil {
			t.Errorf("release %q was accepted: %s", release, value)
		}
	}
}
