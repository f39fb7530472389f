// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

func TestKeep(t *testing.T) {
	controlPlane := func(uid types.UID) *controlplanev1.OpenshiftAssistedControlPlane {
		return &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: uid}}
	}
	cluster := func(paused bool) *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: &paused}}
	}
	tests := []struct {
		name    string
		remains remains
		keep    string
	}{
		{"its control plane lives", remains{controlPlane: controlPlane("uid"), cluster: cluster(false)}, "its control plane exists"},
		{"it is being moved away", remains{cluster: cluster(true)}, "Cluster c is paused: it is being moved away"},
		{"hosts are bound, which a deletion would unbind", remains{bound: []string{"a-0", "a-1"}}, "Agent a-0 is bound to it"},
		{"moved away", remains{}, ""}, {"the finalizer was taken off by hand", remains{cluster: cluster(false)}, ""},
		{"moved away and back", remains{controlPlane: controlPlane("new"), cluster: cluster(false)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.remains.deployment = &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "cp", Labels: map[string]string{controlplanev1.OwnerUIDLabel: "uid"},
			}}
			NewWithT(t).Expect(tt.remains.keep()).To(Equal(tt.keep))
		})
	}
}
