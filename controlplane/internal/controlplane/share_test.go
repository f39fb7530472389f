// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// shared is the kubeconfig that assisted-service has of an imported cluster.
func (w *world) shared() string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "cp-admin-kubeconfig"}, secret))
	return string(secret.Data[assisted.KubeconfigKey])
}

// replaceKubeconfig puts a Secret of somebody else's in the place of <cluster>-kubeconfig.
func (w *world) replaceKubeconfig(data string) {
	w.t.Helper()
	w.must(w.client.Delete(context.Background(), w.kubeconfig()))
	w.must(w.client.Create(context.Background(), &corev1.Secret{
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"value": []byte(data)},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: clusterName + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName},
		},
	}))
}

// TestReplacedKubeconfigIsShared: assisted-service gets what somebody has put into <cluster>-kubeconfig of an imported cluster only if it
// reads no file and runs no program for it, and if it leads to the cluster.
func TestReplacedKubeconfigIsShared(t *testing.T) {
	const file, command = "names a file: it must hold its credential", "runs a command to log in: it must hold its credential"
	for name, tt := range map[string]struct {
		user string
		says string
	}{
		"a token":                   {`"token":"other"`, ""},
		"a file with a token":       {`"tokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"`, file},
		"a file with a certificate": {`"client-certificate":"/tls.crt","client-key-data":"a2V5"`, file},
		"a file with a key":         {`"client-certificate-data":"Y2VydA==","client-key":"/tls.key"`, file},
		"a program": {
			`"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","interactiveMode":"Never"}`, command,
		},
		"a program of an older kind":         {`"auth-provider":{"name":"oidc","config":{}}`, command},
		"a token and a file, which is taken": {`"token":"other","tokenFile":"/token"`, file},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := installedWorld(t).moved()
			w.finishImport()
			before, replaced := w.shared(), strings.Replace(kubeconfigOf("user"), `"token":"t"`, tt.user, 1)
			w.replaceKubeconfig(replaced)
			w.reconcile()
			condition := conditions.Get(w.controlPlane(), controlplanev1.KubeconfigAvailableCondition)
			if tt.says == "" {
				g.Expect(w.shared()).To(Equal(replaced))
				g.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
				return
			}
			g.Expect(w.shared()).To(Equal(before), "assisted-service goes on to use what it has")
			g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(condition.Message).To(ContainSubstring(tt.says))
		})
	}
	t.Run("our own Secret with other data", func(t *testing.T) {
		g := NewWithT(t)
		w := installedWorld(t).moved()
		w.finishImport()
		before, secret := w.shared(), w.kubeconfig()
		secret.Data["value"] = []byte(strings.Replace(kubeconfigOf("user"), `"token":"t"`, `"tokenFile":"/token"`, 1))
		w.must(w.client.Update(context.Background(), secret))
		w.reconcile()
		g.Expect(w.shared()).To(Equal(before), "in the pass that repairs the Secret")
		w.reconcile()
		g.Expect(w.shared()).To(BeEquivalentTo(w.kubeconfig().Data["value"]))
		g.Expect(w.shared()).NotTo(ContainSubstring("tokenFile"))
	})
	t.Run("another cluster", func(t *testing.T) {
		g := NewWithT(t)
		w := installedWorld(t).moved()
		w.finishImport()
		before := w.shared()
		w.replaceKubeconfig(kubeconfigOf("user"))
		w.api.upgrades.Reported.ClusterID = "another"
		w.reconcile()
		g.Expect(w.reason(controlplanev1.UpgradingCondition)).To(Equal(controlplanev1.UpgradeOtherClusterReason))
		g.Expect(w.shared()).To(Equal(before))
	})
}
