// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

func TestContractEndpoint(t *testing.T) {
	t.Run("CP-6 a control-plane endpoint that is none of the API VIPs is recognised", testServesEndpoint)
}

func testServesEndpoint(t *testing.T) {
	tests := []struct {
		name string
		vips []string
		host string
		want bool
	}{
		{"the first address", []string{"192.0.2.5", "2001:db8::5"}, "192.0.2.5", true},
		{"the second one, written otherwise", []string{"192.0.2.5", "2001:db8::5"}, "2001:db8:0::5", true},
		{"another address", []string{"192.0.2.5"}, "192.0.2.6", false},
		{"a name, which only DNS knows", []string{"192.0.2.5"}, "api.example.com", true},
		{"a cluster that brings no address", nil, "192.0.2.6", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(view.ServesEndpoint(controlplanev1.InstallSpec{APIVIPs: tt.vips}, tt.host)).To(Equal(tt.want))
		})
	}
}
