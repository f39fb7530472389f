// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// claimed waits until a host of the scene was recognised, and returns it.
func (s scene) claimed(ctx context.Context) types.NamespacedName {
	GinkgoHelper()
	var host types.NamespacedName
	s.await(ctx, installTimeout, "a host that is recognised", func(ctx context.Context) (string, error) {
		for i := range s.hosts {
			host = s.host(i)
			key, ok := world.Assisted.AgentOf(host)
			if !ok {
				continue
			}
			agent := &assisted.Agent{}
			if err := world.Watch.Get(ctx, key, agent); client.IgnoreNotFound(err) != nil {
				return "", err
			}
			if agent.Annotations[bootstrapv1.ClaimAnnotation] != "" {
				return "", nil
			}
		}
		return "no host was recognised", nil
	})
	return host
}

// eachHost calls do for the hosts of the scene.
func (s scene) eachHost(do func(host types.NamespacedName)) {
	for i := range s.hosts {
		do(s.host(i))
	}
}

// host is the BareMetalHost with an index.
func (s scene) host(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: s.request.Namespace, Name: fmt.Sprintf("host-%d", i)}
}

// touch changes an object, which brings its next pass: nobody watches all Secrets.
func touch(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(world.Client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	annotations["example.com/touched"] = fmt.Sprint(time.Now())
	Expect(world.Change(ctx, o, func() { o.SetAnnotations(annotations) })).To(Succeed())
}

// expectControlled removes the owners of an object and waits until its controller has it back.
func expectControlled(ctx context.Context, o, owner client.Object) {
	GinkgoHelper()
	key := client.ObjectKeyFromObject(o)
	Expect(world.Client.Get(ctx, key, o)).To(Succeed())
	controller := metav1.GetControllerOf(o)
	Expect(controller).NotTo(BeNil())
	Expect(world.Change(ctx, o, func() { o.SetOwnerReferences(nil) })).To(Succeed())
	touch(ctx, owner)
	Eventually(func(g Gomega) {
		g.Expect(world.Client.Get(ctx, key, o)).To(Succeed())
		g.Expect(metav1.GetControllerOf(o)).To(HaveValue(HaveField("UID", controller.UID)))
	}).WithContext(ctx).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())
}

var _ = Describe("what somebody else breaks", func() {
	It("is made good: Agents, owners and Secrets", func(ctx SpecContext) {
		s := newScene(ctx, "repair", "demo", sandbox.Compact, 0, 71)
		By("keeping the ClusterImageSet of a control plane of that name that vanished")
		Expect(world.Client.Create(ctx, sandbox.Leftovers(s.request.Namespace, s.install().Name, nil)[0])).To(Succeed())
		faults := world.Assisted.Faults()
		// The installation must not begin before the Agent is lost: it would go on with a member too few, for ever.
		s.eachHost(func(host types.NamespacedName) { faults.HostValidationFails(host, "ntp-synced", "not yet") })
		s.apply(ctx)
		By("losing the Agent of a host that was recognised")
		Expect(faults.AgentVanishes(ctx, s.claimed(ctx), 0)).To(Succeed())
		s.eachHost(func(host types.NamespacedName) { faults.HostValidationFails(host, "ntp-synced", "") })
		s.expectRunning(ctx)

		machines, err := world.Machines(ctx, s.key())
		Expect(err).NotTo(HaveOccurred())
		named := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: s.request.Namespace, Name: name}
		}
		machine := &clusterv1.Machine{ObjectMeta: named(machines[0].Name)}
		config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: named(machines[0].Spec.Bootstrap.ConfigRef.Name)}
		data := &corev1.Secret{ObjectMeta: named(*machines[0].Spec.Bootstrap.DataSecretName)}
		controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: named(s.install().Name)}
		By("removing owners")
		expectControlled(ctx, data, config)
		expectControlled(ctx, &corev1.Secret{ObjectMeta: named(secret.Name(s.request.Name, secret.Kubeconfig))}, controlPlane)
		expectControlled(ctx, machine, controlPlane)

		By("asking for another label on Machines")
		Expect(world.Client.Get(ctx, client.ObjectKeyFromObject(controlPlane), controlPlane)).To(Succeed())
		labels := map[string]string{"example.com/rack": "a"}
		Expect(world.Change(ctx, controlPlane, func() { controlPlane.Spec.MachineTemplate.ObjectMeta.Labels = labels })).To(Succeed())
		infraMachine := &metav1.PartialObjectMetadata{ObjectMeta: named(machine.Name)}
		infraMachine.SetGroupVersionKind(
			schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "Metal3Machine"},
		)
		for _, o := range []client.Object{machine, config, infraMachine} {
			Eventually(func(g Gomega) {
				g.Expect(world.Client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
				g.Expect(o.GetLabels()).To(HaveKeyWithValue("example.com/rack", "a"))
			}).WithContext(ctx).WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed(), "%T", o)
		}

		By("deleting the bootstrap data")
		Expect(world.Client.Delete(ctx, data)).To(Succeed())
		touch(ctx, config)
		Eventually(world.Client.Get).WithArguments(ctx, client.ObjectKeyFromObject(data), data).
			WithTimeout(settleTimeout).WithPolling(time.Second).Should(Succeed())

		By("leaving an Agent and an installation of what does not exist behind")
		infraEnvs := &assisted.InfraEnvList{}
		Expect(world.Client.List(ctx, infraEnvs, client.InNamespace(s.request.Namespace))).To(Succeed())
		Expect(infraEnvs.Items).NotTo(BeEmpty())
		left := append(sandbox.Leftovers(s.request.Namespace, "left", nil), sandbox.LeftAgent(&infraEnvs.Items[0], "left"))
		for _, o := range left {
			Expect(world.Client.Create(ctx, o)).To(Succeed())
		}
		for _, o := range left {
			Eventually(func() bool { return apierrors.IsNotFound(world.Client.Get(ctx, client.ObjectKeyFromObject(o), o)) }).
				WithContext(ctx).WithTimeout(settleTimeout).WithPolling(time.Second).Should(BeTrue(), "%T", o)
		}
		s.expectRunning(ctx)
		s.delete(ctx)
	})
})
