// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// expectUntouched checks that nobody writes a config, and that nothing is made for it.
func (l *lab) expectUntouched(t *testing.T, config *bootstrapv1.OpenshiftAssistedConfig) {
	t.Helper()
	consistently(t, func(g Gomega) {
		g.Expect(l.config(t.Context(), g, config.Name).ResourceVersion).To(Equal(config.ResourceVersion))
		g.Expect(l.infraEnvs(t.Context(), g)).To(BeEmpty())
		g.Expect(l.dataSecrets(t.Context(), g)).To(BeEmpty())
	})
	log, err := os.ReadFile(l.Bootstrap.LogFile())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "Reconciler error") && strings.Contains(line, l.namespace) {
			t.Errorf("the manager reports an error: %s", line)
		}
	}
}

func TestContractWithoutOwners(t *testing.T) {
	t.Run("BOOT-30 a config without a Machine has no effect", func(t *testing.T) {
		t.Parallel()
		l := newProvidedLab(t, "lonely", 0)
		config := l.newConfig("m-0")
		config.Labels = map[string]string{clusterv1.ClusterNameLabel: labCluster}
		l.create(t, config)
		l.expectUntouched(t, config)
	})
	t.Run("BOOT-31 a config whose Cluster does not exist waits without an error", func(t *testing.T) {
		t.Parallel()
		l := newProvidedLab(t, "homeless", 0)
		machine := l.newMachine("m-0")
		machine.Spec.ClusterName = "nowhere"
		l.create(t, machine)
		config := l.newConfig("m-0")
		// Core sets neither owner nor label while it does not find the Cluster.
		config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))}
		l.create(t, config)
		l.expectUntouched(t, config)
	})
}

func TestContractWatches(t *testing.T) {
	// The resync is hours away: every step follows from the event of the object that a condition waits for.
	l := newLab(t, "steps", 1)
	l.create(t, &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Name: "m-0"}}, l.newMachine("m-0"))
	t.Run("BOOT-32 BOOT-50 it waits for the Cluster's infrastructure and says so", func(t *testing.T) {
		l.expectReason(t, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.WaitingForClusterInfrastructureReason)
		eventually(t, func(g Gomega) {
			g.Expect(conditions.IsFalse(l.config(t.Context(), g, "m-0"), clusterv1.ReadyCondition)).To(BeTrue())
		})
	})
	t.Run("BOOT-33 it sees that the Cluster's infrastructure is there", func(t *testing.T) {
		l.provide(t)
		l.expectReason(t, bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForPullSecretReason)
	})
	t.Run("BOOT-33 it sees the ClusterDeployment, and that the InfraEnv has an image", func(t *testing.T) {
		l.create(t, l.newClusterDeployment())
		l.expectReason(t, bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.DiscoveryImageReadyReason)
		l.expectReason(t, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.WaitingForInfraMachineReason)
	})
	t.Run("BOOT-33 it sees the infrastructure machine, once core has seen it", func(t *testing.T) {
		l.create(t, l.newMetal3Machine("m-0"))
		l.expectReason(t, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason)
	})
	t.Run("BOOT-33 it sees the host and its Agent", func(t *testing.T) {
		l.expectReason(t, bootstrapv1.HostRecognizedCondition, bootstrapv1.HostRecognizedReason)
	})
}

func TestContractLostStatus(t *testing.T) {
	t.Run("BOOT-34 BOOT-10 BOOT-20 a lost status comes back without new data or a new image", func(t *testing.T) {
		t.Parallel()
		s := shared
		g, ctx := NewWithT(t), t.Context()
		l := &lab{scene: s, namespace: s.installed.Namespace}
		config := &s.configs(ctx, g, l.namespace)[0]
		made := func(g Gomega) []any {
			infraEnvs := l.infraEnvs(ctx, g)
			g.Expect(infraEnvs).NotTo(BeEmpty())
			var specs []any
			for _, infraEnv := range infraEnvs {
				specs = append(specs, infraEnv.UID, infraEnv.Spec)
			}
			return append(specs, l.dataSecrets(ctx, g), l.machine(ctx, g, config.Name).Spec)
		}
		before := made(g)
		s.always.forget(config)
		lost := config.DeepCopy()
		lost.Status = bootstrapv1.OpenshiftAssistedConfigStatus{}
		g.Expect(s.Client.Status().Update(ctx, lost)).To(Succeed())
		eventually(t, func(g Gomega) {
			found := l.config(ctx, g, config.Name).Status
			g.Expect(found.Initialization.DataSecretCreated).To(HaveValue(BeTrue()))
			g.Expect(found.DataSecretName).To(Equal(config.Status.DataSecretName))
			g.Expect(conditions.IsTrue(l.config(ctx, g, config.Name), clusterv1.ReadyCondition)).To(BeTrue())
		})
		consistently(t, func(g Gomega) { g.Expect(made(g)).To(Equal(before)) })
	})
	t.Run("BOOT-34 BOOT-22 a Machine that came with its data gets neither new data nor an image, and its Secret an owner", func(t *testing.T) {
		t.Parallel()
		l := newProvidedLab(t, "restored", 0)
		ctx := t.Context()
		data := map[string][]byte{"value": []byte("of another life")}
		l.create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "m-0", Labels: map[string]string{clusterv1.ClusterNameLabel: labCluster}},
			Type:       clusterv1.ClusterSecretType, Data: data,
		}, l.newConfig("m-0"))
		machine := l.newMachine("m-0")
		machine.Spec.Bootstrap.DataSecretName = ptr.To("m-0")
		l.create(t, machine)
		eventually(t, func(g Gomega) {
			status := l.config(ctx, g, "m-0").Status
			g.Expect(status.Initialization.DataSecretCreated).To(HaveValue(BeTrue()))
			g.Expect(status.DataSecretName).To(Equal("m-0"))
		})
		l.expectOwned(t)
		consistently(t, func(g Gomega) {
			g.Expect(l.secret(ctx, g, "m-0").Data).To(Equal(data))
			g.Expect(l.infraEnvs(ctx, g)).To(BeEmpty())
		})
	})
}

func TestContractPause(t *testing.T) {
	l := newPublishedLab(t, "paused")
	pauses := map[string]func(t *testing.T, paused bool){
		"BOOT-41 with its Cluster": func(t *testing.T, paused bool) { l.pause(t, paused) },
		"BOOT-41 by its annotation": func(t *testing.T, paused bool) {
			config := l.config(t.Context(), NewWithT(t), "m-0")
			l.change(t, config, func() {
				delete(config.Annotations, clusterv1.PausedAnnotation)
				if paused {
					metav1.SetMetaDataAnnotation(&config.ObjectMeta, clusterv1.PausedAnnotation, "")
				}
			})
		},
	}
	for name, pause := range pauses {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			pause(t, true)
			l.expectReason(t, clusterv1.PausedCondition, clusterv1.PausedReason)
			l.disown(t, "m-0")
			l.wake(t, "m-0")
			config := l.config(ctx, NewWithT(t), "m-0")
			consistently(t, func(g Gomega) {
				g.Expect(l.secret(ctx, g, "m-0").OwnerReferences).To(BeEmpty())
				g.Expect(l.config(ctx, g, "m-0").ResourceVersion).To(Equal(config.ResourceVersion))
			})
			pause(t, false)
			l.expectOwned(t)
			l.expectReason(t, clusterv1.PausedCondition, clusterv1.NotPausedReason)
		})
	}
}

func TestContractTemplate(t *testing.T) {
	l := newProvidedLab(t, "template", 0)
	template := &bootstrapv1.OpenshiftAssistedConfigTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "workers"},
		Spec: bootstrapv1.OpenshiftAssistedConfigTemplateSpec{Template: bootstrapv1.OpenshiftAssistedConfigTemplateResource{
			ObjectMeta: clusterv1.ObjectMeta{
				Labels: map[string]string{"example.com/pool": "a"}, Annotations: map[string]string{"example.com/note": "b"},
			},
			Spec: l.newConfig("").Spec,
		}},
	}
	l.create(t, template, l.newMetal3MachineTemplate("workers"), l.newMachineDeployment("workers"))
	t.Run("BOOT-11 its labels, annotations and spec reach the configs that core makes from it", func(t *testing.T) {
		eventually(t, func(g Gomega) {
			configs := l.configs(t.Context(), g, l.namespace)
			g.Expect(configs).To(HaveLen(1))
			g.Expect(configs[0].Labels).To(HaveKeyWithValue("example.com/pool", "a"))
			g.Expect(configs[0].Annotations).To(HaveKeyWithValue("example.com/note", "b"))
			g.Expect(configs[0].Spec).To(Equal(template.Spec.Template.Spec))
		})
	})
	t.Run("BOOT-40 it may be changed, in earnest and in a topology's dry-run", func(t *testing.T) {
		g := NewWithT(t)
		changed := &bootstrapv1.OpenshiftAssistedConfigTemplate{}
		l.get(t.Context(), g, changed, l.namespace, template.Name)
		changed.Spec.Template.Spec.CPUArchitecture = "aarch64"
		g.Expect(l.Client.Update(t.Context(), changed.DeepCopy(), client.DryRunAll)).To(Succeed())
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, clusterv1.TopologyDryRunAnnotation, "")
		g.Expect(l.Client.Update(t.Context(), changed, client.DryRunAll)).To(Succeed())
	})
}

// newMetal3MachineTemplate is a template of Metal3Machines as newMetal3Machine makes them.
func (l *lab) newMetal3MachineTemplate(name string) client.Object {
	template := l.newMetal3Machine(name)
	template.SetKind(metal3.MachineKind + "Template")
	template.Object["spec"] = map[string]any{"template": map[string]any{"spec": template.Object["spec"]}}
	return template
}

func (l *lab) newMachineDeployment(name string) *clusterv1.MachineDeployment {
	spec := l.newMachine(name).Spec
	spec.Bootstrap.ConfigRef.Kind += "Template"
	spec.InfrastructureRef.Kind += "Template"
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: labCluster, Replicas: ptr.To[int32](1), Template: clusterv1.MachineTemplateSpec{Spec: spec},
		},
	}
}
