// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/kubeconfig"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// kindMachine is what Machines are called in the cache-consistency store.
const kindMachine = "Machine"

// apply carries out a decision. All steps are tried, also when one before has failed, so that a problem with one subject does not hide the
// outcomes of the others. Only Machines are not created in a pass that has found a name of the installation taken.
func (r *Reconciler) apply(ctx context.Context, v *view.View, d decision) *outcomes {
	o := &outcomes{}
	o.leaving.add(r.leaveEtcd(ctx, v, d.leaving))
	o.machines.add(r.adoptMachines(ctx, v, d.machines))
	o.attempt.add(r.cleanUpAttempt(ctx, v, d.attempt))
	o.install.add(r.createInstall(ctx, v, d.install, o))
	o.install.add(r.restoreImageSet(ctx, v, d.install))
	o.install.add(r.markInstalled(ctx, v, d.install))
	o.install.add(r.importCluster(ctx, v, d.install))
	o.install.add(r.setRegistrationTimeout(ctx, v, d.install))
	o.install.add(r.updateInstall(ctx, v, d.install))
	o.machines.add(r.ensureTemplateOwner(ctx, v, d.machines))
	// Machines whose cluster can never be installed would have to be deleted again. Those of an installation that has been made now are the
	// next pass's: one pass with all of them would take too long to answer (docs/scale.md).
	if o.install.taken == "" && !o.begun {
		o.creation.add(r.discardPrepared(ctx, v, d.machines))
		o.creation.add(r.createMachines(ctx, v, d.machines, o))
	}
	o.machines.add(r.deleteSurplus(ctx, v, d.machines))
	o.machines.add(r.rollOut(ctx, v, d.rollout))
	o.machines.add(r.remediate(ctx, v, d.remedy))
	o.machines.add(r.syncMachines(ctx, v, d.machines, o))
	o.records.add(r.record(ctx, v, d, o))
	if o.records.err() == nil && !o.unrecorded { // A crash would leave an installation that nobody knows to have begun.
		o.install.add(r.applyDayOne(ctx, v, d.install.dayOne))
	}
	o.kubeconfig.add(r.keepCredential(ctx, v, d.kubeconfig, o))
	o.kubeconfig.add(r.shareKubeconfig(ctx, v, d.kubeconfig))
	if o.records.err() == nil {
		o.upgrade.add(r.upgrade(ctx, v, d.upgrade))
	}
	return o
}

// applyDeletion carries out one state of the deletion. The next one begins with the event of what was deleted. Once
// the control-plane Machines are deleted, no host waits until its member has left etcd (CONTRACT KCP-24).
func (r *Reconciler) applyDeletion(ctx context.Context, v *view.View, d decision, o *outcomes) error {
	ctrl.LoggerFrom(ctx).V(4).Info("Deleting", "step", d.deletion.step, "reason", d.deletion.message)
	return kerrors.NewAggregate([]error{
		r.leaveEtcd(ctx, v, d.leaving), r.keepCredential(ctx, v, d.kubeconfig, o), r.deleteNext(ctx, v, d.deletion.step),
	})
}

// deleteNext deletes what a state of the deletion is about.
func (r *Reconciler) deleteNext(ctx context.Context, v *view.View, step plan.DeletionStep) error {
	switch step {
	case plan.DeletionMachines:
		return r.deleteMachines(ctx, v, v.Machines.Owned.SortedByCreationTimestamp(), "control plane is deleted")
	case plan.DeletionInstall:
		if confirmed, err := r.confirmUnused(ctx, v); err != nil || !confirmed {
			return err
		}
		return r.deleteInstall(ctx, v, "control plane is deleted")
	case plan.DeletionImageSet:
		return kube.Delete(ctx, r.Client, v.Install.ImageSet, "control plane is deleted")
	case plan.DeletionWaitForWorkers, plan.DeletionWaitForOrphaning, plan.DeletionWaitForHosts, plan.DeletionDone:
		// Nothing of this control plane is to be deleted yet, or nothing is left.
	}
	return nil
}

// removeFinalizer allows the API server to delete the control plane. The patch replaces the whole list of finalizers, so it is made only of
// the version that was read or has just been written: a finalizer that somebody adds triggers another pass, which removes ours.
func (r *Reconciler) removeFinalizer(ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane) error {
	left := cp.DeepCopy()
	controllerutil.RemoveFinalizer(left, controlplanev1.ControlPlaneFinalizer)
	_, err := r.lockedPatch(ctx, cp.DeepCopy(), map[string]any{"finalizers": left.Finalizers}, nil)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of OpenshiftAssistedControlPlane %s: %w", klog.KObj(cp), err)
	}
	return nil
}

// deleteInstall deletes ClusterDeployment and AgentClusterInstall, also when only one of them exists or is the control plane's.
func (r *Reconciler) deleteInstall(ctx context.Context, v *view.View, reason string) error {
	var errs []error
	if v.Install.ClusterDeployment != nil && view.OwnedBy(v.Install.ClusterDeployment, v.ControlPlane) {
		errs = append(errs, kube.Delete(ctx, r.Client, v.Install.ClusterDeployment, reason))
	}
	if v.Install.AgentClusterInstall != nil && view.OwnedBy(v.Install.AgentClusterInstall, v.ControlPlane) {
		errs = append(errs, kube.Delete(ctx, r.Client, v.Install.AgentClusterInstall, reason))
	}
	return kerrors.NewAggregate(errs)
}

// publishKubeconfig writes <cluster>-kubeconfig as it was read: what somebody has changed since is looked at by the pass that the change
// triggers.
func (r *Reconciler) publishKubeconfig(
	ctx context.Context, v *view.View, d kubeconfigDecision, o *outcomes,
) (written bool, err error) {
	if d.publish == nil {
		return false, nil
	}
	wanted := kubeconfig.GenerateSecretWithOwner(v.ClusterKey(), d.publish, view.ControllerReference(v.ControlPlane))
	recordToken(v, wanted, d)
	ctrl.LoggerFrom(ctx).Info("Publishing kubeconfig", "Secret", klog.KObj(wanted))
	if v.Kubeconfigs.Cluster == nil {
		if err := r.Client.Create(ctx, wanted); err != nil {
			return false, fmt.Errorf("create Secret %s: %w", klog.KObj(wanted), err)
		}
		o.published = true
		return true, nil
	}
	old := v.Kubeconfigs.Cluster.DeepCopy()
	updated := v.Kubeconfigs.Cluster.DeepCopy()
	if updated.Data == nil {
		updated.Data = map[string][]byte{}
	}
	maps.Copy(updated.Data, wanted.Data)
	// Owners that others have set stay.
	updated.OwnerReferences = util.EnsureOwnerRef(updated.OwnerReferences, view.ControllerReference(v.ControlPlane))
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	updated.Labels[clusterv1.ClusterNameLabel] = v.ClusterName
	delete(updated.Annotations, controlplanev1.KubeconfigTokenAnnotation)
	if value, ok := wanted.Annotations[controlplanev1.KubeconfigTokenAnnotation]; ok {
		metav1.SetMetaDataAnnotation(&updated.ObjectMeta, controlplanev1.KubeconfigTokenAnnotation, value)
	}
	err = r.Client.Patch(ctx, updated, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
	if kube.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(4).Info("Not writing to a Secret that has changed", "Secret", klog.KObj(wanted))
		return false, changedUnseen(old)
	}
	if err != nil {
		return false, fmt.Errorf("update Secret %s: %w", klog.KObj(wanted), err)
	}
	r.tellInstallerCredential(v, d)
	return true, nil
}

// shareKubeconfig writes the Secret by which assisted-service reaches an imported cluster, or one whose Secret somebody has deleted.
func (r *Reconciler) shareKubeconfig(ctx context.Context, v *view.View, d kubeconfigDecision) error {
	if d.share == nil {
		return nil
	}
	wanted := render.SharedKubeconfig(v.ControlPlane, v.Install.ClusterDeployment, d.share)
	if v.Kubeconfigs.Installer == nil || !kube.OwnedBy(v.Kubeconfigs.Installer, v.Install.ClusterDeployment) {
		belongs := func(o client.Object) bool { return kube.OwnedBy(o, v.Install.ClusterDeployment) }
		return r.createOurs(ctx, wanted, &corev1.Secret{}, belongs)
	}
	old := v.Kubeconfigs.Installer.DeepCopy()
	updated := v.Kubeconfigs.Installer.DeepCopy()
	updated.Data = wanted.Data
	if err := r.Client.Patch(ctx, updated, client.MergeFrom(old)); err != nil {
		return fmt.Errorf("update Secret %s: %w", klog.KObj(wanted), err)
	}
	return nil
}

// mergePatch writes some fields of an object, which is changed to what the API server answers.
func (r *Reconciler) mergePatch(ctx context.Context, o client.Object, fields map[string]any, opts ...client.PatchOption) error {
	data, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode the patch of %s: %w", kube.Name(o), err)
	}
	if err := r.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), opts...); err != nil {
		return fmt.Errorf("patch %s: %w", kube.Name(o), err)
	}
	return nil
}

// lockedPatch writes metadata and other fields of an object unless it has changed since it was read. That is no error: the change triggers
// the next pass, which decides anew.
func (r *Reconciler) lockedPatch(
	ctx context.Context, o client.Object, metadata, fields map[string]any, opts ...client.PatchOption,
) (written bool, err error) {
	locked := map[string]any{"resourceVersion": o.GetResourceVersion()}
	maps.Copy(locked, metadata)
	all := map[string]any{"metadata": locked}
	maps.Copy(all, fields)
	err = r.mergePatch(ctx, o, all, opts...)
	if kube.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(4).Info("Not writing to an object that has changed", "kind", kube.Kind(o), "object", klog.KObj(o))
		return false, nil
	}
	return err == nil, err
}

// event records an event of the control plane.
func (r *Reconciler) event(v *view.View, eventType, reason, action, note string, args ...any) {
	r.Recorder.Eventf(v.ControlPlane, nil, eventType, reason, action, note, args...)
}

// eventAbout records an event of the control plane about another object. Without that, the recorder takes the events of several Machines
// for one that is repeated, and shows the note of the first.
func (r *Reconciler) eventAbout(v *view.View, related client.Object, reason, action, note string, args ...any) {
	r.Recorder.Eventf(v.ControlPlane, related, corev1.EventTypeNormal, reason, action, note, args...)
}

// wroteMachine defers the next pass until the cache has seen a Machine that was written.
func (r *Reconciler) wroteMachine(v *view.View, m *clusterv1.Machine) {
	r.controller.DeferNextReconcileUntilCacheUpToDate(v.ControlPlane,
		capicontrollerutil.StructuredObject(clusterv1.GroupVersion, kindMachine), m.ResourceVersion)
}
