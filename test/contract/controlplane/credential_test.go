// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// config is how others connect with the kubeconfig that is published now.
func (s *story) config(g Gomega) *rest.Config {
	secret := &corev1.Secret{}
	s.get(g, clusterName+"-kubeconfig", secret)
	g.Expect(s.secrets.AddSecret(secret)).To(Succeed())
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	g.Expect(err).NotTo(HaveOccurred())
	return config
}

// installed is a client with all rights in the installed cluster.
func (s *story) installed(g Gomega) client.Client {
	remote, err := s.world.Installed(s.key())
	g.Expect(err).NotTo(HaveOccurred())
	return remote
}

func (s *story) kubeconfigToken(t *testing.T) {
	eventually(t, settleTimeout, func(g Gomega) {
		config := s.config(g)
		g.Expect(config.BearerToken).NotTo(BeEmpty())
		g.Expect(config.CertData).To(BeEmpty())
	})
	g := NewWithT(t)
	account := &corev1.ServiceAccount{}
	g.Expect(s.installed(g).Get(t.Context(), client.ObjectKey{Namespace: "openshift-assisted-capi", Name: "cluster-api"}, account)).
		To(Succeed())
	rotated, err := s.world.Workload.RotateAuthority(t.Context(), s.install())
	g.Expect(err).NotTo(HaveOccurred())
	before := s.config(g).BearerToken
	eventually(t, settleTimeout, func(g Gomega) { g.Expect(string(s.config(g).CAData)).To(ContainSubstring(string(rotated))) })
	g.Expect(s.config(g).BearerToken).To(Equal(before))
	s.kubeconfigWorks(t)
}

func (s *story) tokenRenewed(t *testing.T) {
	g := NewWithT(t)
	another := func(than string) {
		t.Helper()
		eventually(t, 3*settleTimeout, func(g Gomega) {
			g.Expect(s.config(g).BearerToken).NotTo(Or(BeEmpty(), Equal(than)))
			s.works(t, g)
		})
	}
	first := s.config(g).BearerToken
	secret := &corev1.Secret{}
	s.get(g, clusterName+"-kubeconfig", secret)
	s.update(g, secret, func() { delete(secret.Annotations, controlplanev1.KubeconfigTokenAnnotation) })
	another(first)

	second := s.config(g).BearerToken
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-assisted-capi", Name: "cluster-api"}}
	g.Expect(s.installed(g).Delete(t.Context(), account)).To(Succeed())
	another(second)
	eventually(t, settleTimeout, func(g Gomega) { // Core connects anew, as its token is none any more.
		expect(g, s.cluster(g), clusterv1.ClusterRemoteConnectionProbeCondition, metav1.ConditionTrue)
	})
}

// works lists the Nodes with the kubeconfig that is published now.
func (s *story) works(t *testing.T, g Gomega) {
	remote, err := client.New(s.config(g), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.List(t.Context(), &corev1.NodeList{})).To(Succeed())
}
