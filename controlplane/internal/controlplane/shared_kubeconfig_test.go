// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestDecideShare has what assisted-service gets to reach an installed cluster with.
func TestDecideShare(t *testing.T) {
	published, installer := []byte(kubeconfigOf("user")), []byte("installer")
	installed := &hivev1.ClusterDeployment{}
	imported := &hivev1.ClusterDeployment{Spec: hivev1.ClusterDeploymentSpec{Installed: true, PreserveOnDelete: true}}
	deleted := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}}
	holding := func(data []byte) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{assisted.KubeconfigKey: data}}
	}
	for name, tt := range map[string]struct {
		deployment *hivev1.ClusterDeployment
		there      *corev1.Secret
		installer  []byte
		namesake   string
		published  []byte
		want       []byte
	}{
		"the service has written it":             {installed, holding(installer), installer, "", published, nil},
		"somebody has changed it":                {installed, holding([]byte("other")), installer, "", published, nil},
		"somebody has deleted it":                {installed, nil, installer, "", published, installer},
		"and nobody knows the credential":        {installed, nil, nil, "", published, nil},
		"it is for another Cluster":              {installed, nil, installer, "Secret cp-admin-kubeconfig is for another", published, nil},
		"its ClusterDeployment goes":             {deleted, nil, installer, "", published, nil},
		"there is no ClusterDeployment":          {nil, nil, installer, "", published, nil},
		"the cluster is imported":                {imported, nil, installer, "", published, published},
		"and what is published is shared":        {imported, holding(published), installer, "", published, nil},
		"and another one is published":           {imported, holding(installer), installer, "", published, published},
		"and nothing is published, as is shared": {imported, nil, installer, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := &view.View{}
			v.Install.ClusterDeployment, v.Kubeconfigs.Installer = tt.deployment, tt.there
			v.Credential.Installer, v.Kubeconfigs.Namesake = tt.installer, tt.namesake
			d := kubeconfigDecision{}
			d.decideShare(v, tt.published)
			NewWithT(t).Expect(d.share).To(Equal(tt.want))
		})
	}
}

// TestDeletedInstallerKubeconfig deletes the Secret by which assisted-service reaches the cluster: the service does not write it again
// (ASSISTED fact 7).
func TestDeletedInstallerKubeconfig(t *testing.T) {
	key := client.ObjectKey{Namespace: namespace, Name: "cp-admin-kubeconfig"}
	for name, before := range map[string]func(*world){
		"of a cluster with a token":                      func(*world) {},
		"of a cluster with the installer's credential":   (*world).optOut,
		"of a cluster that went back to that credential": func(w *world) { w.run(nil, w.available); w.passes(2); w.optOut() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 1, 0)
			before(w)
			w.run(nil, w.available)
			w.passes(2)
			source := &corev1.Secret{}
			w.must(w.client.Get(t.Context(), key, source))
			w.vanish(source)
			w.passes(2)
			restored := &corev1.Secret{}
			w.must(w.client.Get(t.Context(), key, restored))
			g.Expect(w.credentials.Takes(restored.Data[assisted.KubeconfigKey])).To(BeTrue())
			g.Expect(string(restored.Data[assisted.KubeconfigKey])).To(ContainSubstring(`installer`), "which does not end after some days")
			g.Expect(restored.Labels).To(HaveKeyWithValue(assisted.HiveSecretTypeLabel, assisted.HiveSecretTypeKubeconfig))
			g.Expect(metav1.IsControlledBy(restored, w.deployment())).To(BeFalse(), "as the service makes it")
			g.Expect(restored.OwnerReferences[0].UID).To(Equal(w.deployment().UID), "so that it goes with the ClusterDeployment")
			w.checkWorks()
			published := w.kubeconfig().ResourceVersion
			w.passes(3)
			again := &corev1.Secret{}
			w.must(w.client.Get(t.Context(), key, again))
			g.Expect(again.ResourceVersion).To(Equal(restored.ResourceVersion), "nothing else is to do")
			g.Expect(w.kubeconfig().ResourceVersion).To(Equal(published))
			w.after(4 * day)
			w.checkWorks()
		})
	}
	t.Run("before the end of the installation", func(t *testing.T) {
		g := NewWithT(t)
		w := completed(t)
		source := &corev1.Secret{}
		w.must(w.client.Get(t.Context(), key, source))
		published := w.kubeconfig()
		w.vanish(source)
		w.passes(2)
		g.Expect(w.client.Get(t.Context(), key, source)).NotTo(Succeed(), "the service writes it at the end")
		g.Expect(w.kubeconfig().Data).To(Equal(published.Data), "what was published stays")
	})
}
