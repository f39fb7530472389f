// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index/indextest"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const namespace = "ns"

func machine(name string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: name,
	}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: metal3.InfrastructureGroup, Kind: metal3.MachineKind, Name: name,
	}
	return m
}

func config(name string, recognized metav1.ConditionStatus) *bootstrapv1.OpenshiftAssistedConfig {
	c := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: types.UID(namespace + name)}}},
	}
	conditions.Set(c, metav1.Condition{Type: bootstrapv1.HostRecognizedCondition, Status: recognized, Reason: "Test"})
	return c
}

func mapperOf(t *testing.T, objects ...client.Object) Mapper {
	t.Helper()
	return Mapper{Client: indextest.NewReader(objects...)}
}

func names(requests []reconcile.Request) []string {
	var names []string
	for _, r := range requests {
		names = append(names, r.String())
	}
	return names
}

// TestFromInfraMachine: a Metal3Machine is that of the Machine that refers to it, and not of one that refers to another kind by its name.
func TestFromInfraMachine(t *testing.T) {
	foreign := machine("a")
	foreign.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: metal3.InfrastructureGroup, Kind: "OtherMachine", Name: "m-0",
	}
	infraMachine := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m-0"}}
	g := NewWithT(t)
	m := mapperOf(t, foreign, config("a", metav1.ConditionTrue), machine("m-0"), config("m-0", metav1.ConditionTrue))
	g.Expect(names(m.FromInfraMachine(context.Background(), infraMachine))).To(Equal([]string{"ns/m-0"}))
	host := &bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "host"}}
	host.Spec.ConsumerRef = &corev1.ObjectReference{Name: "m-0"}
	g.Expect(names(m.FromHost(context.Background(), host))).To(Equal([]string{"ns/m-0"}))
}

// TestFromClaimedAgent: the Agent's deletion wakes whoever waits for it, also when one of Machine and config has vanished.
func TestFromClaimedAgent(t *testing.T) {
	agent := &assisted.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Annotations: map[string]string{bootstrapv1.ClaimAnnotation: "m-0/nsm-0"}},
	}
	successor := machine("m-0")
	successor.UID = "successor"
	for name, tt := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"both exist":                        {[]client.Object{machine("m-0"), config("m-0", "True")}, []string{"ns/m-0"}},
		"the config has vanished":           {[]client.Object{machine("m-0")}, []string{"ns/m-0"}},
		"the Machine is gone":               {[]client.Object{config("m-0", "True")}, []string{"ns/m-0"}},
		"another Machine has the same name": {[]client.Object{successor}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(names(mapperOf(t, tt.objects...).FromClaimedAgent(context.Background(), agent))).To(Equal(tt.want))
		})
	}
}

// TestFromNMStateConfig: an NMStateConfig belongs to the InfraEnv that owns it, and to the config that made it before there was one.
func TestFromNMStateConfig(t *testing.T) {
	user, maker := config("user", "False"), config("maker", "False")
	user.Annotations = map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}
	user.Spec.StaticNetworking.Source = bootstrapv1.StaticNetworkingBareMetalHosts
	m := mapperOf(t, user, maker)
	owned := func(kind, name string) *assisted.NMStateConfig {
		n := &assisted.NMStateConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{bootstrapv1.NMStateInfraEnvLabel: "x"}},
		}
		n.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name}}
		return n
	}
	g := NewWithT(t)
	g.Expect(names(m.FromNMStateConfig(context.Background(), owned("InfraEnv", "demo-x")))).To(Equal([]string{"ns/user"}))
	g.Expect(names(m.FromNMStateConfig(context.Background(), owned("OpenshiftAssistedConfig", "maker")))).To(Equal([]string{"ns/maker"}))
	g.Expect(names(m.FromNMStateConfig(context.Background(), owned("Other", "maker")))).To(BeEmpty())
	users := owned("InfraEnv", "demo-x")
	users.Labels = nil
	g.Expect(names(m.FromNMStateConfig(context.Background(), users))).To(BeEmpty(), "a user's own")
}

// TestFromInfraEnv: the deletion of a foreign InfraEnv triggers a reconcile of the configs that wait for its name, though it has no label
// of ours.
func TestFromInfraEnv(t *testing.T) {
	user := config("user", "False")
	user.Annotations = map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}
	foreign := &assisted.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-x"}}
	m := mapperOf(t, user, config("other", "False"))
	NewWithT(t).Expect(names(m.FromInfraEnv(context.Background(), foreign))).To(Equal([]string{"ns/user"}))
}
