// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

func TestReleaseImage(t *testing.T) {
	tests := []struct {
		name string
		set  func(*controlplanev1.OpenshiftAssistedControlPlaneSpec)
		want string
	}{
		{
			"the public image", func(*controlplanev1.OpenshiftAssistedControlPlaneSpec) {},
			"quay.io/openshift-release-dev/ocp-release:4.20.4-x86_64",
		},
		{"of another architecture", func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.OpenshiftAssistedConfigSpec.CPUArchitecture = "aarch64"
		}, "quay.io/openshift-release-dev/ocp-release:4.20.4-aarch64"},
		{"of OKD", func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.DistributionVersion = "4.20.0-okd-scos.1"
		}, "quay.io/okd/scos-release:4.20.0-okd-scos.1"},
		{"the user's", func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.Image = "r.example.com/x:1" }, "r.example.com/x:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cp := controlPlane()
			tt.set(&cp.Spec)
			if got := view.ReleaseImage(cp.Spec); got != tt.want {
				t.Errorf("ReleaseImage = %s, want %s", got, tt.want)
			}
		})
	}
}
