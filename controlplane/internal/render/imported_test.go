// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	. "github.com/onsi/gomega"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

func TestSharedKubeconfig(t *testing.T) {
	g := NewWithT(t)
	objects := render.Install{ControlPlane: controlPlane(3), Cluster: &clusterv1.Cluster{}}
	deployment := objects.ImportedClusterDeployment(view.Installed{ClusterID: "id"})
	deployment.UID = "cd"
	secret := render.SharedKubeconfig(objects.ControlPlane, deployment, []byte("x"))
	g.Expect(secret.Name).To(Equal("cp-admin-kubeconfig"))
	g.Expect(secret.Labels).NotTo(HaveKey(clusterv1.ClusterNameLabel), "Cluster API would take it for another Cluster's (CONTRACT CP-58)")
	g.Expect(secret.OwnerReferences).To(HaveLen(1))
	g.Expect(secret.OwnerReferences[0].UID).To(BeEquivalentTo("cd"))
}
