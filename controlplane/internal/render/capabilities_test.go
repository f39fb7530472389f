// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

// specOf is a control plane of a release with changes.
func specOf(release string, change func(*controlplanev1.InstallSpec)) controlplanev1.OpenshiftAssistedControlPlaneSpec {
	spec := controlPlane(3).Spec
	spec.DistributionVersion = release
	if change != nil {
		change(&spec.Install)
	}
	return spec
}

// capabilitiesIn decodes what the annotation says.
func capabilitiesIn(t *testing.T, spec controlplanev1.OpenshiftAssistedControlPlaneSpec) configv1.ClusterVersionCapabilitiesSpec {
	t.Helper()
	value, err := render.InstallConfigOverrides(spec)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Capabilities configv1.ClusterVersionCapabilitiesSpec `json:"capabilities"`
	}
	if err := json.Unmarshal([]byte(value), &got); err != nil {
		t.Fatal(err)
	}
	return got.Capabilities
}

func TestInstallConfigOverrides(t *testing.T) {
	tests := []struct {
		release string
		set     configv1.ClusterVersionCapabilitySet
	}{
		{release: "4.17.0", set: configv1.ClusterVersionCapabilitySet4_17},
		{release: "4.17.0-rc.1", set: configv1.ClusterVersionCapabilitySet4_17},
		{release: "4.18.3", set: configv1.ClusterVersionCapabilitySet4_18}, {release: "4.19.1", set: configv1.ClusterVersionCapabilitySetCurrent},
		{release: "4.20.4", set: configv1.ClusterVersionCapabilitySetCurrent},
		{release: "4.21.0-rc.2", set: configv1.ClusterVersionCapabilitySetCurrent},
		{release: "5.0.1", set: configv1.ClusterVersionCapabilitySetCurrent},
	}
	left := []configv1.ClusterVersionCapability{
		configv1.ClusterVersionCapabilityMachineAPI, configv1.ClusterVersionCapabilityOpenShiftSamples,
		configv1.ClusterVersionCapabilityCloudControllerManager, configv1.ClusterVersionCapabilityDeploymentConfig,
	}
	for _, tt := range tests {
		t.Run(tt.release, func(t *testing.T) {
			got := capabilitiesIn(t, specOf(tt.release, nil))
			if got.BaselineCapabilitySet != configv1.ClusterVersionCapabilitySetNone {
				t.Errorf("baseline is %q", got.BaselineCapabilitySet)
			}
			for _, known := range configv1.ClusterVersionCapabilitySets[tt.set] {
				enabled := slices.Contains(got.AdditionalEnabledCapabilities, known)
				if want := !slices.Contains(left, known); enabled != want {
					t.Errorf("capability %s: enabled %t, want %t", known, enabled, want)
				}
			}
			for _, enabled := range got.AdditionalEnabledCapabilities {
				if !slices.Contains(configv1.ClusterVersionCapabilitySets[tt.set], enabled) {
					t.Errorf("release %s does not know capability %s", tt.release, enabled)
				}
			}
		})
	}
}

// TestBaselinesWithoutMachineAPI: no baseline brings it on platform BareMetal, in any release (DESIGN D7).
func TestBaselinesWithoutMachineAPI(t *testing.T) {
	for _, release := range []string{"4.17.9", "4.18.9", "4.19.9", "4.20.9", "4.21.0", "5.0.1"} {
		for set := range configv1.ClusterVersionCapabilitySets {
			if release == "4.17.9" && set == configv1.ClusterVersionCapabilitySet4_18 {
				continue // Refused, see TestInstallConfigOverridesRefused.
			}
			t.Run(release+" "+string(set), func(t *testing.T) { testBaseline(t, release, set) })
		}
	}
}

func testBaseline(t *testing.T, release string, set configv1.ClusterVersionCapabilitySet) {
	t.Helper()
	g := NewWithT(t)
	got := capabilitiesIn(t, specOf(release, func(i *controlplanev1.InstallSpec) {
		i.Capabilities = controlplanev1.CapabilitiesSpec{Baseline: string(set), Additional: []string{"OperatorLifecycleManager"}}
	}))
	enabled := got.AdditionalEnabledCapabilities
	g.Expect(got.BaselineCapabilitySet).To(Equal(configv1.ClusterVersionCapabilitySetNone))
	g.Expect(enabled).To(ContainElements(configv1.ClusterVersionCapabilityBaremetal, configv1.ClusterVersionCapabilityIngress))
	g.Expect(enabled).NotTo(ContainElement(configv1.ClusterVersionCapabilityMachineAPI))
	for _, capability := range configv1.ClusterVersionCapabilitySets[set] {
		unknown := release == "4.17.9" && capability == configv1.ClusterVersionCapabilityOperatorLifecycleManagerV1
		if capability != configv1.ClusterVersionCapabilityMachineAPI && !unknown {
			g.Expect(enabled).To(ContainElement(capability))
		}
	}
}

func TestCapabilitiesElsewhere(t *testing.T) {
	tests := []struct {
		name   string
		change func(*controlplanev1.InstallSpec)
		want   string
	}{
		{"nothing is asked for", func(i *controlplanev1.InstallSpec) { i.Platform = "None" }, ``},
		{"some beside the release's", func(i *controlplanev1.InstallSpec) {
			i.Platform, i.Capabilities.Additional = "None", []string{"MachineAPI"}
		}, `{"capabilities":{"baselineCapabilitySet":"vCurrent"}}`},
		{"none but what has to be", func(i *controlplanev1.InstallSpec) { i.Platform, i.Capabilities.Baseline = "None", "None" },
			`{"capabilities":{"baselineCapabilitySet":"None","additionalEnabledCapabilities":["Ingress"]}}`},
		{"none with a cloud controller manager", func(i *controlplanev1.InstallSpec) {
			i.Platform, i.Capabilities.Baseline = "External", "None"
			i.External.CloudControllerManager = controlplanev1.CloudControllerManagerExternal
		}, `{"capabilities":{"baselineCapabilitySet":"None",` +
			`"additionalEnabledCapabilities":["Ingress","CloudCredential","CloudControllerManager"]}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(render.InstallConfigOverrides(specOf("4.20.4", tt.change))).To(Equal(tt.want))
		})
	}
}

func TestInstallConfigOverridesRefused(t *testing.T) {
	for _, release := range []string{"4.16.9", "latest", ""} {
		if value, err := render.InstallConfigOverrides(specOf(release, nil)); err == nil {
			t.Errorf("release %q was accepted: %s", release, value)
		}
	}
	tests := []struct {
		name, release string
		asked         controlplanev1.CapabilitiesSpec
		want          string
	}{
		{
			"MachineAPI", "4.20.4", controlplanev1.CapabilitiesSpec{Additional: []string{"NodeTuning", "MachineAPI"}},
			"additional[1]: Forbidden: MachineAPI cannot",
		},
		{"a newer baseline", "4.17.3", controlplanev1.CapabilitiesSpec{Baseline: "v4.18"}, "must be v4.17 or older"},
		{
			"a newer capability", "4.17.3", controlplanev1.CapabilitiesSpec{Additional: []string{"OperatorLifecycleManagerV1"}},
			"releases before 4.18",
		},
		{"a dependency", "4.20.4", controlplanev1.CapabilitiesSpec{Baseline: "v4.11"}, "needs OperatorLifecycleManager"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := render.InstallConfigOverrides(specOf(tt.release, func(i *controlplanev1.InstallSpec) { i.Capabilities = tt.asked }))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

// TestMergedOverrides: what fields and the user's object say is one object, in one order.
func TestMergedOverrides(t *testing.T) {
	spec := specOf("4.20.4", func(i *controlplanev1.InstallSpec) {
		i.Platform, i.FeatureSet, i.FIPS, i.CPUPartitioning = "None", "CustomNoUpgrade", new(true), "AllNodes"
		i.ConfigOverrides = runtime.RawExtension{
			Raw: []byte(`{"publish":"Internal","featureGates":["A=true"],"controlPlane":{"x":12345678901234567890}}`),
		}
	})
	const want = `{"controlPlane":{"x":12345678901234567890},"cpuPartitioningMode":"AllNodes",` +
		`"featureGates":["A=true"],"featureSet":"CustomNoUpgrade","fips":true,"publish":"Internal"}`
	for range 20 {
		NewWithT(t).Expect(render.InstallConfigOverrides(spec)).To(Equal(want))
	}
}

func TestOverrideProblems(t *testing.T) {
	tests := []struct{ name, overrides, want string }{
		{"nothing", "", ""}, {"the stream of the operating system", `{"osImageStream":"rhel-9"}`, ""},
		{"a field of the hosts", `{"publish":"Internal","controlPlane":{"architecture":1}}`, "configOverrides.controlPlane.architecture"},
		{"a field of ours", `{"networking":{}}`, "install.configOverrides.networking: Forbidden: must not be overridden: use install.networking"},
		{"in another case", `{"Platform":{}}`, "configOverrides.Platform"},
		{"a nested one", `{"controlPlane":{"Replicas":5}}`, "use spec.replicas"}, {"a list", `["a"]`, "must be an object"},
		{"too much", `{"a":"` + string(make([]byte, 70000)) + `"}`, "no more than 65536 bytes are read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			errs := render.OverrideProblems(
				controlplanev1.InstallSpec{ConfigOverrides: runtime.RawExtension{Raw: []byte(tt.overrides)}},
				field.NewPath("install", "configOverrides"),
			)
			if tt.want == "" {
				NewWithT(t).Expect(errs).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(errs.ToAggregate()).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}
