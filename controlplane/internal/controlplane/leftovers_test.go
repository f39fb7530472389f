// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestInstalledClusterHasNoEarlierAttempt: the annotations that count attempts mean nothing once the cluster is installed.
func TestInstalledClusterHasNoEarlierAttempt(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.run(nil, w.available)
	before := len(w.machines())
	cp := w.controlPlane()
	cp.Annotations = map[string]string{controlplanev1.InstallAttemptAnnotation: "7"}
	w.must(w.client.Update(context.Background(), cp))
	machine := w.machines()[0]
	machine.Annotations = nil
	w.must(w.client.Update(context.Background(), &machine))
	for range 3 {
		w.reconcile()
	}
	if got := len(w.machines()); got != before || w.install() == nil {
		t.Errorf("%d of %d Machines are left, AgentClusterInstall %v", got, before, w.install() != nil)
	}
}

// TestLeftoverOfAVanishedMachine: an infrastructure machine of a Machine that was force-deleted is not given to the next one.
func TestLeftoverOfAVanishedMachine(t *testing.T) {
	w := newWorld(t, 3, 0)
	leftover := &unstructured.Unstructured{}
	leftover.SetGroupVersionKind(infraGroup.WithKind("Metal3Machine"))
	leftover.SetNamespace(namespace)
	leftover.SetName("cp-0")
	leftover.SetOwnerReferences(
		[]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "cp-0", UID: "vanished"}},
	)
	w.must(w.client.Create(context.Background(), leftover))
	for range 3 {
		w.reconcile()
	}
	if got := w.reason(controlplanev1.InstalledCondition); got != controlplanev1.NameConflictReason || len(w.machines()) > 0 {
		t.Errorf("Installed is %s, and there are %d Machines", got, len(w.machines()))
	}
	w.must(w.client.Delete(context.Background(), leftover))
	w.run(nil, w.available)
}

// TestInstalledClusterNeedsNoInstallObjects: the kubeconfig of an installed cluster stays when what it came from is deleted, and the
// cluster is imported, so that it goes on taking hosts.
func TestInstalledClusterNeedsNoInstallObjects(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.run(nil, w.available)
	installerSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-admin-kubeconfig"}}
	deployment := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp"}}
	for _, o := range []client.Object{installerSecret, w.install(), deployment} {
		w.must(w.client.Delete(context.Background(), o))
		w.reconcile()
		if got := w.reason(controlplanev1.KubeconfigAvailableCondition); got != controlplanev1.KubeconfigAvailableReason {
			t.Errorf("without %T, KubeconfigAvailable is %s", o, got)
		}
	}
	w.run(nil, func() bool { return w.install() != nil })
	if w.install().Spec.ClusterMetadata == nil || !w.available() {
		t.Errorf("AgentClusterInstall is %+v, available %t", w.install().Spec, w.available())
	}
	w.must(w.client.Delete(context.Background(), w.kubeconfig()))
	w.must(w.client.Delete(context.Background(), w.installerCredentials()))
	w.reconcile()
	if got := w.reason(controlplanev1.KubeconfigAvailableCondition); got != controlplanev1.KubeconfigNotAvailableReason {
		t.Errorf("without any kubeconfig, KubeconfigAvailable is %s", got)
	}
}

// TestFinalizersOfOthersStay: somebody adds a finalizer while the last pass over a deleted control plane runs.
func TestFinalizersOfOthersStay(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.reconcile()
	read := w.controlPlane()
	changed := read.DeepCopy()
	changed.Finalizers = append(changed.Finalizers, "example.com/keep")
	w.must(w.client.Update(context.Background(), changed))
	w.must(w.r.removeFinalizer(context.Background(), read))
	w.must(w.r.removeFinalizer(context.Background(), w.controlPlane()))
	if got := w.controlPlane().Finalizers; len(got) != 1 || got[0] != "example.com/keep" {
		t.Errorf("finalizers are %v", got)
	}
}
