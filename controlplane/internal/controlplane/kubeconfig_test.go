// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func TestKubeconfigOfSomebodyElse(t *testing.T) {
	label := map[string]string{clusterv1.ClusterNameLabel: clusterName}
	good := map[string][]byte{"value": []byte(kubeconfigOf("user"))}
	withUser := func(user string) map[string][]byte {
		return map[string][]byte{"value": []byte(strings.Replace(string(good["value"]), `"token":"t"`, user, 1))}
	}
	for name, tt := range map[string]struct {
		labels map[string]string
		data   map[string][]byte
		usable bool
		says   string
	}{
		"can be connected with":        {label, good, true, "left alone"},
		"has no label":                 {nil, good, false, "has no label cluster.x-k8s.io/cluster-name: c"},
		"has the installer's key only": {label, map[string][]byte{"kubeconfig": good["value"]}, false, "has no key value"},
		"is no kubeconfig":             {label, map[string][]byte{"value": []byte("secret stuff")}, false, "cannot be parsed"},
		"has no current context":       {label, map[string][]byte{"value": []byte("{}")}, false, "no current context"},
		"names a file": {
			label, withUser(`"tokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"`), false, "names a file: it must hold its credential",
		},
		"runs a command": {
			label, withUser(`"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","interactiveMode":"Never"}`), false,
			"runs a command to log in: it must hold its credential",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 1, 0)
			w.must(w.client.Create(context.Background(), &corev1.Secret{
				Type:       corev1.SecretTypeOpaque,
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName + "-kubeconfig", Labels: tt.labels}, Data: tt.data,
			}))
			w.run(nil, w.available)
			condition := conditions.Get(w.controlPlane(), controlplanev1.KubeconfigAvailableCondition)
			g.Expect(condition.Status).To(Equal(conditions.BoolToStatus(tt.usable)))
			g.Expect(condition.Reason).To(Equal(controlplanev1.KubeconfigUserProvidedReason))
			g.Expect(condition.Message).To(And(ContainSubstring(tt.says), Not(ContainSubstring("secret stuff"))))
			w.gate.missing = []string{assisted.CRDAgents}
			w.reconcile()
			g.Expect(conditions.Get(w.controlPlane(), controlplanev1.KubeconfigAvailableCondition)).To(Equal(condition),
				"while something else is waited for, it is the same")
		})
	}
}

func TestNamesakesOfTheKubeconfig(t *testing.T) {
	rename := func(w *world, cluster, controlPlane string) {
		w.must(w.client.Create(context.Background(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}}))
		w.must(w.client.Create(context.Background(), &controlplanev1.OpenshiftAssistedControlPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: controlPlane},
		}))
	}
	t.Run("nothing is installed beside the Cluster that uses our Secret", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 1, 0)
		rename(w, "cp-admin", "another")
		w.reconcile()
		w.reconcile()
		g.Expect(w.reconcile().RequeueAfter).To(Equal(conflictRetryInterval))
		g.Expect(w.install()).To(BeNil())
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.NameConflictReason))
		const names = "Secret cp-admin-kubeconfig is for the kubeconfig of Cluster cp-admin and for the installer's credentials of " +
			"OpenshiftAssistedControlPlane cp"
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring(names))
		g.Expect(w.reason(controlplanev1.KubeconfigAvailableCondition)).To(Equal(controlplanev1.KubeconfigNameConflictReason))
		w.must(w.client.Delete(context.Background(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-admin"}}))
		w.run(nil, w.available)
	})
	t.Run("a running cluster runs on, and says it", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 1, 0)
		w.run(nil, w.available)
		rename(w, "cp-admin", "another")
		w.reconcile()
		g.Expect(w.available()).To(BeTrue())
		g.Expect(conditions.IsFalse(w.controlPlane(), controlplanev1.KubeconfigAvailableCondition)).To(BeTrue())
	})
	t.Run("of which our Cluster has the name", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 1, 0)
		v := &view.View{ControlPlane: w.controlPlane(), ClusterName: "prod-admin"}
		g.Expect(w.r.observeNamesake(t.Context(), v)).To(Succeed())
		g.Expect(v.Kubeconfigs.Namesake).To(BeEmpty())
		rename(w, "another", "prod")
		g.Expect(w.r.observeNamesake(t.Context(), v)).To(Succeed())
		g.Expect(v.Kubeconfigs.Namesake).
			To(ContainSubstring("Cluster prod-admin and for the installer's credentials of OpenshiftAssistedControlPlane prod"))
		own := &view.View{ControlPlane: w.controlPlane(), ClusterName: "cp-admin"}
		g.Expect(w.r.observeNamesake(t.Context(), own)).To(Succeed())
		g.Expect(own.Kubeconfigs.Namesake).
			To(ContainSubstring("Cluster cp-admin and for the installer's credentials of OpenshiftAssistedControlPlane cp:"))
	})
}

func TestKubeconfigIsWatched(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	of := func(name, cluster string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}},
		}
	}
	g.Expect(w.r.ofKubeconfig(t.Context(), of("c-kubeconfig", clusterName))).To(ConsistOf(HaveField("NamespacedName", key)))
	g.Expect(w.r.ofKubeconfig(t.Context(), of("c-other", clusterName))).To(BeEmpty(), "bootstrap data and the like")
	g.Expect(w.r.ofKubeconfig(t.Context(), of("d-kubeconfig", "d"))).To(BeEmpty())
}
