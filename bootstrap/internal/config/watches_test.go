// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
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

// TestMachinePool: a config of a MachinePool says that nothing will be made for it, and nothing is.
func TestMachinePool(t *testing.T) {
	for name, tt := range map[string]struct {
		owner  string
		paused bool
		want   string
	}{
		"a MachinePool's":                {owner: "MachinePool", want: bootstrapv1.MachinePoolNotSupportedReason},
		"a MachinePool's that is paused": {owner: "MachinePool", paused: true},
		"nobody's yet":                   {owner: "ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			config := named("pool", bootstrapv1.OpenshiftAssistedConfigSpec{})
			config.Namespace, config.Labels = "ns", map[string]string{clusterv1.ClusterNameLabel: "demo"}
			config.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: tt.owner, Name: "pool", UID: "pool"},
			}
			cluster := demoCluster()
			cluster.Namespace, cluster.Spec.Paused = "ns", ptr.To(tt.paused)
			scheme := runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config, cluster).WithStatusSubresource(config).Build()
			key := client.ObjectKeyFromObject(config)
			r := &Reconciler{Client: c, controller: capicontrollerutil.NewFakeController(), secrets: newSecrets(nil, clock.RealClock{})}
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			g.Expect(err).NotTo(HaveOccurred())
			got := &bootstrapv1.OpenshiftAssistedConfig{}
			g.Expect(c.Get(ctx, key, got)).To(Succeed())
			g.Expect(conditions.GetReason(got, bootstrapv1.DataSecretAvailableCondition)).To(Equal(tt.want))
			g.Expect(got.Finalizers).To(BeEmpty())
		})
	}
}
