// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/release"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

const releaseImage = "quay.io/openshift-release-dev/ocp-release:4.20.4-x86_64"

// fakeReleases answers what it is told.
type fakeReleases struct {
	answer  release.Answer
	asked   []release.Request
	forgot  []types.NamespacedName
	expects types.NamespacedName
}

func (f *fakeReleases) Lookup(_ context.Context, controlPlane types.NamespacedName, request release.Request) release.Answer {
	f.expects = controlPlane
	f.asked = append(f.asked, request)
	return f.answer
}

func (f *fakeReleases) Forget(controlPlane types.NamespacedName) {
	f.forgot = append(f.forgot, controlPlane)
}

func expectRelease(t *testing.T, w *world, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	g := NewWithT(t)
	condition := conditions.Get(w.controlPlane(), controlplanev1.ReleaseResolvedCondition)
	g.Expect(condition).NotTo(BeNil())
	g.Expect(*condition).To(And(HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
}

// begin runs the first passes: one adds the finalizer, one the condition Paused, and one does the rest.
func (w *world) begin() {
	for range 3 {
		w.reconcile()
	}
}

func TestRelease(t *testing.T) {
	found := &release.Release{
		Digest: "sha256:1", Version: "4.20.4", KubernetesVersion: "v1.33.5", Architectures: []bootstrapv1.CPUArchitecture{"aarch64", "x86_64"},
	}
	t.Run("a release is looked up until status tells of it", func(t *testing.T) {
		g := NewWithT(t)
		releases := &fakeReleases{}
		w := newWorld(t, 3, 0)
		w.r.Releases = releases
		w.begin()
		expectRelease(t, w, metav1.ConditionUnknown, controlplanev1.ReleaseResolvingReason, releaseImage)
		g.Expect(w.machines()).NotTo(BeEmpty(), "nothing waits for the registry")
		g.Expect(releases.expects).To(Equal(key))
		g.Expect(releases.asked[0]).To(Equal(release.Request{Image: releaseImage, PullSecret: "pull"}))

		releases.answer = release.Answer{Err: fmt.Errorf("%w: etcdserver: request timed out", release.ErrManagementCluster)}
		w.reconcile()
		expectRelease(t, w, metav1.ConditionUnknown, controlplanev1.ReleaseResolvingReason, "the management cluster did not let the manager read")

		releases.answer = release.Answer{Err: fmt.Errorf("%w: dial 203.0.113.7:41234", release.ErrTimeout)}
		w.reconcile()
		expectRelease(t, w, metav1.ConditionFalse, controlplanev1.ReleaseNotResolvedReason, releaseImage+": the registry did not answer in time;")
		g.Expect(w.controlPlane().Status.Release).To(BeZero())

		releases.answer = release.Answer{Release: found}
		w.reconcile()
		expectRelease(t, w, metav1.ConditionTrue, controlplanev1.ReleaseResolvedReason, "")
		want := controlplanev1.ReleaseStatus{
			Image: releaseImage, Digest: "sha256:1", Version: "4.20.4", KubernetesVersion: "v1.33.5", Architectures: []string{"aarch64", "x86_64"},
		}
		g.Expect(w.controlPlane().Status.Release).To(Equal(want))
		g.Expect(conditions.GetMessage(w.controlPlane(), controlplanev1.VersionsMatchCondition)).To(ContainSubstring("to v1.33.5"))

		asked := len(releases.asked)
		releases.answer = release.Answer{}
		w.reconcile()
		g.Expect(w.controlPlane().Status.Release).To(Equal(want))
		g.Expect(releases.asked).To(HaveLen(asked))
	})
	t.Run("another image is looked up anew", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.r.Releases = &fakeReleases{}
		cp := w.controlPlane()
		cp.Status.Release = controlplanev1.ReleaseStatus{
			Image: "quay.io/other:1", Digest: "sha256:2", Version: "4.20.3", KubernetesVersion: "v1.33.4",
		}
		w.must(w.client.Status().Update(t.Context(), cp))
		w.begin()
		g.Expect(w.controlPlane().Status.Release).To(BeZero())
	})
	t.Run("with the certificates and mirrors of the cluster", func(t *testing.T) {
		releases := &fakeReleases{}
		w := newWorld(t, 3, 0)
		w.r.Releases = releases
		cp := w.controlPlane()
		cp.Spec.Install.MirrorRegistryRef.Name, cp.Spec.OpenshiftAssistedConfigSpec.AdditionalTrustBundleRef.Name = "mirrors", "ca"
		w.must(w.client.Update(t.Context(), cp))
		w.begin()
		NewWithT(t).Expect(releases.asked[0]).
			To(Equal(release.Request{Image: releaseImage, PullSecret: "pull", TrustBundleRef: "ca", MirrorRegistryRef: "mirrors"}))
	})
	t.Run("a ClusterImageSet is not looked up", func(t *testing.T) {
		g := NewWithT(t)
		releases := &fakeReleases{}
		w := newWorld(t, 3, 0)
		w.r.Releases = releases
		cp := w.controlPlane()
		cp.Spec.Release.ImageSetRef.Name = "ocp"
		w.must(w.client.Update(t.Context(), cp))
		w.begin()
		expectRelease(t, w, metav1.ConditionUnknown, controlplanev1.ReleaseResolutionSkippedReason, "ClusterImageSet ocp")
		g.Expect(releases.asked).To(BeEmpty())
	})
	t.Run("a manager may ask no registry", func(t *testing.T) {
		w := newWorld(t, 3, 0)
		w.begin()
		expectRelease(t, w, metav1.ConditionUnknown, controlplanev1.ReleaseResolutionSkippedReason, "--resolve-releases=false")
	})
	t.Run("what is gone is forgotten", func(t *testing.T) {
		releases := &fakeReleases{}
		w := newWorld(t, 3, 0)
		w.r.Releases = releases
		w.must(w.client.Delete(t.Context(), w.controlPlane()))
		w.reconcile()
		NewWithT(t).Expect(releases.forgot).To(ConsistOf(key))
	})
}

func TestArchitectureOfAWorker(t *testing.T) {
	g := NewWithT(t)
	v := viewOf(true, true)
	v.Cluster, v.Workload.Version = &clusterv1.Cluster{}, &workload.ClusterVersion{}
	v.ControlPlane.Spec.DistributionVersion = "4.20.4"
	v.Machines.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{"w-0": {}}
	g.Expect(versionsMatchCondition(v).Reason).NotTo(Equal(controlplanev1.ArchitectureNotInReleaseReason))
	v.Machines.Configs["w-0"].Spec.CPUArchitecture = "aarch64"
	g.Expect(versionsMatchCondition(v)).To(And(
		HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", controlplanev1.ArchitectureNotInReleaseReason),
		HaveField("Message", And(ContainSubstring("Machine w-0"), ContainSubstring("4.20.4-multi"))),
	))
	v.ControlPlane.Status.Release = controlplanev1.ReleaseStatus{Image: releaseImage, Architectures: []string{"aarch64", "x86_64"}}
	g.Expect(versionsMatchCondition(v).Reason).NotTo(Equal(controlplanev1.ArchitectureNotInReleaseReason))
}
