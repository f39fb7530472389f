// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

func TestArchitectureCheck(t *testing.T) {
	const own = "registry.example.com/release:1"
	mixed := map[string]bootstrapv1.CPUArchitecture{"cp-0": "x86_64", "w-1": "s390x", "w-0": "aarch64"}
	of := func(image string, architectures ...string) controlplanev1.ReleaseStatus {
		return controlplanev1.ReleaseStatus{Image: image, Architectures: architectures}
	}
	for _, tt := range []struct {
		name     string
		change   func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)
		resolved controlplanev1.ReleaseStatus
		hosts    map[string]bootstrapv1.CPUArchitecture
		want     string
	}{
		{name: "the public image, of which no registry was asked", hosts: mixed,
			want: "Image quay.io/openshift-release-dev/ocp-release:4.20.4-x86_64 is for x86_64, and the host of Machine w-0 is to be aarch64"},
		{name: "the public image of the hosts' architecture", hosts: map[string]bootstrapv1.CPUArchitecture{"cp-0": "x86_64"}},
		{name: "the public image of another architecture", hosts: map[string]bootstrapv1.CPUArchitecture{"cp-0": "aarch64", "w-0": "x86_64"},
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
				s.OpenshiftAssistedConfigSpec.CPUArchitecture = "aarch64"
			},
			want: "ocp-release:4.20.4-aarch64 is for aarch64, and the host of Machine w-0 is to be x86_64"},
		{name: "an image for all", hosts: mixed, resolved: of(own, "aarch64", "ppc64le", "s390x", "x86_64"),
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = own }},
		{name: "an image for some", hosts: mixed, resolved: of(own, "aarch64", "x86_64"),
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = own },
			want: "is for aarch64, x86_64, and the host of Machine w-1 is to be s390x: hosts of several architectures need a release image for " +
				"all of them from the first installation on, such as quay.io/openshift-release-dev/ocp-release:4.20.4-multi in spec.release.image"},
		{name: "an image that nobody knows", hosts: mixed,
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = own }},
		{name: "an image that does not tell", hosts: mixed, resolved: of(own),
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = own }},
		{name: "another image is known", hosts: mixed, resolved: of("registry.example.com/release:0", "x86_64"),
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = own }},
		{name: "a ClusterImageSet", hosts: mixed,
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.ImageSetRef.Name = "ocp" }},
		{name: "OKD", hosts: mixed,
			change: func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.DistributionVersion = "4.20.0-okd-scos.1" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			check := ArchitectureCheck{Resolved: tt.resolved, Hosts: tt.hosts}
			check.Spec.DistributionVersion = "4.20.4"
			if tt.change != nil {
				tt.change(&check.Spec)
			}
			if tt.want == "" {
				g.Expect(check.Problem()).To(BeEmpty())
				return
			}
			g.Expect(check.Problem()).To(ContainSubstring(tt.want))
		})
	}
}
