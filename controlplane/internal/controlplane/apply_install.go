// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// createInstall creates the objects of an installation that are missing: the ClusterImageSet before what refers to it.
func (r *Reconciler) createInstall(ctx context.Context, s *scope, d decision) error {
	if !d.createInstall {
		return nil
	}
	objects := render.Install{ControlPlane: s.controlPlane, Cluster: s.cluster, Workers: s.wantedWorkers}
	install, err := objects.Object()
	if err != nil {
		s.installProblem = err.Error()
		return err
	}
	created, err := r.createInstallObjects(ctx, s, objects.ImageSet(), objects.ClusterDeployment(), install)
	if created {
		r.event(s, corev1.EventTypeNormal, controlplanev1.EventInstallObjectsCreated, "Create",
			"Created ClusterDeployment and AgentClusterInstall %s for attempt %s", install.GetName(), view.Attempt(s.controlPlane))
	}
	return err
}

// restoreImageSet makes the ClusterImageSet anew that somebody deleted: without it assisted-service can neither install nor add hosts.
func (r *Reconciler) restoreImageSet(ctx context.Context, s *scope, d decision) error {
	if !d.restoreImageSet {
		return nil
	}
	return r.ensureImageSet(ctx, s, render.Install{ControlPlane: s.controlPlane, Cluster: s.cluster}.ImageSet())
}

// markInstalled tells assisted-service by the ClusterDeployment of an installation that its cluster is installed.
func (r *Reconciler) markInstalled(ctx context.Context, s *scope, d decision) error {
	if !d.markInstalled {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Marking the ClusterDeployment as installed", "reason", "its AgentClusterInstall does not exist any more")
	wanted := render.Install{ControlPlane: s.controlPlane, Cluster: s.cluster}.ImportedClusterDeployment(s.record)
	_, err := r.lockedPatch(ctx, s.clusterDeployment.DeepCopy(), nil, map[string]any{"spec": map[string]any{
		"installed":        wanted.Spec.Installed,
		"preserveOnDelete": wanted.Spec.PreserveOnDelete,
		"clusterMetadata":  wanted.Spec.ClusterMetadata,
	}})
	return err
}

// importCluster makes an installed cluster known to assisted-service, so that hosts can be added to it (DESIGN D22).
func (r *Reconciler) importCluster(ctx context.Context, s *scope, d decision) error {
	if !d.importCluster {
		return nil
	}
	objects := render.Install{ControlPlane: s.controlPlane, Cluster: s.cluster}
	created, err := r.createInstallObjects(ctx, s,
		objects.ImageSet(), objects.ImportedClusterDeployment(s.record), objects.ImportedAgentClusterInstall(s.record))
	if created {
		r.event(s, corev1.EventTypeNormal, controlplanev1.EventClusterImported, "Import", "Imported the installed cluster %s", s.record.ClusterID)
	}
	return err
}

// createInstallObjects creates those of the objects that are missing, and tells whether the last of them was created now.
func (r *Reconciler) createInstallObjects(
	ctx context.Context, s *scope, imageSet *hivev1.ClusterImageSet, deployment *hivev1.ClusterDeployment, install client.Object,
) (bool, error) {
	if s.controlPlane.Spec.Release.ImageSetRef.Name == "" {
		if err := r.ensureImageSet(ctx, s, imageSet); err != nil || s.conflict != "" {
			return false, err
		}
	}
	if s.clusterDeployment == nil {
		if err := r.createOurs(ctx, s, deployment, &hivev1.ClusterDeployment{}, madeFor(s.controlPlane)); err != nil || s.conflict != "" {
			return false, err
		}
	}
	if s.install != nil {
		return false, nil
	}
	if err := r.createOurs(ctx, s, install, &hiveext.AgentClusterInstall{}, madeFor(s.controlPlane), strict); err != nil || s.conflict != "" {
		s.installProblem = refusal(err)
		return false, err
	}
	if install.GetResourceVersion() == "" {
		return false, nil // It was created by a pass whose write the cache does not show yet.
	}
	r.wroteInstall(s, install)
	return true, nil
}

// strict makes the API server refuse fields that the hub's CRDs do not know: they would be dropped without a word, and the cluster
// installed without what was asked for.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// refusal is what the API server says about an object that it does not take as it is; empty for errors that pass.
func refusal(err error) string {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return err.Error()
	}
	return ""
}

// updateInstall changes the AgentClusterInstall when the control plane has changed before the installation begins.
func (r *Reconciler) updateInstall(ctx context.Context, s *scope, d decision) error {
	if d.installUpdate == nil {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Changing the installation", "object", klog.KObj(s.install))
	written, err := r.patchInstall(ctx, s, d.installUpdate.Annotations, d.installUpdate.Spec)
	s.installProblem = refusal(err)
	if written {
		r.event(s, corev1.EventTypeNormal, controlplanev1.EventInstallChanged, "ChangeInstallation",
			"Changed AgentClusterInstall %s as the control plane has changed", s.install.Name)
	}
	return err
}

// recordInstalled remembers the installed cluster on the control plane, before status says that it is installed: a move may follow at once.
func (r *Reconciler) recordInstalled(ctx context.Context, s *scope, d decision) error {
	annotations := map[string]any{}
	if d.record != "" {
		annotations[controlplanev1.InstalledClusterAnnotation] = d.record
	}
	if d.nextMachine != "" {
		annotations[controlplanev1.NextMachineAnnotation] = d.nextMachine
	}
	if len(annotations) == 0 {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Recording the installed cluster", "record", d.record, "nextMachine", d.nextMachine)
	// A copy: the pass goes on with what it has observed, and the patch triggers a reconcile.
	return r.mergePatch(ctx, s.controlPlane.DeepCopy(), map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// ensureImageSet creates the ClusterImageSet of the control plane's release, takes over the one that it had before it was moved away and
// back, or corrects its image before an AgentClusterInstall uses it.
func (r *Reconciler) ensureImageSet(ctx context.Context, s *scope, wanted *hivev1.ClusterImageSet) error {
	switch {
	case s.imageSet == nil:
		return r.createOurs(ctx, s, wanted, &hivev1.ClusterImageSet{}, madeFor(s.controlPlane))
	case !ownsImageSet(s):
		return r.mergePatch(ctx, s.imageSet.DeepCopy(), map[string]any{
			"metadata": map[string]any{"labels": wanted.Labels},
			"spec":     map[string]any{"releaseImage": wanted.Spec.ReleaseImage},
		})
	case s.install == nil && s.imageSet.Spec.ReleaseImage != wanted.Spec.ReleaseImage:
		return r.mergePatch(ctx, s.imageSet.DeepCopy(), map[string]any{"spec": map[string]any{"releaseImage": wanted.Spec.ReleaseImage}})
	default:
		return nil
	}
}

// createOurs creates an object. When the name is taken by one that is ours, which the cache did not show yet, nothing is to be done; when
// it is taken by one that is not, that is the pass's conflict and not touched. existing is where the taken one is read to.
func (r *Reconciler) createOurs(
	ctx context.Context, s *scope, o, existing client.Object, ours func(client.Object) bool, opts ...client.CreateOption,
) error {
	key := client.ObjectKeyFromObject(o)
	ctrl.LoggerFrom(ctx).Info("Creating object", "object", klog.KObj(o), "type", fmt.Sprintf("%T", o))
	err := r.Client.Create(ctx, o, opts...)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", o, key, err)
	}
	// Not from the cache, which may be older than the object that is in the way.
	if err := r.APIReader.Get(ctx, key, existing); err != nil {
		return fmt.Errorf("read %T %s, which exists already: %w", o, key, err)
	}
	if !ours(existing) {
		s.conflict = fmt.Sprintf("%s %s", kindOf(o, r.Client), key.Name)
	}
	return nil
}

// kindOf is the kind of an object for messages.
func kindOf(o client.Object, c client.Client) string {
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		return fmt.Sprintf("%T", o)
	}
	return gvk.Kind
}

// controlledBy tells whether an object is controlled by the control plane.
func controlledBy(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) func(client.Object) bool {
	return func(o client.Object) bool { return metav1.IsControlledBy(o, controlPlane) }
}

// madeFor tells whether an object of hive or assisted-service was made for the control plane.
func madeFor(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) func(client.Object) bool {
	return func(o client.Object) bool { return view.OwnedBy(o, controlPlane) }
}

// applyDayOne carries out one step of the first installation (DESIGN D8). What refuses it keeps the installation from beginning.
func (r *Reconciler) applyDayOne(ctx context.Context, s *scope, d decision) error {
	if d.dayOne.Action == plan.DayOneNothing {
		return nil
	}
	err := r.takeStep(ctx, s, d.dayOne)
	s.installProblem = cmp.Or(s.installProblem, refusal(err))
	return err
}

func (r *Reconciler) takeStep(ctx context.Context, s *scope, step plan.DayOneStep) error {
	ctrl.LoggerFrom(ctx).Info("Preparing the installation", "action", step.Action, "reason", step.Note, "agents", step.Agents)
	switch step.Action {
	case plan.DayOneRequire:
		_, err := r.patchInstall(ctx, s, map[string]any{assisted.WorkerWaitStartedAnnotation: nil}, requirements(step.Requirements, true))
		return err
	case plan.DayOneStartWait:
		_, err := r.patchInstall(ctx, s, map[string]any{assisted.WorkerWaitStartedAnnotation: s.now.UTC().Format(time.RFC3339)}, nil)
		return err
	case plan.DayOneClose:
		written, err := r.patchInstall(ctx, s, map[string]any{assisted.DayOneAgentsAnnotation: assisted.FormatDayOneAgents(step.Agents)}, nil)
		if written {
			r.event(s, corev1.EventTypeNormal, controlplanev1.EventDayOneClosed, "CloseDayOne",
				"%d hosts take part in the first installation: %s", len(step.Agents), strings.Join(step.Agents, ", "))
		}
		return err
	case plan.DayOneUnbind:
		return r.unbind(ctx, s, step.Agents)
	case plan.DayOneStart:
		return r.start(ctx, s, step)
	case plan.DayOneReopen:
		written, err := r.patchInstall(ctx, s, map[string]any{assisted.DayOneAgentsAnnotation: nil, assisted.WorkerWaitStartedAnnotation: nil},
			map[string]any{"holdInstallation": true})
		if written {
			r.event(s, corev1.EventTypeWarning, controlplanev1.EventDayOneReopened, "ReopenDayOne", "Waiting for hosts again: %s", step.Note)
		}
		return err
	}
	return nil
}

// start clears the hold. Once it is cleared, nothing keeps the hosts from being written to, so the Machines are read past the cache first:
// what it does not show yet triggers a reconcile, which opens day 1 again.
func (r *Reconciler) start(ctx context.Context, s *scope, step plan.DayOneStep) error {
	machines := &clusterv1.MachineList{}
	if err := r.APIReader.List(ctx, machines, s.ofCluster()...); err != nil {
		return fmt.Errorf("read the Machines of Cluster %s before the installation starts: %w", s.clusterKey(), err)
	}
	living := sets.New[string]()
	for i := range machines.Items {
		if machines.Items[i].DeletionTimestamp.IsZero() {
			living.Insert(assisted.Claim(&machines.Items[i]))
		}
	}
	for _, a := range boundAgents(s) {
		if !living.Has(a.Annotations[bootstrapv1.ClaimAnnotation]) {
			ctrl.LoggerFrom(ctx).Info("Not starting the installation: the Machine of a host is being deleted", "Agent", klog.KObj(a))
			return nil
		}
	}
	written, err := r.patchInstall(ctx, s, nil, requirements(step.Requirements, false))
	if written {
		r.event(
			s, corev1.EventTypeNormal, controlplanev1.EventInstallationStarted, "StartInstallation", "Starting the installation: %s", step.Note,
		)
	}
	return err
}

// requirements are the fields of an AgentClusterInstall that say how many hosts are installed, and whether to wait with it.
func requirements(counts hiveext.ProvisionRequirements, hold bool) map[string]any {
	return map[string]any{
		"holdInstallation": hold,
		// Both numbers, always: a merge patch would keep a worker count that is left out.
		"provisionRequirements": map[string]any{"controlPlaneAgents": counts.ControlPlaneAgents, "workerAgents": counts.WorkerAgents},
	}
}

// patchInstall writes to the AgentClusterInstall, unless it has changed: a decision about day 1 must not be made twice from old facts.
func (r *Reconciler) patchInstall(ctx context.Context, s *scope, annotations, spec map[string]any) (bool, error) {
	metadata, fields := map[string]any{}, map[string]any{}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	if spec != nil {
		fields["spec"] = spec
	}
	install := s.install.DeepCopy()
	written, err := r.lockedPatch(ctx, install, metadata, fields, strict)
	if written {
		r.wroteInstall(s, install)
	}
	return written, err
}

// wroteInstall defers the next pass until the cache has seen the AgentClusterInstall that was written.
func (r *Reconciler) wroteInstall(s *scope, install client.Object) {
	r.controller.DeferNextReconcileUntilCacheUpToDate(s.controlPlane,
		capicontrollerutil.StructuredObject(hiveext.GroupVersion, "AgentClusterInstall"), install.GetResourceVersion())
}

// unbind releases hosts that take no part in the first installation. The hostname stays: the service would clean up the wrong Node
// (ASSISTED 8.8 rule 5).
func (r *Reconciler) unbind(ctx context.Context, s *scope, names []string) error {
	var errs []error
	for i := range s.agents {
		agent := s.agents[i].DeepCopy()
		if !slices.Contains(names, agent.Name) {
			continue
		}
		err := r.mergePatch(ctx, agent, map[string]any{"spec": map[string]any{"clusterDeploymentName": nil, "approved": false}})
		if err == nil {
			r.event(s, corev1.EventTypeNormal, controlplanev1.EventHostUnbound, "UnbindHost",
				"Agent %s takes no part in the first installation and joins afterwards", agent.Name)
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return errors.Join(errs...) // An aggregate of Kubernetes would hide from refusal what kind of errors they are.
}
