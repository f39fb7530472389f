// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
)

func TestInstalledOf(t *testing.T) {
	record := plan.Installed{Attempt: "1", ClusterID: "id", InfraID: "infra"}
	tests := []struct {
		name        string
		annotations map[string]string
		want        plan.Installed
		ok          bool
	}{
		{"never installed", nil, plan.Installed{}, false},
		{"installed", map[string]string{controlplanev1.InstalledClusterAnnotation: record.String()}, record, true},
		{"another attempt is wanted", map[string]string{
			controlplanev1.InstalledClusterAnnotation: record.String(), controlplanev1.InstallAttemptAnnotation: "2",
		}, record, false},
		{"a broken record is no licence to install", map[string]string{controlplanev1.InstalledClusterAnnotation: "{"}, plan.Installed{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			cp := controlPlane(3)
			cp.Annotations = tt.annotations
			got, ok := plan.InstalledOf(cp)
			g.Expect(got).To(Equal(tt.want))
			g.Expect(ok).To(Equal(tt.ok))
		})
	}
}

func TestRecordOf(t *testing.T) {
	g := NewWithT(t)
	cp := controlPlane(3)
	cp.Annotations = map[string]string{controlplanev1.InstallAttemptAnnotation: "2"}
	record := plan.RecordOf(cp, hivev1.ClusterMetadata{ClusterID: "id", InfraID: "infra"})
	g.Expect(record.String()).To(Equal(`{"attempt":"2","clusterID":"id","infraID":"infra"}`))
}

func TestImportedKubeconfig(t *testing.T) {
	g := NewWithT(t)
	objects := plan.Install{ControlPlane: controlPlane(3), Cluster: &clusterv1.Cluster{}}
	deployment := objects.ImportedClusterDeployment(plan.Installed{ClusterID: "id"})
	deployment.UID = "cd"
	secret := plan.ImportedKubeconfig(deployment, []byte("x"))
	g.Expect(secret.Name).To(Equal("cp-admin-kubeconfig"))
	g.Expect(secret.Labels).NotTo(HaveKey(clusterv1.ClusterNameLabel), "Cluster API would take it for another Cluster's (CONTRACT CP-58)")
	g.Expect(secret.OwnerReferences).To(HaveLen(1))
	g.Expect(secret.OwnerReferences[0].UID).To(BeEquivalentTo("cd"))
}

func TestInherited(t *testing.T) {
	g := NewWithT(t)
	now, former, other := controlPlane(3), controlPlane(3), controlPlane(3)
	former.UID, other.UID, other.Namespace = "former", "other", "elsewhere"
	of := func(i *controlplanev1.OpenshiftAssistedControlPlane) *hivev1.ClusterImageSet {
		return plan.Install{ControlPlane: i, Cluster: &clusterv1.Cluster{}}.ImageSet()
	}
	g.Expect(plan.OwnedBy(of(now), now)).To(BeTrue())
	g.Expect(plan.Inherited(of(now), now)).To(BeFalse())
	g.Expect(plan.Inherited(of(former), now)).To(BeTrue())
	g.Expect(plan.Inherited(of(other), now)).To(BeFalse())
	g.Expect(plan.Inherited(&hivev1.ClusterImageSet{}, now)).To(BeFalse(), "a user's own")
}
