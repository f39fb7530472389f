// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// TestContractSecret looks at the data Secrets of the installed cluster: its control-plane Machine's and its worker's.
func TestContractSecret(t *testing.T) {
	s := shared
	each := func(check func(g *WithT, config *bootstrapv1.OpenshiftAssistedConfig, secret *corev1.Secret)) func(t *testing.T) {
		return func(t *testing.T) {
			g := NewWithT(t)
			configs := s.configs(t.Context(), g, s.installed.Namespace)
			g.Expect(configs).To(HaveLen(2))
			for i := range configs {
				secret := &corev1.Secret{}
				s.get(t.Context(), g, secret, configs[i].Namespace, configs[i].Status.DataSecretName)
				check(g, &configs[i], secret)
			}
		}
	}
	t.Run("BOOT-20 it is named as its config", each(func(g *WithT, config *bootstrapv1.OpenshiftAssistedConfig, secret *corev1.Secret) {
		g.Expect(secret.Name).To(Equal(config.Name))
	}))
	t.Run(
		"BOOT-21 it is labelled with the Cluster's name, beside its config",
		each(func(g *WithT, config *bootstrapv1.OpenshiftAssistedConfig, secret *corev1.Secret) {
			g.Expect(secret.Namespace).To(Equal(config.Namespace))
			g.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, s.installed.Name))
		}),
	)
	t.Run("BOOT-22 its config is its controller", each(func(g *WithT, config *bootstrapv1.OpenshiftAssistedConfig, secret *corev1.Secret) {
		g.Expect(secret.OwnerReferences).
			To(ConsistOf(*metav1.NewControllerRef(config, bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfig"))))
	}))
	t.Run("BOOT-23 it holds the data and its format", each(func(g *WithT, _ *bootstrapv1.OpenshiftAssistedConfig, secret *corev1.Secret) {
		g.Expect(secret.Data).To(And(HaveLen(2), HaveKey("value"), HaveKeyWithValue("format", BeEquivalentTo("ignition"))))
		ignition := map[string]any{}
		g.Expect(json.Unmarshal(secret.Data["value"], &ignition)).To(Succeed())
		g.Expect(ignition).To(HaveKeyWithValue("ignition", HaveKey("version")))
	}))
	t.Run("BOOT-24 it has Cluster API's type", each(func(g *WithT, _ *bootstrapv1.OpenshiftAssistedConfig, secret *corev1.Secret) {
		g.Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType))
	}))
	t.Run(
		"BOOT-28 it holds neither the pull secret nor the URL of the image",
		each(func(g *WithT, config *bootstrapv1.OpenshiftAssistedConfig, secret *corev1.Secret) {
			pullSecret := &corev1.Secret{}
			s.get(t.Context(), g, pullSecret, config.Namespace, sandbox.PullSecretName)
			auths := map[string]map[string]map[string]string{}
			g.Expect(json.Unmarshal(pullSecret.Data[corev1.DockerConfigJsonKey], &auths)).To(Succeed())
			for _, auth := range auths["auths"] {
				g.Expect(auth["auth"]).NotTo(BeEmpty())
				g.Expect(string(secret.Data["value"])).NotTo(ContainSubstring(auth["auth"]))
			}
			g.Expect(string(secret.Data["value"])).NotTo(ContainSubstring("://"))
		}),
	)
}

func TestContractPublishedData(t *testing.T) {
	l := newPublishedLab(t, "published")
	t.Run("BOOT-22 a lost owner and label come back", func(t *testing.T) {
		l.disown(t, "m-0")
		l.wake(t, "m-0")
		l.expectOwned(t)
	})
	t.Run("BOOT-20 BOOT-26 BOOT-39 BOOT-55 a later change of the config is noted and changes nothing that was published", func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		published := func(g Gomega) []any {
			machine := l.machine(ctx, g, "m-0")
			return []any{l.dataSecrets(ctx, g), l.infraEnvs(ctx, g), l.metal3Machine(ctx, g, "m-0").Object["spec"], machine.Spec,
				l.config(ctx, g, "m-0").Status.DataSecretName}
		}
		before := published(g)
		config := l.config(ctx, g, "m-0")
		l.change(t, config, func() { config.Spec.Installation.KernelArguments = []string{"quiet"} })
		eventually(t, func(g Gomega) {
			g.Expect(l.config(ctx, g, "m-0").Status.ObservedGeneration).To(Equal(config.Generation))
		})
		consistently(t, func(g Gomega) { g.Expect(published(g)).To(Equal(before)) })
	})
}
