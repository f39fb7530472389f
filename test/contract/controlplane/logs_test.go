// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/security"
)

// learnSecrets notes all Secrets that there are: kubeconfigs, the pull secret, bootstrap data, and what BMCs are asked with.
func (s *story) learnSecrets(t *testing.T) {
	t.Helper()
	g, list := NewWithT(t), &corev1.SecretList{}
	g.Expect(s.world.Client.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		g.Expect(s.secrets.AddSecret(&list.Items[i])).To(Succeed())
	}
	for _, name := range []string{clusterName + "-kubeconfig", s.install().Name + "-admin-kubeconfig"} {
		g.Expect(list.Items).To(ContainElement(HaveField("Name", name)))
	}
	kubeconfig := &corev1.Secret{}
	s.get(g, clusterName+"-kubeconfig", kubeconfig)
	found, err := s.secrets.Find(strings.NewReader("Published " + string(kubeconfig.Data["value"])))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).NotTo(BeEmpty(), "a log that has it is known")
	found, err = security.NewSecrets().Find(strings.NewReader("Bearer " + s.config(g).BearerToken))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ContainElement("line 1 holds a token as base64"), "so is one of which nothing is known but its form")
}

func (s *story) noSecretIsLogged(t *testing.T) {
	for _, manager := range []*localcontrolplane.Manager{s.world.ControlPlane, s.world.Bootstrap} {
		g := NewWithT(t)
		log, err := os.ReadFile(manager.LogFile())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Contains(string(log), "round_trippers.go")).To(BeTrue(), "%s logs its requests", manager.Name())
		for _, bodies := range []string{`"Request Body"`, `"Response Body"`} {
			g.Expect(strings.Contains(string(log), bodies)).To(BeFalse(), "%s logs what is in its requests", manager.Name())
		}
		found, err := s.secrets.Find(strings.NewReader(string(log)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeEmpty(), "the log of %s", manager.Name())
	}
}
