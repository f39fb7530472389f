// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// started is a world whose installation may begin: the hold is cleared, and assisted-service has not acted yet.
func started(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 3, 0)
	w.run(nil, func() bool { return w.install() != nil && !w.install().Spec.HoldInstallation })
	w.stage = 0
	w.report(w.install())
	w.reconcile()
	return w
}

// says writes a condition, the state and its description into the AgentClusterInstall's status, as assisted-service does.
func (w *world) says(state, info string, said ...hivev1.ClusterInstallCondition) {
	w.t.Helper()
	install := w.install()
	install.Status.DebugInfo.State, install.Status.DebugInfo.StateInfo = state, info
	for _, c := range said {
		if old := assisted.ClusterCondition(install, c.Type); old != nil {
			*old = c
		} else {
			install.Status.Conditions = append(install.Status.Conditions, c)
		}
	}
	w.must(w.client.Status().Update(context.Background(), install))
}

// prepares lets assisted-service prepare the installation; gaveUp is how it ends.
func (w *world) prepares() {
	w.t.Helper()
	w.says(assisted.ClusterStatePreparing, "Preparing cluster for installation", hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionFalse, Reason: hiveext.ClusterInstallationInProgressReason,
	})
}

func (w *world) gaveUp(state, info string) {
	w.t.Helper()
	w.says(state, info, hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionFalse, Reason: hiveext.ClusterInstallationNotStartedReason,
	})
}

// host is the Agent whose preparation fails, setHost its state.
const host = "agent-cp-1"

func (w *world) setHost(state, info string) {
	w.t.Helper()
	for _, a := range w.agents() {
		if a.Name == host {
			a.Status.DebugInfo = assisted.DebugInfo{State: state, StateInfo: info}
			w.must(w.client.Update(context.Background(), &a))
		}
	}
}

// countStatusWrites counts the writes to the control plane's status from now on.
func (w *world) countStatusWrites() *int {
	writes := new(int)
	w.r.Client = w.intercepted(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			*writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	return writes
}

func TestInstallationThatDoesNotBegin(t *testing.T) {
	const counts = "The cluster currently requires exactly 3 master agents and 0 worker agents, but currently registered 3 master agents " +
		"and 1 worker agents"
	t.Run("requirements that assisted-service finds unmet", func(t *testing.T) {
		g := NewWithT(t)
		w := started(t)
		w.says(assisted.ClusterStateReady, "Cluster ready to be installed", hivev1.ClusterInstallCondition{
			Type: hiveext.ClusterRequirementsMetCondition, Status: corev1.ConditionFalse, Reason: hiveext.ClusterInsufficientAgentsReason,
			Message: counts,
		})
		w.reconcile()
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.RequirementsNotMetReason))
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring(counts))
		g.Expect(w.message(controlplanev1.AvailableCondition)).To(ContainSubstring(counts))
	})
	t.Run("an Agent of another namespace that is bound to the ClusterDeployment is named", func(t *testing.T) {
		g := NewWithT(t)
		w := started(t)
		for _, name := range []string{"stray", "another"} {
			stray := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: name}}
			stray.Spec.ClusterDeploymentName = &assisted.ClusterReference{Namespace: namespace, Name: "cp"}
			w.must(w.client.Create(context.Background(), stray))
		}
		w.reconcile()
		g.Expect(w.message(controlplanev1.InstalledCondition)).NotTo(ContainSubstring("stray"), "nobody has said that it does any harm")
		w.says(assisted.ClusterStateReady, "Cluster ready to be installed", hivev1.ClusterInstallCondition{
			Type: hiveext.ClusterRequirementsMetCondition, Status: corev1.ConditionFalse, Reason: hiveext.ClusterInsufficientAgentsReason,
			Message: counts,
		})
		w.reconcile()
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(And(ContainSubstring(counts), ContainSubstring("other/another, other/stray")))
	})
	t.Run("a held installation does not complain of numbers that are not final", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.unbootable["cp-2"] = true
		for range 6 {
			w.reconcile()
			w.bootstrap()
			w.service()
		}
		w.says(assisted.ClusterStateReady, "Cluster ready to be installed", hivev1.ClusterInstallCondition{
			Type: hiveext.ClusterRequirementsMetCondition, Status: corev1.ConditionFalse, Reason: hiveext.ClusterInsufficientAgentsReason,
			Message: counts,
		})
		w.reconcile()
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.WaitingForHostsReason))
		g.Expect(w.message(controlplanev1.InstalledCondition)).NotTo(ContainSubstring("requires exactly"))
	})
}

func TestRefusedStepOfDayOneIsTold(t *testing.T) {
	for name, refused := range map[string]func(client.Object, string) bool{
		"the start": func(o client.Object, data string) bool {
			_, install := o.(*hiveext.AgentClusterInstall)
			return install && strings.Contains(data, `"/spec/holdInstallation","value":false`)
		},
		"the set of hosts": func(o client.Object, data string) bool {
			_, install := o.(*hiveext.AgentClusterInstall)
			return install && strings.Contains(data, kube.AnnotationPath(assisted.DayOneAgentsAnnotation))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 3, 0)
			w.r.Client = w.intercepted(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if data, _ := patch.Data(o); refused(o, string(data)) {
						return apierrors.NewBadRequest(
							"admission webhook agentclusterinstallvalidators denied the request: 3 control planes are not supported",
						)
					}
					return c.Patch(ctx, o, patch, opts...)
				},
			})
			var err error
			for range 12 {
				err = w.try()
				w.bootstrap()
				w.service()
			}
			g.Expect(err).To(MatchError(ContainSubstring("not supported")))
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.InstallRefusedReason))
			g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("not supported"))
		})
	}
}

// TestPreparationThatFails follows assisted-service through the rounds of image-preparation-failure-loop.log, which show the reason for
// seconds only.
func TestPreparationThatFails(t *testing.T) {
	const ready = "Host is ready to be installed"
	t.Run("of a host", func(t *testing.T) {
		g := NewWithT(t)
		w := started(t)
		w.prepares()
		w.reconcile()
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.PreparingReason))
		w.setHost(assisted.AgentStatePreparingFailed, "Host failed to prepare: failed to fetch container images")
		w.reconcile()
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.PreparationFailedReason))
		said := w.message(controlplanev1.InstalledCondition)
		g.Expect(said).To(And(ContainSubstring("Machine cp-1"), ContainSubstring(host), ContainSubstring("failed to fetch container images")))
		g.Expect(w.controlPlane().Status.Install.Phase).To(Equal(controlplanev1.InstallPhaseWaitingForHosts), "spec.install may be changed")
		writes := w.countStatusWrites()
		for range 5 {
			w.gaveUp(assisted.ClusterStateReady, "Cluster failed to prepare for installation")
			w.reconcile()
			w.setHost(assisted.AgentStateKnown, ready)
			w.gaveUp(assisted.ClusterStateInsufficient, "Cluster is not ready for install")
			w.reconcile()
			w.prepares()
			w.reconcile()
			w.setHost(assisted.AgentStatePreparingFailed, "Host failed to prepare: failed to fetch container images")
			w.reconcile()
			w.now = w.now.Add(time.Minute)
		}
		g.Expect(*writes).To(BeZero(), "the rounds of assisted-service are not news")
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(Equal(said))
		w.says(assisted.ClusterStateInstalling, "Installation in progress")
		w.reconcile()
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.InstallingReason), "it has succeeded at last")
	})
	t.Run("of the installation's manifests", func(t *testing.T) {
		g := NewWithT(t)
		w := started(t)
		w.prepares()
		w.says(assisted.ClusterStatePreparing, "Preparing cluster for installation", hivev1.ClusterInstallCondition{
			Type: hiveext.ClusterLastInstallationPreparationFailedCondition, Status: corev1.ConditionTrue,
			Reason: "The last installation preparation failed", Message: "cannot extract openshift-install\n: exit status 3.",
		})
		w.reconcile()
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.PreparationFailedReason))
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("openshift-install : exit status 3. assisted-service tries"))
		writes := w.countStatusWrites()
		for range 5 {
			w.gaveUp(assisted.ClusterStateReady, "Cluster failed to prepare for installation")
			w.reconcile()
			w.prepares()
			w.reconcile()
		}
		g.Expect(*writes).To(BeZero())
	})
	t.Run("for a reason that nobody saw", func(t *testing.T) {
		g := NewWithT(t)
		w := started(t)
		w.prepares()
		w.reconcile()
		w.gaveUp(assisted.ClusterStateInsufficient, "At least one host has stopped preparing for installation")
		w.reconcile()
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.PreparationFailedReason))
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("At least one host has stopped preparing"))
		w.gaveUp(assisted.ClusterStateReady, "Cluster ready to be installed")
		w.reconcile()
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("At least one host has stopped preparing"))
	})
	t.Run("is forgotten when the user changes what is installed", func(t *testing.T) {
		g := NewWithT(t)
		w := started(t)
		w.prepares()
		w.setHost(assisted.AgentStatePreparingFailed, "no image")
		w.reconcile()
		w.setHost(assisted.AgentStateKnown, ready)
		w.gaveUp(assisted.ClusterStateReady, "Cluster failed to prepare for installation")
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.Install.NTPSources = []string{"ntp.example.com"}
		})
		w.reconcile()
		w.reconcile()
		g.Expect(w.install().Spec.HoldInstallation).To(BeTrue())
		g.Expect(w.reason(controlplanev1.InstalledCondition)).NotTo(Equal(controlplanev1.PreparationFailedReason))
	})
}

func TestChangeThatComesTooLate(t *testing.T) {
	matches := func(w *world) *metav1.Condition {
		return conditions.Get(w.controlPlane(), controlplanev1.InstallationMatchesSpecCondition)
	}
	t.Run("is told, for good", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.run(nil, func() bool { return w.stage == 1 })
		// Admission takes it: status.install.phase still says WaitingForHosts.
		g.Expect(w.controlPlane().Status.Install.Phase).To(Equal(controlplanev1.InstallPhaseWaitingForHosts))
		g.Expect(matches(w)).To(BeNil())
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.FIPS = new(true) })
		w.run(nil, w.available)
		w.reconcile()
		g.Expect(w.install().Annotations[assisted.InstallConfigOverridesAnnotation]).NotTo(ContainSubstring("fips"), "it was not installed so")
		g.Expect(matches(w)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.ChangedTooLateReason)))
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.FIPS = nil })
		w.reconcile()
		g.Expect(matches(w)).To(HaveField("Status", metav1.ConditionTrue), "it was taken back")
	})
	t.Run("is none once the cluster is initialized: a later release may render the spec in another way", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 1, 0)
		w.run(nil, w.available)
		install := w.install()
		install.Annotations[assisted.InstallSpecAnnotation] = "of an earlier release"
		w.must(w.client.Update(context.Background(), install))
		w.reconcile()
		g.Expect(matches(w)).To(HaveField("Status", metav1.ConditionTrue))
	})
	t.Run("is forgotten with the next attempt", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.failAt = 3
		w.run(nil, func() bool { return w.stage == 1 })
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.FIPS = new(true) })
		w.run(nil, func() bool {
			return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationFailedReason
		})
		g.Expect(matches(w)).To(HaveField("Status", metav1.ConditionFalse))
		cp := w.controlPlane()
		cp.Annotations[controlplanev1.RetryInstallationAnnotation] = ""
		w.must(w.client.Update(context.Background(), cp))
		w.failAt = 0
		w.reconcile()
		w.reconcile()
		g.Expect(matches(w)).To(BeNil())
	})
}

func TestProgressIsWrittenInSteps(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, func() bool { return w.stage == 2 })
	w.reconcile()
	writes := w.countStatusWrites()
	for percent := int64(30); percent < 60; percent++ {
		install := w.install()
		install.Status.Progress.TotalPercentage = percent
		w.must(w.client.Status().Update(context.Background(), install))
		w.reconcile()
	}
	g.Expect(*writes).To(BeNumerically("<=", 3))
	g.Expect(w.controlPlane().Status.Install.ProgressPercentage).To(HaveValue(BeEquivalentTo(10)), "as when the phase began")
}
