// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

func TestContractConditions(t *testing.T) {
	s := shared
	installed := &lab{scene: s, namespace: s.installed.Namespace}
	waiting := newLab(t, "waiting", 0)
	waiting.create(t, waiting.newConfig("m-0"), waiting.newMachine("m-0"))
	t.Run("BOOT-51 CORE-6 the Machine says what the config says, ready or not", func(t *testing.T) {
		for l, status := range map[*lab]metav1.ConditionStatus{installed: metav1.ConditionTrue, waiting: metav1.ConditionFalse} {
			eventually(t, func(g Gomega) {
				for _, config := range s.configs(t.Context(), g, l.namespace) {
					ready := conditions.Get(&config, clusterv1.ReadyCondition)
					g.Expect(ready).To(HaveValue(HaveField("Status", status)))
					machine := l.machine(t.Context(), g, config.Name)
					g.Expect(conditions.Get(machine, clusterv1.MachineBootstrapConfigReadyCondition)).To(HaveValue(And(
						HaveField("Status", ready.Status), HaveField("Reason", ready.Reason), HaveField("Message", ready.Message))))
				}
			})
		}
	})
	t.Run("BOOT-52 a condition of somebody else survives, and one of ours is set right", func(t *testing.T) {
		config := waiting.config(t.Context(), NewWithT(t), "m-0")
		theirs := metav1.Condition{Type: "example.com/Audited", Status: metav1.ConditionTrue, Reason: "Audited"}
		conditions.Set(config, theirs)
		conditions.Set(config, metav1.Condition{Type: bootstrapv1.DataSecretAvailableCondition, Status: metav1.ConditionTrue, Reason: "Tampered"})
		NewWithT(t).Expect(s.Client.Status().Update(t.Context(), config)).To(Succeed())
		waiting.expectReason(t, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.WaitingForClusterInfrastructureReason)
		waiting.provide(t)
		waiting.expectReason(t, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.WaitingForInfraMachineReason)
		found := conditions.Get(waiting.config(t.Context(), NewWithT(t), "m-0"), theirs.Type)
		NewWithT(t).Expect(found).To(HaveValue(And(HaveField("Status", theirs.Status), HaveField("Reason", theirs.Reason))))
	})
	t.Run("BOOT-55 the status is that of the last generation", func(t *testing.T) {
		for _, config := range s.configs(t.Context(), NewWithT(t), installed.namespace) {
			NewWithT(t).Expect(config.Status.ObservedGeneration).To(Equal(config.Generation))
		}
	})
}
