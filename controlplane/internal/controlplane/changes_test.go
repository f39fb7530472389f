// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// waitingWorld is a world whose AgentClusterInstall waits for hosts.
func waitingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 3, 0)
	w.run(nil, func() bool { return w.install() != nil && w.install().Status.DebugInfo.State != "" })
	return w
}

func askForProxy(spec *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
	spec.Install.Proxy.HTTPProxy = "http://proxy.example.com"
}

func TestChangeBeforeTheInstallation(t *testing.T) {
	g := NewWithT(t)
	w := waitingWorld(t)
	w.changeSpec(askForProxy)
	w.reconcile()
	install := w.install()
	g.Expect(install.Spec.Proxy).NotTo(BeNil())
	g.Expect(install.Spec.Proxy.HTTPProxy).To(Equal("http://proxy.example.com"))
	g.Expect(install.Spec.HoldInstallation).To(BeTrue())

	w.reconcile()
	g.Expect(w.install().ResourceVersion).To(Equal(install.ResourceVersion), "nothing is left to write")

	w.changeSpec(func(spec *controlplanev1.OpenshiftAssistedControlPlaneSpec) { spec.Install.Proxy.HTTPProxy = "" })
	w.reconcile()
	g.Expect(w.install().Spec.Proxy).To(BeNil())
	w.run(nil, w.available)
}

// TestChangeWhenTheHoldIsCleared: the service may begin at any moment, so the change comes after another hold.
func TestChangeWhenTheHoldIsCleared(t *testing.T) {
	g := NewWithT(t)
	w := waitingWorld(t)
	install := w.install()
	install.Spec.HoldInstallation = false
	install.Annotations[assisted.DayOneAgentsAnnotation] = "agent-cp-0,agent-cp-1,agent-cp-2"
	w.must(w.client.Update(context.Background(), install))
	w.changeSpec(askForProxy)
	w.reconcile()
	install = w.install()
	g.Expect(install.Spec.HoldInstallation).To(BeTrue())
	g.Expect(install.Annotations).NotTo(HaveKey(assisted.DayOneAgentsAnnotation))
	g.Expect(install.Spec.Proxy).To(BeNil())
	w.reconcile()
	g.Expect(w.install().Spec.Proxy).NotTo(BeNil())
	w.run(nil, w.available)
}

// TestChangeDuringTheInstallation: the webhook refuses it; one that came a moment too late is never written.
func TestChangeDuringTheInstallation(t *testing.T) {
	for _, stage := range []int{1, 2, 3, 4} {
		w := newWorld(t, 3, 0)
		w.run(nil, func() bool { return w.stage >= stage })
		w.changeSpec(askForProxy)
		w.reconcile()
		NewWithT(t).Expect(w.install().Spec.Proxy).To(BeNil(), "stage %d", stage)
	}
}

func TestHoldOfTheUser(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 1)
	w.unbootable["worker-0"] = true
	w.changeSpec(func(spec *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		spec.Install.HoldInstallation = new(true)
	})
	w.run(nil, func() bool {
		return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationOnHoldReason
	})
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("on hold until spec.install.holdInstallation is false"))
	for range 10 {
		w.reconcile()
		w.service()
	}
	g.Expect(w.install().Spec.HoldInstallation).To(BeTrue())
	_, closed := assisted.DayOneAgents(w.install())
	g.Expect(closed).To(BeFalse(), "hosts may join while the user holds the installation")

	w.changeSpec(func(spec *controlplanev1.OpenshiftAssistedControlPlaneSpec) { spec.Install.HoldInstallation = nil })
	w.run(nil, w.available)
}

// TestRefusedInstall: what the API server says about the AgentClusterInstall is told, and tried again.
func TestRefusedInstall(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.refuse = func(o client.Object) error {
		if _, ok := o.(*unstructured.Unstructured); ok && o.GetObjectKind().GroupVersionKind().Kind == "AgentClusterInstall" {
			return apierrors.NewBadRequest(`strict decoding error: unknown field "spec.ntpSources"`)
		}
		return nil
	}
	g.Eventually(w.try).WithTimeout(time.Minute).Should(HaveOccurred())
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.InstallRefusedReason))
	g.Expect(w.try()).To(MatchError(ContainSubstring("spec.ntpSources")))
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring(`unknown field "spec.ntpSources"`))
	g.Expect(w.machines()).To(HaveLen(3), "they wait for nothing: their hosts can be prepared meanwhile")
	w.refuse = nil
	w.run(nil, w.available)
}

// TestNetworksThatCannotBe: nothing is created before the Cluster's networks and install's fit together.
func TestNetworksThatCannotBe(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.changeSpec(func(spec *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		spec.Install.Networking.MachineNetwork = []string{"172.30.1.0/24"}
	})
	w.run(nil, func() bool {
		return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InvalidNetworksReason
	})
	g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("172.30.0.0/16"))
	g.Expect(w.install()).To(BeNil())
}

// TestNetworksThatChangeTooLate: an installation that has begun goes on, whatever becomes of the Cluster's networks.
func TestNetworksThatChangeTooLate(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.changeSpec(func(spec *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		spec.Install.Networking.MachineNetwork = []string{"192.0.2.0/24"}
	})
	w.run(nil, func() bool { return w.stage >= 1 })
	w.changeCluster(func(cluster *clusterv1.Cluster) {
		cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"192.0.0.0/14"}
	})
	w.run(nil, w.available)
}

// TestTimeToRegister: hosts get another time to register whenever the user wants it, and nothing else of the installation changes.
func TestTimeToRegister(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	give := func(seconds *int32) {
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Install.HostRegistrationTimeoutSeconds = seconds
		})
	}
	give(new(int32(600)))
	w.run(nil, func() bool { return w.install() != nil })
	g.Expect(assisted.HostRegistrationTimeout(w.install())).To(Equal(10 * time.Minute))
	for _, stage := range []int{1, 2, 4} {
		w.run(nil, func() bool { return w.stage >= stage })
		w.reconcile()
		before := w.install()
		give(new(int32(0)))
		w.reconcile()
		g.Expect(assisted.HostRegistrationTimeout(w.install())).To(BeZero(), "stage %d", stage)
		give(nil)
		w.reconcile()
		after := w.install()
		g.Expect(assisted.HostRegistrationTimeout(after)).To(Equal(30*time.Minute), "stage %d", stage)
		g.Expect(after.Spec).To(Equal(before.Spec), "stage %d", stage)
		w.reconcile()
		g.Expect(w.install().ResourceVersion).To(Equal(after.ResourceVersion), "nothing is left to write")
	}
	w.run(nil, w.available)
}
