// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestPullSecrets: of the changes of a ClusterDeployment, those of its pull secret trigger a pass of every config of the cluster.
func TestPullSecrets(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   bool
	}{
		"its status":          {func(d *hivev1.ClusterDeployment) { d.Status.InstallRestarts = 1 }, false},
		"another field":       {func(d *hivev1.ClusterDeployment) { d.Spec.Installed = true }, false},
		"another pull secret": {func(d *hivev1.ClusterDeployment) { d.Spec.PullSecretRef.Name = "b" }, true},
		"its deletion":        {func(d *hivev1.ClusterDeployment) { d.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"its Cluster": {func(d *hivev1.ClusterDeployment) {
			d.Labels = map[string]string{clusterv1.ClusterNameLabel: "demo"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &hivev1.ClusterDeployment{Spec: hivev1.ClusterDeploymentSpec{PullSecretRef: &corev1.LocalObjectReference{Name: "a"}}}
			after := before.DeepCopy()
			tt.change(after)
			NewWithT(t).Expect(pullSecrets.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tt.want))
		})
	}
}
