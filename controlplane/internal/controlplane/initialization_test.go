// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

func (w *world) initialized() bool {
	flag := w.controlPlane().Status.Initialization.ControlPlaneInitialized
	return flag != nil && *flag
}

func (w *world) kubeconfig() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: clusterName + "-kubeconfig"}, s))
	return s
}

func testInitializedStays(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	w.reconcile()
	healthy := func() []metav1.ConditionStatus {
		cp := w.controlPlane()
		return []metav1.ConditionStatus{
			conditions.Get(cp, controlplanev1.EtcdClusterHealthyCondition).Status,
			conditions.Get(cp, controlplanev1.ControlPlaneComponentsHealthyCondition).Status,
		}
	}
	w.api.ID, w.api.Reported = "", nil
	w.now = w.api.Last.Add(w.r.RemoteConditionsGracePeriod)
	w.reconcile()
	g.Expect(w.available()).To(BeTrue(), "within the grace period what was known stands")
	g.Expect(healthy()).To(HaveEach(metav1.ConditionTrue))
	w.now = w.now.Add(time.Second)
	w.reconcile()
	g.Expect(w.initialized()).To(BeTrue())
	g.Expect(w.available()).To(BeFalse())
	g.Expect(w.reason(controlplanev1.AvailableCondition)).To(Equal(controlplanev1.ConnectionDownReason))
	g.Expect(healthy()).To(HaveEach(metav1.ConditionUnknown))
	g.Expect(w.reason(controlplanev1.EtcdClusterHealthyCondition)).To(Equal(controlplanev1.EtcdClusterConnectionDownReason))
}

func testNotInitializedByAPI(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.failAt, w.api.ID = 4, clusterID
	w.run(nil, func() bool {
		NewWithT(t).Expect(w.initialized()).To(BeFalse())
		return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationFailedReason
	})
}

func testKubeconfigSecret(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)}}
	tests := []struct {
		name     string
		existing *corev1.Secret
		ours     bool
	}{
		{"none", nil, true},
		{"of Cluster API's type and nobody's", &corev1.Secret{Type: clusterv1.ClusterSecretType}, true},
		{"of another type", &corev1.Secret{Type: corev1.SecretTypeOpaque}, false},
		{
			"of another controller", &corev1.Secret{Type: clusterv1.ClusterSecretType, ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner}}, false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 1, 0)
			if tt.existing != nil {
				tt.existing.Namespace, tt.existing.Name = namespace, clusterName+"-kubeconfig"
				tt.existing.Data = map[string][]byte{secret.KubeconfigDataName: []byte("user's")}
				g.Expect(w.client.Create(context.Background(), tt.existing)).To(Succeed())
			}
			w.run(nil, w.available)
			s := w.kubeconfig()
			if !tt.ours {
				g.Expect(s.Data).To(Equal(tt.existing.Data))
				g.Expect(s.OwnerReferences).To(Equal(tt.existing.OwnerReferences))
				g.Expect(w.reason(controlplanev1.KubeconfigAvailableCondition)).To(Equal(controlplanev1.KubeconfigUserProvidedReason))
				return
			}
			g.Expect(s.Type).To(Equal(clusterv1.ClusterSecretType))
			g.Expect(s.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, clusterName))
			g.Expect(metav1.IsControlledBy(s, w.controlPlane())).To(BeTrue())
			g.Expect(string(s.Data[secret.KubeconfigDataName])).To(ContainSubstring("https://192.0.2.5:6443"))
		})
	}
}

func testKubeconfigIsEarly(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.run(nil, func() bool {
		return w.reason(controlplanev1.KubeconfigAvailableCondition) == controlplanev1.KubeconfigAvailableReason
	})
	for _, m := range w.machines() {
		NewWithT(t).Expect(m.Status.NodeRef.IsDefined()).To(BeFalse())
	}
	NewWithT(t).Expect(w.initialized()).To(BeFalse())
}

func testKeepKubeconfigs(t *testing.T) {
	for name, keeps := range map[string]bool{"c-kubeconfig": true, "cp-installer-credentials": true, "c-ca": false, "kubeconfig-c": false} {
		kept, err := keepKubeconfigs(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"value": []byte("x")}})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		data := kept.(*corev1.Secret).Data
		if keeps {
			NewWithT(t).Expect(data).NotTo(BeEmpty(), name)
		} else {
			NewWithT(t).Expect(data).To(BeEmpty(), name)
		}
	}
}

// testBoundKubeconfigs: of a Secret in which a tenant stores a mebibyte, the manager keeps what it would read of a kubeconfig, and says
// that it is too long.
func testBoundKubeconfigs(t *testing.T) {
	g := NewWithT(t)
	data := map[string][]byte{"value": make([]byte, 1<<19), "kubeconfig": []byte("short"), "more": make([]byte, 1<<19)}
	huge := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c-kubeconfig"}, Data: data}
	huge.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	for _, transform := range []func(any) (any, error){keepKubeconfigs, boundKubeconfigs} {
		kept, err := transform(huge.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred())
		secret := kept.(*corev1.Secret)
		g.Expect(secret.Data).To(And(HaveLen(2), HaveKeyWithValue("kubeconfig", []byte("short"))))
		g.Expect(&secret.Data["value"][0]).To(BeIdenticalTo(&render.BoundKubeconfig(make([]byte, 1<<20))[0]), "a second one takes no memory")
		g.Expect(render.CheckKubeconfig(secret.Data["value"])).To(MatchError(ContainSubstring("no more than 131072 bytes are read")))
		g.Expect(secret.Annotations).To(BeEmpty())
	}
}

func testWatchFilter(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.r.WatchFilter = "ours"
	before := w.controlPlane().ResourceVersion
	w.reconcile()
	g.Expect(w.controlPlane().ResourceVersion).To(Equal(before))
	cp := w.controlPlane()
	cp.Labels[clusterv1.WatchLabel] = "ours"
	g.Expect(w.client.Update(context.Background(), cp)).To(Succeed())
	w.run(nil, w.available)
}
