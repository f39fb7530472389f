// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"testing"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
)

// TestTemplateThatPatchesComplete: the patches of a ClusterClass may add networks and addresses to those of a template, and a load
// balancer, and the Cluster says how many hosts there are. Only what is wrong whatever they add is refused. A control plane of three hosts
// with the same is refused, as onlyTemplate says.
func TestTemplateThatPatchesComplete(t *testing.T) {
	dualStack := []controlplanev1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14"}, {CIDR: "fd01::/48"}}
	networks := func(machine, service []string, cluster []controlplanev1.ClusterNetworkEntry) change {
		return func(i *controlplanev1.InstallSpec) {
			*i = controlplanev1.InstallSpec{Networking: controlplanev1.NetworkingSpec{
				MachineNetwork: machine, ServiceNetwork: service, ClusterNetwork: cluster,
			}}
		}
	}
	addresses := func(loadBalancer controlplanev1.LoadBalancerType, api, ingress []string, machine ...string) change {
		return func(i *controlplanev1.InstallSpec) {
			networks(machine, nil, nil)(i)
			i.APIVIPs, i.IngressVIPs, i.LoadBalancer.Type = api, ingress, loadBalancer
		}
	}
	four, six := []string{"192.0.2.5", "2001:db8::5"}, []string{"192.0.2.6", "2001:db8::6"}
	for name, tt := range map[string]struct {
		change change
		// want are parts of the refusal of the template; none when it is accepted.
		want         []string
		onlyTemplate bool
	}{
		"two IP families, and no machine network": {networks(nil, nil, dualStack), nil, true},
		"a second machine network is to come":     {networks([]string{"192.0.2.0/24"}, nil, dualStack), nil, true},
		"a second service network is to come": {
			networks([]string{"192.0.2.0/24", "2001:db8::/64"}, []string{"172.30.0.0/16"}, dualStack), nil, true,
		},
		"room for a single host":         {networks([]string{"192.0.2.0/30"}, nil, nil), nil, true},
		"room for none":                  {networks([]string{"192.0.2.0/31"}, nil, nil), []string{"machineNetwork[0]", "for 4 addresses"}, false},
		"one part for Pods":              {networks(nil, nil, []controlplanev1.ClusterNetworkEntry{{CIDR: "10.128.0.0/23"}}), nil, true},
		"the other family":               {networks([]string{"192.0.2.0/24"}, []string{"fd02::/112"}, nil), []string{"serviceNetwork[0]"}, false},
		"two networks of a family":       {networks(nil, []string{"172.30.0.0/16", "172.31.0.0/16"}, nil), []string{"serviceNetwork[1]"}, false},
		"networks that overlap":          {networks([]string{"172.30.0.0/24"}, []string{"172.30.0.0/16"}, nil), []string{"not overlap"}, false},
		"a machine network is to come":   {addresses("ClusterManaged", four, six, "192.0.2.0/24"), nil, true},
		"no machine network is there":    {addresses("ClusterManaged", four, six), nil, false},
		"an address of the other family": {addresses("", four[1:], six[1:], "192.0.2.0/24"), []string{"apiVIPs[0]", "IPv4"}, false},
		"an address outside": {
			addresses("ClusterManaged", four[:1], six[:1], "198.51.100.0/24"), []string{"apiVIPs[0]", "ingressVIPs[0]", "machineNetwork"}, false,
		},
		"an address outside, and a load balancer may come": {addresses("", four[:1], six[:1], "198.51.100.0/24"), nil, true},
		"one address, and a load balancer may come":        {addresses("", four[:1], four[:1]), nil, true},
		"one address, and none comes":                      {addresses("ClusterManaged", four[:1], four[:1]), []string{"another address"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			template := &controlplanev1.OpenshiftAssistedControlPlaneTemplate{}
			tt.change(&template.Spec.Template.Spec.Install)
			_, err := (&webhook.ControlPlaneTemplate{}).ValidateCreate(context.Background(), template)
			check(t, err, tt.want)
			cp := valid()
			tt.change(&cp.Spec.Install)
			if _, err := (&webhook.ControlPlane{}).ValidateCreate(context.Background(), cp); tt.onlyTemplate && err == nil {
				t.Error("a control plane of three hosts is accepted with it")
			}
		})
	}
}
