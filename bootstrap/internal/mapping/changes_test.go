// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/api/common"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// TestHostNetworks: of the changes of a BareMetalHost, those that decide who may get it and with which network wake every config that may
// still get a host, and the choice of it those that have handed out no medium.
func TestHostNetworks(t *testing.T) {
	for name, tt := range map[string]struct {
		change           func(*bmov1alpha1.BareMetalHost)
		networks, chosen bool
	}{
		"its state":        {change: func(h *bmov1alpha1.BareMetalHost) { h.Status.Provisioning.State = bmov1alpha1.StateProvisioned }},
		"its labels":       {change: func(h *bmov1alpha1.BareMetalHost) { h.Labels = map[string]string{"a": "b"} }, networks: true},
		"its network data": {change: func(h *bmov1alpha1.BareMetalHost) { h.Spec.PreprovisioningNetworkDataName = "x" }, networks: true},
		"its hardware": {change: func(h *bmov1alpha1.BareMetalHost) {
			h.Status.HardwareDetails = &bmov1alpha1.HardwareDetails{NIC: []bmov1alpha1.NIC{{Name: "eno1", MAC: "aa:01"}}}
		}, networks: true},
		"its deletion": {change: func(h *bmov1alpha1.BareMetalHost) { h.DeletionTimestamp = ptr.To(metav1.Now()) }, networks: true},
		"its Machine": {change: func(h *bmov1alpha1.BareMetalHost) {
			h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: metal3.MachineKind, Name: "x"}
		}, chosen: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := bareMetalHost("x", "", "aa:00", "")
			after := before.DeepCopy()
			tt.change(after)
			change := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			NewWithT(t).Expect(HostNetworks.Update(change)).To(Equal(tt.networks))
			NewWithT(t).Expect(ChosenHosts.Update(change)).To(Equal(tt.chosen))
		})
	}
	g := NewWithT(t)
	networked := func(name string, published bool, recognized metav1.ConditionStatus) *bootstrapv1.OpenshiftAssistedConfig {
		c := config(name, recognized)
		c.Spec.StaticNetworking.Source = bootstrapv1.StaticNetworkingBareMetalHosts
		c.Status.Initialization.DataSecretCreated = ptr.To(published)
		return c
	}
	m := mapperOf(t, config("other", "False"), networked("new", false, "False"), networked("waiting", true, "False"),
		networked("running", true, "True"))
	host := bareMetalHost("x", "", "aa:00", "")
	g.Expect(names(m.FromHostNetwork(t.Context(), host))).To(ConsistOf("ns/new", "ns/waiting"))
	g.Expect(names(m.FromChosenHost(t.Context(), host))).To(ConsistOf("ns/new"))
}

// TestInstalls: of the changes of an AgentClusterInstall, those that its hosts see wake them. The states in which it accepts hosts take
// turns.
func TestInstalls(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*hiveext.AgentClusterInstall)
		want   bool
	}{
		"another of the states in which it accepts hosts": {
			change: func(i *hiveext.AgentClusterInstall) { i.Status.DebugInfo.State = assisted.ClusterStateReady },
		},
		"a check": {change: func(i *hiveext.AgentClusterInstall) {
			i.Status.ValidationsInfo = common.ValidationsStatus{"network": {{ID: "x", Status: "failure"}}}
		}},
		"it accepts no hosts": {
			change: func(i *hiveext.AgentClusterInstall) { i.Status.DebugInfo.State = assisted.ClusterStateInstalling }, want: true,
		},
		"its phase": {change: func(i *hiveext.AgentClusterInstall) {
			i.Status.Conditions = []hivev1.ClusterInstallCondition{{Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionTrue}}
		}, want: true},
		"day 1 is closed": {change: func(i *hiveext.AgentClusterInstall) {
			i.Annotations = map[string]string{assisted.DayOneAgentsAnnotation: "a-0"}
		}, want: true},
		"its workers": {change: func(i *hiveext.AgentClusterInstall) { i.Spec.ProvisionRequirements.WorkerAgents = 1 }, want: true},
		"its Cluster": {
			change: func(i *hiveext.AgentClusterInstall) { i.Labels = map[string]string{clusterv1.ClusterNameLabel: "demo"} }, want: true,
		},
		"its successor": {change: func(i *hiveext.AgentClusterInstall) { i.UID = "x" }, want: true},
		"its deletion":  {change: func(i *hiveext.AgentClusterInstall) { i.DeletionTimestamp = ptr.To(metav1.Now()) }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &hiveext.AgentClusterInstall{}
			before.Status.DebugInfo.State = assisted.ClusterStateInsufficient
			after := before.DeepCopy()
			tt.change(after)
			NewWithT(t).Expect(Installs.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tt.want))
		})
	}
}

// TestUsers: what changes in an InfraEnv wakes its users; one user more, or less, wakes those who want to join or to leave, who has joined,
// and who was taken off. Those who have joined before sleep on.
func TestUsers(t *testing.T) {
	g := NewWithT(t)
	user := func(name string, published bool) *bootstrapv1.OpenshiftAssistedConfig {
		c := config(name, "False")
		c.UID, c.Annotations = types.UID("uid-"+name), map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}
		c.Status.Initialization.DataSecretCreated = ptr.To(published)
		return c
	}
	leaving := user("leaving", true)
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Now()), []string{"x"}
	m := mapperOf(t, user("settled", true), user("joins", false), user("joined", false), user("waits", false), user("removed", true), leaving)
	infraEnv := func(users ...string) *assisted.InfraEnv {
		e := &assisted.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo-x"}}
		for _, name := range users {
			e.OwnerReferences = append(e.OwnerReferences, metav1.OwnerReference{Name: name, UID: types.UID("uid-" + name)})
		}
		return e
	}
	before, after := infraEnv("settled", "leaving", "waits", "removed"), infraEnv("settled", "leaving", "waits", "joined")
	after.ResourceVersion = "2"
	g.Expect(InfraEnvs.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeFalse())
	g.Expect(names(m.fromUsers(t.Context(), before, after))).To(ConsistOf("ns/joins", "ns/joined", "ns/leaving", "ns/removed"))
	after.Status.ISODownloadURL = "https://images.example.com/1"
	g.Expect(InfraEnvs.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
}
