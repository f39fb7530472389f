// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
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
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// createInstall creates the objects of an installation that are missing: the ClusterImageSet before what refers to it.
func (r *Reconciler) createInstall(ctx context.Context, v *view.View, d installDecision, o *outcomes) error {
	if !d.create {
		return nil
	}
	objects := render.Install{ControlPlane: v.ControlPlane, Cluster: v.Cluster, Workers: v.Machines.WantedWorkers}
	install, err := objects.Object()
	if err != nil {
		return kube.Refusal(err.Error())
	}
	o.begun, err = r.createInstallObjects(ctx, v, objects.ImageSet(), objects.ClusterDeployment(), install)
	return err
}

// restoreImageSet makes the ClusterImageSet anew that somebody deleted: without it assisted-service can neither install nor add hosts.
func (r *Reconciler) restoreImageSet(ctx context.Context, v *view.View, d installDecision) error {
	if !d.restoreImageSet {
		return nil
	}
	return r.ensureImageSet(ctx, v, render.Install{ControlPlane: v.ControlPlane, Cluster: v.Cluster}.ImageSet())
}

// markInstalled tells assisted-service by the ClusterDeployment of an installation that its cluster is installed.
func (r *Reconciler) markInstalled(ctx context.Context, v *view.View, d installDecision) error {
	if !d.markInstalled {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Marking the ClusterDeployment as installed", "reason", "its AgentClusterInstall does not exist any more")
	wanted := render.Install{ControlPlane: v.ControlPlane, Cluster: v.Cluster}.ImportedClusterDeployment(*v.Record)
	_, err := r.lockedPatch(ctx, v.Install.ClusterDeployment.DeepCopy(), nil, map[string]any{"spec": map[string]any{
		"installed": wanted.Spec.Installed, "preserveOnDelete": wanted.Spec.PreserveOnDelete,
		"clusterMetadata": wanted.Spec.ClusterMetadata,
	}})
	return err
}

// importCluster makes an installed cluster known to assisted-service, so that hosts can be added to it (DESIGN D22).
func (r *Reconciler) importCluster(ctx context.Context, v *view.View, d installDecision) error {
	if !d.importCluster {
		return nil
	}
	objects := render.Install{ControlPlane: v.ControlPlane, Cluster: v.Cluster}
	created, err := r.createInstallObjects(ctx, v,
		objects.ImageSet(), objects.ImportedClusterDeployment(*v.Record), objects.ImportedAgentClusterInstall(*v.Record))
	if created {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventClusterImported, "Import", "Imported the installed cluster %s", v.Record.ClusterID)
	}
	return err
}

// createInstallObjects creates those of the objects that are missing, and tells whether the last of them was created now.
func (r *Reconciler) createInstallObjects(
	ctx context.Context, v *view.View, imageSet *hivev1.ClusterImageSet, deployment *hivev1.ClusterDeployment, install client.Object,
) (bool, error) {
	if v.ControlPlane.Spec.Release.ImageSetRef.Name == "" {
		if err := r.ensureImageSet(ctx, v, imageSet); err != nil {
			return false, err
		}
	}
	if v.Install.ClusterDeployment == nil {
		if err := r.createOurs(ctx, deployment, &hivev1.ClusterDeployment{}, madeFor(v.ControlPlane)); err != nil {
			return false, err
		}
	}
	if v.Install.AgentClusterInstall != nil {
		return false, nil
	}
	if err := r.createOurs(ctx, install, &hiveext.AgentClusterInstall{}, madeFor(v.ControlPlane), strict); err != nil {
		return false, err
	}
	if install.GetResourceVersion() == "" {
		return false, nil // It was created by a pass whose write the cache does not show yet.
	}
	r.wroteInstall(v, install)
	return true, nil
}

// strict makes the API server refuse fields that the hub's CRDs do not know: they would be dropped without a word, and the cluster
// installed without what was asked for.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

// updateInstall changes the AgentClusterInstall when the control plane has changed before the installation begins.
func (r *Reconciler) updateInstall(ctx context.Context, v *view.View, d installDecision) error {
	if d.update == nil {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Changing the installation", "object", klog.KObj(v.Install.AgentClusterInstall))
	written, err := r.patchInstall(ctx, v, d.update.Annotations, d.update.Spec)
	if written {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventInstallChanged, "ChangeInstallation",
			"Changed AgentClusterInstall %s as the control plane has changed", v.Install.AgentClusterInstall.Name)
	}
	return err
}

// setRegistrationTimeout gives the hosts of the cluster another time to register.
func (r *Reconciler) setRegistrationTimeout(ctx context.Context, v *view.View, d installDecision) error {
	if d.registration == nil {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Changing how long hosts may take to register", "object", klog.KObj(v.Install.AgentClusterInstall))
	_, err := r.patchInstall(ctx, v, d.registration, nil)
	return err
}

// ensureImageSet creates the ClusterImageSet of the control plane's release, takes over the one that it had before it was moved away and
// back, or corrects its image before an AgentClusterInstall uses it.
func (r *Reconciler) ensureImageSet(ctx context.Context, v *view.View, wanted *hivev1.ClusterImageSet) error {
	switch {
	case v.Install.ImageSet == nil:
		return r.createOurs(ctx, wanted, &hivev1.ClusterImageSet{}, madeFor(v.ControlPlane))
	case !ownsImageSet(v):
		return r.mergePatch(ctx, v.Install.ImageSet.DeepCopy(), map[string]any{
			"metadata": map[string]any{"labels": wanted.Labels}, "spec": map[string]any{"releaseImage": wanted.Spec.ReleaseImage},
		})
	case v.Install.AgentClusterInstall == nil && v.Install.ImageSet.Spec.ReleaseImage != wanted.Spec.ReleaseImage:
		return r.mergePatch(ctx, v.Install.ImageSet.DeepCopy(), map[string]any{"spec": map[string]any{"releaseImage": wanted.Spec.ReleaseImage}})
	default:
		return nil
	}
}

// createOurs creates an object. When the name is taken by one that is ours, which the cache did not show yet, nothing is to be done; when
// it is taken by one that is not, that one is not touched and the error is a takenError. existing is where the taken one is read to.
func (r *Reconciler) createOurs(
	ctx context.Context, o, existing client.Object, ours func(client.Object) bool, opts ...client.CreateOption,
) error {
	key := client.ObjectKeyFromObject(o)
	ctrl.LoggerFrom(ctx).Info("Creating object", "kind", kube.Kind(o), "object", klog.KObj(o))
	err := r.Client.Create(ctx, o, opts...)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", kube.Name(o), err)
	}
	// Not from the cache, which may be older than the object that is in the way.
	if err := r.APIReader.Get(ctx, key, existing); err != nil {
		return fmt.Errorf("read %s, which exists already: %w", kube.Name(o), err)
	}
	if !ours(existing) {
		return &takenError{object: kube.Kind(o) + " " + key.Name}
	}
	return nil
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
func (r *Reconciler) applyDayOne(ctx context.Context, v *view.View, step plan.DayOneStep) error {
	if step.Action == plan.DayOneNothing {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Preparing the installation", "action", step.Action, "reason", step.Note, "agents", step.Agents)
	switch step.Action {
	case plan.DayOneRequire:
		_, err := r.patchInstall(ctx, v, map[string]any{assisted.WorkerWaitStartedAnnotation: nil}, requirements(step.Requirements, true))
		return err
	case plan.DayOneStartWait:
		_, err := r.patchInstall(ctx, v, map[string]any{assisted.WorkerWaitStartedAnnotation: v.Now.UTC().Format(time.RFC3339)}, nil)
		return err
	case plan.DayOneClose:
		written, err := r.patchInstall(ctx, v, map[string]any{assisted.DayOneAgentsAnnotation: assisted.FormatDayOneAgents(step.Agents)}, nil)
		if written {
			r.event(v, corev1.EventTypeNormal, controlplanev1.EventDayOneClosed, "CloseDayOne",
				"%d hosts take part in the first installation: %s", len(step.Agents), strings.Join(step.Agents, ", "))
		}
		return err
	case plan.DayOneUnbind:
		return r.unbind(ctx, v, step.Agents)
	case plan.DayOneStart:
		return r.start(ctx, v, step)
	case plan.DayOneReopen:
		written, err := r.patchInstall(ctx, v, map[string]any{assisted.DayOneAgentsAnnotation: nil, assisted.WorkerWaitStartedAnnotation: nil},
			map[string]any{"holdInstallation": true})
		if written {
			r.event(v, corev1.EventTypeWarning, controlplanev1.EventDayOneReopened, "ReopenDayOne", "Waiting for hosts again: %s", step.Note)
		}
		return err
	}
	return nil
}

// start clears the hold, and fixes the set of hosts if no step has done so before. Once it is cleared, nothing keeps the hosts from being
// written to, so their Machines are read past the cache first. A deletion that the cache does not show yet triggers a reconcile, which
// opens day 1 again.
func (r *Reconciler) start(ctx context.Context, v *view.View, step plan.DayOneStep) error {
	bound := v.BoundAgents()
	machines, err := r.readMachines(ctx, v, bound)
	if err != nil {
		return fmt.Errorf("read the Machines of Cluster %s before the installation starts: %w", v.ClusterKey(), err)
	}
	living := sets.New[string]()
	for i := range machines {
		if machines[i].DeletionTimestamp.IsZero() {
			living.Insert(assisted.Claim(&machines[i]))
		}
	}
	for _, a := range bound {
		if !living.Has(a.Annotations[bootstrapv1.ClaimAnnotation]) {
			ctrl.LoggerFrom(ctx).Info("Not starting the installation: the Machine of a host is gone or being deleted", "Agent", klog.KObj(a))
			return nil
		}
	}
	written, err := r.release(ctx, v, step)
	if written {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventInstallationStarted, "StartInstallation",
			"Starting the installation: %s: %s", step.Note, strings.Join(step.Agents, ", "))
	}
	return err
}

// fewHosts is the largest number of hosts whose Machines are read one by one. Since Kubernetes 1.31 the API server answers a list from its
// own cache, and waits until that is current; it answers a read of one object at once.
const fewHosts = 5

// readMachines reads, past the cache, the Machines that the Agents are claimed for. With more Agents than fewHosts it lists all Machines of
// the Cluster. A Machine that does not exist is left out.
func (r *Reconciler) readMachines(ctx context.Context, v *view.View, bound []*assisted.Agent) ([]clusterv1.Machine, error) {
	if len(bound) > fewHosts {
		list := &clusterv1.MachineList{}
		err := r.APIReader.List(ctx, list, inCluster(v)...)
		return list.Items, err
	}
	var machines []clusterv1.Machine
	for _, a := range bound {
		name, _, claimed := a.ClaimedFor()
		if !claimed {
			continue
		}
		machine, err := kube.GetOrNil[clusterv1.Machine](ctx, r.APIReader, client.ObjectKey{Namespace: a.Namespace, Name: name})
		if err != nil {
			return nil, err
		}
		if machine != nil {
			machines = append(machines, *machine)
		}
	}
	return machines, nil
}

// release clears the hold and fixes the set of hosts, unless somebody has cleared the hold, changed the set, deleted the
// AgentClusterInstall or replaced it since it was read. All else of it may have changed: the service writes its status several times in the
// second in which the last host becomes ready, and begins nothing before the hold is cleared. With a resourceVersion, each of these writes
// would make the API server refuse the patch, which would have to be sent again.
func (r *Reconciler) release(ctx context.Context, v *view.View, step plan.DayOneStep) (bool, error) {
	install := v.Install.AgentClusterInstall.DeepCopy()
	set := assisted.FormatDayOneAgents(step.Agents)
	if !install.Spec.HoldInstallation || len(install.Annotations) == 0 {
		return r.patchInstall(ctx, v, map[string]any{assisted.DayOneAgentsAnnotation: set}, requirements(step.Requirements, false))
	}
	path, known := kube.AnnotationPath(assisted.DayOneAgentsAnnotation), any(nil) // An annotation that does not exist passes a test for nil.
	if v.Install.Closed() {
		set = install.Annotations[assisted.DayOneAgentsAnnotation]
		known = set
	}
	patch, err := kube.JSONPatch(
		kube.Operation{Op: "test", Path: "/metadata/uid", Value: install.UID},
		kube.Operation{Op: "test", Path: "/metadata/deletionTimestamp", Value: nil},
		kube.Operation{Op: "test", Path: path, Value: known},
		kube.Operation{Op: "test", Path: "/spec/holdInstallation", Value: true},
		kube.Operation{Op: "add", Path: path, Value: set},
		kube.Operation{Op: "add", Path: "/spec/holdInstallation", Value: false},
		kube.Operation{Op: "add", Path: "/spec/provisionRequirements/controlPlaneAgents", Value: step.Requirements.ControlPlaneAgents},
		kube.Operation{Op: "add", Path: "/spec/provisionRequirements/workerAgents", Value: step.Requirements.WorkerAgents},
	)
	if err != nil {
		return false, err
	}
	if err := r.Client.Patch(ctx, install, patch, strict); err != nil {
		return false, r.unreleased(ctx, v, err)
	}
	r.wroteInstall(v, install)
	return true, nil
}

// unreleased is the error of a patch that was to clear the hold; nil when what the patch tests has changed, which triggers the next pass.
// The API server answers a test that fails with 422 (Invalid), as it does a value that is not valid.
func (r *Reconciler) unreleased(ctx context.Context, v *view.View, refused error) error {
	read := v.Install.AgentClusterInstall
	refused = fmt.Errorf("patch %s: %w", kube.Name(read), refused)
	switch {
	case apierrors.IsNotFound(refused), kube.IsConflict(refused):
		return nil
	case !apierrors.IsInvalid(refused):
		return refused
	}
	current, err := kube.GetOrNil[hiveext.AgentClusterInstall](ctx, r.APIReader, client.ObjectKeyFromObject(read))
	if err != nil {
		return errors.Join(refused, err)
	}
	const set = assisted.DayOneAgentsAnnotation
	if current == nil || current.UID != read.UID || !current.DeletionTimestamp.IsZero() || !current.Spec.HoldInstallation ||
		current.Annotations[set] != read.Annotations[set] {
		return nil
	}
	return refused
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
func (r *Reconciler) patchInstall(ctx context.Context, v *view.View, annotations, spec map[string]any) (bool, error) {
	metadata, fields := map[string]any{}, map[string]any{}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	if spec != nil {
		fields["spec"] = spec
	}
	install := v.Install.AgentClusterInstall.DeepCopy()
	written, err := r.lockedPatch(ctx, install, metadata, fields, strict)
	if written {
		r.wroteInstall(v, install)
	}
	return written, err
}

// wroteInstall defers the next pass until the cache has seen the AgentClusterInstall that was written.
func (r *Reconciler) wroteInstall(v *view.View, install client.Object) {
	r.controller.DeferNextReconcileUntilCacheUpToDate(v.ControlPlane,
		capicontrollerutil.StructuredObject(hiveext.GroupVersion, "AgentClusterInstall"), install.GetResourceVersion())
}

// unbind releases hosts that take no part in the first installation, unless their Agents have changed since: one may be of another cluster
// by now. The hostname stays: the service would clean up the wrong Node (ASSISTED 8.8 rule 5).
func (r *Reconciler) unbind(ctx context.Context, v *view.View, names []string) error {
	var errs []error
	for _, a := range v.Install.Agents {
		if !slices.Contains(names, a.Name) {
			continue
		}
		agent := a.DeepCopy()
		written, err := r.lockedPatch(ctx, agent, nil, map[string]any{"spec": map[string]any{"clusterDeploymentName": nil, "approved": false}})
		if written {
			r.eventAbout(v, agent, controlplanev1.EventHostUnbound, "UnbindHost",
				"Agent %s takes no part in the first installation and joins afterwards", agent.Name)
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return errors.Join(errs...) // An aggregate of Kubernetes would hide what kind of errors they are.
}
