// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/openshift/hive/apis/hive/v1/agent"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

const (
	// labCluster is the name of the Cluster in every lab.
	labCluster = "lab"
	// labMachine is the Machine of most labs.
	labMachine = "m-0"

	placeholderURL = "http://placeholder.invalid/replaced-by-the-bootstrap-provider.iso"

	metal3Version = "v1beta1"
)

func isPlaceholder(url string) bool { return strings.Contains(url, "placeholder.invalid") }

// lab is a namespace with a Cluster that has no control plane, so that a test takes every step of its Machines itself.
type lab struct {
	*scene
	namespace string
}

// newLab makes a lab with a Cluster whose infrastructure is not there yet, and with as many BareMetalHosts.
func newLab(t *testing.T, namespace string, hosts int) *lab {
	t.Helper()
	l := &lab{scene: shared, namespace: namespace}
	NewWithT(t).Expect(l.CreateInputs(t.Context(), namespace, hosts)).To(Succeed())
	l.create(t, &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: labCluster},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: metal3.InfrastructureGroup, Kind: "Metal3Cluster", Name: labCluster,
		}},
	})
	return l
}

// newProvidedLab makes a lab whose Cluster has its infrastructure.
func newProvidedLab(t *testing.T, namespace string, hosts int) *lab {
	t.Helper()
	l := newLab(t, namespace, hosts)
	l.provide(t)
	return l
}

// newPublishedLab makes a lab without hosts, with a Machine m-0 whose data is published.
func newPublishedLab(t *testing.T, namespace string) *lab {
	t.Helper()
	l := newProvidedLab(t, namespace, 0)
	l.publish(t, labMachine)
	return l
}

// create creates objects in the lab.
func (l *lab) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(l.namespace)
		NewWithT(t).Expect(l.Client.Create(t.Context(), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// provide gives the Cluster its infrastructure.
func (l *lab) provide(t *testing.T) {
	t.Helper()
	infrastructure := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"controlPlaneEndpoint": map[string]any{"host": addresses + "99", "port": int64(6443)}, "cloudProviderEnabled": false,
	}}}
	infrastructure.SetAPIVersion(metal3.InfrastructureGroup + "/" + metal3Version)
	infrastructure.SetKind("Metal3Cluster")
	infrastructure.SetName(labCluster)
	// Core sets the owner when it looks again for what it did not find, which takes half a minute.
	infrastructure.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: labCluster, UID: l.cluster(t.Context(), NewWithT(t)).UID,
	}})
	l.create(t, infrastructure)
	eventually(t, func(g Gomega) {
		g.Expect(l.cluster(t.Context(), g).Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()))
	})
}

// publish makes a Machine and waits until its data is published, and was looked at.
func (l *lab) publish(t *testing.T, name string) {
	t.Helper()
	l.create(t, l.newConfig(name), l.newMetal3Machine(name), l.newMachine(name))
	eventually(t, func(g Gomega) {
		g.Expect(l.config(t.Context(), g, name).Status.Initialization.DataSecretCreated).To(HaveValue(BeTrue()))
		g.Expect(l.machine(t.Context(), g, name).Status.Initialization.BootstrapDataSecretCreated).To(HaveValue(BeTrue()))
		g.Expect(l.always.sawPublished(l.config(t.Context(), g, name))).To(BeTrue())
	})
}

func (l *lab) newConfig(name string) *bootstrapv1.OpenshiftAssistedConfig {
	return &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       bootstrapv1.OpenshiftAssistedConfigSpec{PullSecretRef: bootstrapv1.LocalSecretReference{Name: sandbox.PullSecretName}},
	}
}

func (l *lab) newMachine(name string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: labCluster,
			Version:     sandbox.KubernetesVersion,
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: name,
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: metal3.InfrastructureGroup, Kind: metal3.MachineKind, Name: name,
			},
		},
	}
}

func (l *lab) newMetal3Machine(name string) *unstructured.Unstructured {
	machine := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"image": map[string]any{"url": placeholderURL, "checksum": "", "format": "live-iso"},
	}}}
	machine.SetAPIVersion(metal3.InfrastructureGroup + "/" + metal3Version)
	machine.SetKind(metal3.MachineKind)
	machine.SetName(name)
	return machine
}

// newClusterDeployment is what the control plane provider would make: it names the cluster's pull secret.
func (l *lab) newClusterDeployment() *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: labCluster, Labels: map[string]string{clusterv1.ClusterNameLabel: labCluster}},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: labCluster, BaseDomain: "sandbox.example.com", Platform: hivev1.Platform{AgentBareMetal: &agent.BareMetalPlatform{}},
			PullSecretRef: &corev1.LocalObjectReference{Name: sandbox.PullSecretName},
			ClusterInstallRef: &hivev1.ClusterInstallLocalReference{
				Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall", Name: labCluster,
			},
		},
	}
}

// read returns the lab's object of a kind that has the name, past every cache.
func read[T client.Object](ctx context.Context, g Gomega, l *lab, name string, object T) T {
	l.get(ctx, g, object, l.namespace, name)
	return object
}

func (l *lab) cluster(ctx context.Context, g Gomega) *clusterv1.Cluster {
	return read(ctx, g, l, labCluster, &clusterv1.Cluster{})
}

func (l *lab) config(ctx context.Context, g Gomega, name string) *bootstrapv1.OpenshiftAssistedConfig {
	return read(ctx, g, l, name, &bootstrapv1.OpenshiftAssistedConfig{})
}

func (l *lab) machine(ctx context.Context, g Gomega, name string) *clusterv1.Machine {
	return read(ctx, g, l, name, &clusterv1.Machine{})
}

func (l *lab) secret(ctx context.Context, g Gomega, name string) *corev1.Secret {
	return read(ctx, g, l, name, &corev1.Secret{})
}

func (l *lab) metal3Machine(ctx context.Context, g Gomega, name string) *unstructured.Unstructured {
	return read(ctx, g, l, name, l.newMetal3Machine(name))
}

func (l *lab) infraEnvs(ctx context.Context, g Gomega) []assisted.InfraEnv {
	list := &assisted.InfraEnvList{}
	g.Expect(l.Client.List(ctx, list, client.InNamespace(l.namespace))).To(Succeed())
	return list.Items
}

// dataSecrets are the Secrets of Cluster API's type.
func (l *lab) dataSecrets(ctx context.Context, g Gomega) []corev1.Secret {
	list := &corev1.SecretList{}
	g.Expect(l.Client.List(ctx, list, client.InNamespace(l.namespace), client.MatchingFields{"type": string(clusterv1.ClusterSecretType)})).
		To(Succeed())
	return list.Items
}

// disown takes owner and label off a config's Secret, which a manager that looks at the config repairs.
func (l *lab) disown(t *testing.T, name string) {
	t.Helper()
	secret := l.secret(t.Context(), NewWithT(t), name)
	l.change(t, secret, func() { secret.OwnerReferences, secret.Labels = nil, nil })
}

// wake causes an event of a config that changes nothing that the provider reads.
func (l *lab) wake(t *testing.T, name string) {
	t.Helper()
	config := l.config(t.Context(), NewWithT(t), name)
	l.change(t, config, func() {
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, "example.com/woken-at", config.ResourceVersion)
	})
}

// expectOwned waits until the Secret of Machine m-0 belongs to its config again.
func (l *lab) expectOwned(t *testing.T) {
	t.Helper()
	eventually(t, func(g Gomega) {
		secret := l.secret(t.Context(), g, labMachine)
		g.Expect(metav1.IsControlledBy(secret, l.config(t.Context(), g, labMachine))).To(BeTrue())
		g.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, labCluster))
	})
}

// pause pauses or unpauses the lab's Cluster.
func (l *lab) pause(t *testing.T, paused bool) {
	t.Helper()
	l.pauseCluster(t, types.NamespacedName{Namespace: l.namespace, Name: labCluster}, paused)
}

// expectReason waits until a condition of the config of Machine m-0 has the reason.
func (l *lab) expectReason(t *testing.T, conditionType, reason string) {
	t.Helper()
	eventually(t, func(g Gomega) {
		g.Expect(conditions.Get(l.config(t.Context(), g, labMachine), conditionType)).To(HaveValue(HaveField("Reason", reason)))
	})
}
