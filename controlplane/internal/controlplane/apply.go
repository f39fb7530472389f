// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
)

// kindMachine is what Machines are called in the cache-consistency store.
const kindMachine = "Machine"

// apply carries out a decision. The steps do not gate each other inside a pass but by what decide put into the decision, so that a problem
// with one does not hide the facts of the others.
func (r *Reconciler) apply(ctx context.Context, s *scope, d decision) error {
	steps := []func(context.Context, *scope, decision) error{
		r.adoptMachines, r.restoreAttempt, r.startRetry, r.cleanUpAttempt, r.recordInstalled, r.createInstall, r.restoreImageSet, r.markInstalled,
		r.importCluster, r.updateInstall, r.ensureTemplateOwner, r.createMachines, r.deleteSurplus, r.syncMachines, r.recordStart,
		r.applyDayOne, r.publishKubeconfig, r.shareKubeconfig,
	}
	errs := make([]error, 0, len(steps)+1)
	errs = append(errs, s.apiProblem)
	for _, step := range steps {
		errs = append(errs, step(ctx, s, d))
	}
	return kerrors.NewAggregate(errs)
}

// applyDeletion carries out one state of the deletion. The next one begins with the event of what was deleted.
func (r *Reconciler) applyDeletion(ctx context.Context, s *scope, d decision) error {
	ctrl.LoggerFrom(ctx).V(4).Info("Deleting", "step", d.deletion, "reason", d.deletionMessage)
	switch d.deletion {
	case plan.DeletionMachines:
		return r.deleteMachines(ctx, s, s.machines.SortedByCreationTimestamp(), "control plane is deleted")
	case plan.DeletionInstall:
		return r.deleteInstall(ctx, s)
	case plan.DeletionImageSet:
		return r.delete(ctx, s.imageSet)
	case plan.DeletionWaitForWorkers, plan.DeletionWaitForHosts, plan.DeletionDone:
		// Nothing of this control plane is to be deleted yet, or nothing is left.
	}
	return nil
}

// removeFinalizer allows the API server to delete the control plane. The patch replaces the whole list of finalizers, so it is made only of
// the version that was read: a status that was just written, or a finalizer that somebody added, triggers another pass, which removes it.
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
func (r *Reconciler) deleteInstall(ctx context.Context, s *scope) error {
	var errs []error
	if s.clusterDeployment != nil && view.OwnedBy(s.clusterDeployment, s.controlPlane) {
		errs = append(errs, r.delete(ctx, s.clusterDeployment))
	}
	if s.install != nil && view.OwnedBy(s.install, s.controlPlane) {
		errs = append(errs, r.delete(ctx, s.install))
	}
	return kerrors.NewAggregate(errs)
}

// delete deletes an object of ours, once.
func (r *Reconciler) delete(ctx context.Context, o client.Object) error {
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := o.GetUID()
	ctrl.LoggerFrom(ctx).Info("Deleting object", "object", klog.KObj(o), "type", fmt.Sprintf("%T", o))
	// The UID keeps a stale cache from deleting a successor of the same name.
	if err := r.Client.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", o, klog.KObj(o), err)
	}
	return nil
}

// publishKubeconfig writes <cluster>-kubeconfig.
func (r *Reconciler) publishKubeconfig(ctx context.Context, s *scope, d decision) error {
	if d.kubeconfig == nil {
		return nil
	}
	wanted := kubeconfig.GenerateSecretWithOwner(s.clusterKey(), d.kubeconfig, view.ControllerReference(s.controlPlane))
	ctrl.LoggerFrom(ctx).Info("Publishing kubeconfig", "Secret", klog.KObj(wanted))
	if s.kubeconfig == nil {
		if err := r.Client.Create(ctx, wanted); err != nil {
			return fmt.Errorf("create Secret %s: %w", klog.KObj(wanted), err)
		}
		s.kubeconfig = wanted
		r.event(s, corev1.EventTypeNormal, controlplanev1.EventKubeconfigPublished, "Publish", "Published Secret %s", wanted.Name)
		return nil
	}
	old := s.kubeconfig.DeepCopy()
	updated := s.kubeconfig.DeepCopy()
	if updated.Data == nil {
		updated.Data = map[string][]byte{}
	}
	maps.Copy(updated.Data, wanted.Data)
	// Owners that others have set stay.
	updated.OwnerReferences = util.EnsureOwnerRef(updated.OwnerReferences, view.ControllerReference(s.controlPlane))
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	updated.Labels[clusterv1.ClusterNameLabel] = s.clusterName
	if err := r.Client.Patch(ctx, updated, client.MergeFrom(old)); err != nil {
		return fmt.Errorf("update Secret %s: %w", klog.KObj(wanted), err)
	}
	return nil
}

// shareKubeconfig lets assisted-service use <cluster>-kubeconfig for an imported cluster. The service has written it itself otherwise.
func (r *Reconciler) shareKubeconfig(ctx context.Context, s *scope, d decision) error {
	if d.importedKubeconfig == nil {
		return nil
	}
	wanted := render.ImportedKubeconfig(s.clusterDeployment, d.importedKubeconfig)
	if s.installerKubeconfig == nil || !ownedBy(s.installerKubeconfig, s.clusterDeployment) {
		belongs := func(o client.Object) bool { return ownedBy(o, s.clusterDeployment) }
		return r.createOurs(ctx, s, wanted, &corev1.Secret{}, belongs)
	}
	old := s.installerKubeconfig.DeepCopy()
	updated := s.installerKubeconfig.DeepCopy()
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
		return fmt.Errorf("encode the patch of %T %s: %w", o, klog.KObj(o), err)
	}
	if err := r.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), opts...); err != nil {
		return fmt.Errorf("patch %T %s: %w", o, klog.KObj(o), err)
	}
	return nil
}

// lockedPatch writes metadata and other fields of an object unless it has changed since it was read. That is no error: the newer version is
// an event, and the next pass decides anew.
func (r *Reconciler) lockedPatch(
	ctx context.Context, o client.Object, metadata, fields map[string]any, opts ...client.PatchOption,
) (written bool, err error) {
	locked := map[string]any{"resourceVersion": o.GetResourceVersion()}
	maps.Copy(locked, metadata)
	all := map[string]any{"metadata": locked}
	maps.Copy(all, fields)
	err = r.mergePatch(ctx, o, all, opts...)
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(4).Info("Not writing to an object that has changed", "object", klog.KObj(o), "type", fmt.Sprintf("%T", o))
		return false, nil
	}
	return err == nil, err
}

// event records an event of the control plane.
func (r *Reconciler) event(s *scope, eventType, reason, action, note string, args ...any) {
	r.Recorder.Eventf(s.controlPlane, nil, eventType, reason, action, note, args...)
}

// wroteMachine defers the next pass until the cache has seen a Machine that was written.
func (r *Reconciler) wroteMachine(s *scope, m *clusterv1.Machine) {
	r.controller.DeferNextReconcileUntilCacheUpToDate(s.controlPlane,
		capicontrollerutil.StructuredObject(clusterv1.GroupVersion, kindMachine), m.ResourceVersion)
}
