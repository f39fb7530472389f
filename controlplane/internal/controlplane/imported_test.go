// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// moved returns the management cluster that the installed cluster of w is moved to: objects have new UIDs, no status, and rebuilt owner
// references; those of hive and assisted-service stay behind.
func (w *world) moved() *world {
	w.t.Helper()
	target := newWorld(w.t, 3, 1)
	ctx := context.Background()
	cp := target.controlPlane()
	cp.Annotations, cp.Finalizers = w.controlPlane().Annotations, w.controlPlane().Finalizers
	target.must(target.client.Update(ctx, cp))
	for _, m := range w.machines() {
		m.UID, m.ResourceVersion, m.Status = types.UID("moved-"+m.Name), "", clusterv1.MachineStatus{}
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			m.OwnerReferences = []metav1.OwnerReference{view.ControllerReference(cp)}
		}
		target.must(target.client.Create(ctx, &m))
	}
	target.now = w.now
	for _, secret := range []*corev1.Secret{w.kubeconfig(), w.installerCredentials()} {
		if secret == nil {
			continue
		}
		secret.UID, secret.ResourceVersion = "", ""
		secret.OwnerReferences = []metav1.OwnerReference{view.ControllerReference(cp)}
		target.must(target.client.Create(ctx, secret))
	}
	target.credentials.Account, target.credentials.Bound = w.credentials.Account, w.credentials.Bound
	target.credentials.Tokens = w.credentials.Tokens
	target.credentials.Issued = w.credentials.Issued
	return target
}

func (w *world) deployment() *hivev1.ClusterDeployment {
	w.t.Helper()
	deployment := &hivev1.ClusterDeployment{}
	if err := w.client.Get(context.Background(), key, deployment); err != nil {
		w.must(client.IgnoreNotFound(err))
		return nil
	}
	return deployment
}

// importService is assisted-service on the target: it takes an installed cluster for what it is.
func (w *world) importService() {
	install, deployment := w.install(), w.deployment()
	if install == nil || deployment == nil || !deployment.Spec.Installed {
		return
	}
	install.Status.DebugInfo.State = assisted.ClusterStateAddingHosts
	install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionTrue, Reason: hiveext.ClusterInstalledReason},
	}
	w.must(w.client.Status().Update(context.Background(), install))
}

// finishImport makes as many passes as it takes until the installed cluster, whose API answers, is known here.
func (w *world) finishImport() {
	w.t.Helper()
	w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
	w.api.upgrades.Reported = installedVersion()
	for range 7 {
		w.reconcile()
		w.importService()
		w.core()
	}
	checkAvailable(w.t, w, 3)
}

func installedWorld(t *testing.T) *world {
	w := newWorld(t, 3, 1)
	w.run(nil, w.available)
	return w
}

func TestContractMove(t *testing.T) {
	t.Run("CTL-42 CP-52 an installed cluster is imported and its status rebuilt", func(t *testing.T) {
		g := NewWithT(t)
		source := installedWorld(t)
		w := source.moved()
		w.finishImport()
		g.Expect(w.kubeconfig().Data).To(Equal(source.kubeconfig().Data), "the only credential is kept")
		deployment, install := w.deployment(), w.install()
		g.Expect(deployment.Spec.Installed && deployment.Spec.PreserveOnDelete).To(BeTrue())
		g.Expect(deployment.Spec.ClusterMetadata).To(Equal(&hivev1.ClusterMetadata{
			ClusterID: clusterID, InfraID: "infra", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "cp-admin-kubeconfig"},
		}))
		g.Expect(install.Spec.ClusterMetadata).To(Equal(deployment.Spec.ClusterMetadata))
		g.Expect(install.Spec.HoldInstallation).To(BeTrue())
		shared := &corev1.Secret{}
		g.Expect(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "cp-admin-kubeconfig"}, shared)).
			To(Succeed())
		g.Expect(shared.Data[assisted.KubeconfigKey]).To(Equal(w.kubeconfig().Data["value"]), "assisted-service reads another key")
		g.Expect(*w.controlPlane().Status.Install.ProgressPercentage).To(BeEquivalentTo(100))
		g.Expect(w.machines()).To(HaveLen(len(source.machines())))

		before := w.versions()
		w.reconcile()
		g.Expect(w.versions()).To(Equal(before), "a pass without a reason writes nothing")
	})

	t.Run("CTL-42 nothing is installed while the installed cluster cannot be reached", func(t *testing.T) {
		g := NewWithT(t)
		w := installedWorld(t).moved()
		names := len(w.machines())
		expectWaiting := func(reason string) {
			t.Helper()
			for range 3 {
				w.reconcile()
			}
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(reason))
			g.Expect(conditions.GetMessage(w.controlPlane(), controlplanev1.AvailableCondition)).
				To(Equal(conditions.GetMessage(w.controlPlane(), controlplanev1.InstalledCondition)), "clusterctl describe shows the former only")
			g.Expect(w.deployment()).To(BeNil())
			g.Expect(w.install()).To(BeNil())
			g.Expect(w.machines()).To(HaveLen(names))
		}
		expectWaiting(controlplanev1.ImportingReason)
		w.api.ID = "another"
		expectWaiting(controlplanev1.ClusterMismatchReason)
		w.api.ID = ""
		w.must(w.client.Delete(context.Background(), w.kubeconfig()))
		expectWaiting(controlplanev1.ImportingReason)
		cp := w.controlPlane()
		cp.Annotations[controlplanev1.InstalledClusterAnnotation] = "broken"
		w.must(w.client.Update(context.Background(), cp))
		expectWaiting(controlplanev1.ImportingReason)
		machine := w.machines()[0]
		w.must(w.client.Delete(context.Background(), &machine))
		names--
		expectWaiting(controlplanev1.ImportingReason)
	})

	t.Run("CTL-42 another attempt that the user asks for is installed", func(t *testing.T) {
		g := NewWithT(t)
		w := installedWorld(t).moved()
		cp := w.controlPlane()
		cp.Annotations[controlplanev1.InstallAttemptAnnotation] = "2"
		w.must(w.client.Update(context.Background(), cp))
		w.must(w.client.Delete(context.Background(), w.kubeconfig()))
		w.reconcile()
		g.Expect(w.machines()).To(HaveLen(1), "Machines of the earlier attempt are replaced, but not workers that took no part")
		w.run(nil, w.available)
		g.Expect(w.install().Annotations[controlplanev1.InstallAttemptAnnotation]).To(Equal("2"))
		g.Expect(w.deployment().Spec.Installed).To(BeFalse())
	})

	t.Run("CTL-41 the cluster runs before assisted-service is there to import it", func(t *testing.T) {
		g := NewWithT(t)
		w := installedWorld(t).moved()
		w.gate.missing = []string{assisted.CRDAgentClusterInstalls}
		w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
		w.api.upgrades.Reported = installedVersion()
		for range 3 {
			w.reconcile()
			w.core()
		}
		g.Expect(w.reason(controlplanev1.InitializedCondition)).To(Equal(controlplanev1.InitializedReason))
		g.Expect(conditions.GetMessage(w.controlPlane(), controlplanev1.AvailableCondition)).
			To(ContainSubstring(assisted.CRDAgentClusterInstalls))
		g.Expect(w.deployment()).To(BeNil())
		w.gate.missing = nil
		w.reconcile()
		g.Expect(w.deployment()).NotTo(BeNil())
	})

	t.Run("CTL-46 what a former life of the control plane left behind does not stand in the way", func(t *testing.T) {
		g := NewWithT(t)
		w := installedWorld(t).moved()
		w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
		former := w.controlPlane()
		former.UID = "former"
		left := render.Install{ControlPlane: former, Cluster: &clusterv1.Cluster{}}.ImageSet()
		w.must(w.client.Create(context.Background(), left))
		for range 2 { // The first pass sets the condition Paused.
			w.reconcile()
		}
		g.Expect(w.deployment()).NotTo(BeNil())
		w.must(w.client.Get(context.Background(), client.ObjectKeyFromObject(left), left))
		g.Expect(left.Labels[controlplanev1.OwnerUIDLabel]).To(BeEquivalentTo("cp"))
	})
}
