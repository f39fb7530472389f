// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

func TestFrozen(t *testing.T) {
	type spec = bootstrapv1.OpenshiftAssistedConfigSpec
	const always, recognised = "always", "recognised"
	tests := map[string]struct {
		change func(*spec)
		when   string
	}{
		"spec.boot.mode":                           {func(s *spec) { s.Boot.Mode = bootstrapv1.BootModeUserData }, always},
		"spec.boot.imageType":                      {func(s *spec) { s.Boot.ImageType = bootstrapv1.ImageTypeFull }, always},
		"spec.boot.osImageVersion":                 {func(s *spec) { s.Boot.OSImageVersion = "4.20" }, always},
		"spec.discovery.kernelArguments":           {func(s *spec) { s.Discovery.KernelArguments = []string{"quiet"} }, always},
		"spec.discovery.ignition":                  {func(s *spec) { s.Discovery.Ignition = "{}" }, always},
		"spec.ntpSources":                          {func(s *spec) { s.NTPSources = []string{"192.0.2.1"} }, always},
		"spec.additionalTrustBundleRef":            {func(s *spec) { s.AdditionalTrustBundleRef.Name = "ca" }, always},
		"spec.mirrorRegistryRef":                   {func(s *spec) { s.MirrorRegistryRef.Name = "mirrors" }, always},
		"spec.networkDiscoveryDelaySeconds":        {func(s *spec) { s.NetworkDiscoveryDelaySeconds = 5 }, always},
		"spec.nodeRegistration.machineConfigPool":  {func(s *spec) { s.NodeRegistration.MachineConfigPool = "infra" }, recognised},
		"spec.installation.kernelArguments":        {func(s *spec) { s.Installation.KernelArguments = []string{"quiet"} }, recognised},
		"spec.installation.deletedKernelArguments": {func(s *spec) { s.Installation.DeletedKernelArguments = []string{"quiet"} }, recognised},
		"spec.installation.ignition":               {func(s *spec) { s.Installation.Ignition = "{}" }, recognised},
	}
	for path, tt := range tests {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			before := &bootstrapv1.OpenshiftAssistedConfig{}
			after := before.DeepCopy()
			tt.change(&after.Spec)
			if tt.when == recognised {
				g.Expect(frozen(before, after)).To(BeEmpty())
				before.Annotations = map[string]string{bootstrapv1.AgentAnnotation: "agent"}
			}
			g.Expect(frozen(before, before)).To(BeEmpty())
			errs := frozen(before, after)
			g.Expect(errs).To(HaveLen(1))
			g.Expect(errs[0].Field).To(Equal(path))
			g.Expect(errs[0].Detail).To(ContainSubstring("replace the Machine"))
		})
	}
	g := NewWithT(t)
	before := &bootstrapv1.OpenshiftAssistedConfig{}
	after := before.DeepCopy()
	after.Spec.Boot.Mode = bootstrapv1.BootModeLiveISO
	g.Expect(frozen(before, after)).To(BeEmpty(), "it is the default")
	after.Spec.Boot.Mode = bootstrapv1.BootModeUserData
	after.DeletionTimestamp = ptr.To(metav1.Now())
	_, err := configValidator{}.ValidateUpdate(t.Context(), before, after)
	g.Expect(err).NotTo(HaveOccurred(), "its finalizer has to go")
}
