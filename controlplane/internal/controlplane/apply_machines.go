// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/failuredomains"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/metrics"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/bounded"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// ensureTemplateOwner makes the Cluster an owner of the infrastructure template, so that it is moved and deleted with it (CONTRACT CP-37).
func (r *Reconciler) ensureTemplateOwner(ctx context.Context, v *view.View, d plan.MachinesDecision) error {
	if v.Machines.Template == nil || !d.OwnTemplate {
		return nil
	}
	owner := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: v.Cluster.Name, UID: v.Cluster.UID,
	}
	if util.HasExactOwnerRef(v.Machines.Template.GetOwnerReferences(), owner) {
		return nil
	}
	updated := v.Machines.Template.DeepCopy()
	updated.SetOwnerReferences(util.EnsureOwnerRef(updated.GetOwnerReferences(), owner))
	// With a lock: the patch replaces the whole list, which others write to as well.
	lock := client.MergeFromWithOptions(v.Machines.Template, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, updated, lock); err != nil {
		// Not wrapped: a conflict has to be tried again too, because templates are not watched.
		return fmt.Errorf("set the owner of %s %s: %v", updated.GetKind(), klog.KObj(updated), err) //nolint:errorlint // see above
	}
	return nil
}

// createMachines creates the Machines that are missing.
func (r *Reconciler) createMachines(ctx context.Context, v *view.View, d plan.MachinesDecision, o *outcomes) error {
	if len(d.Create) == 0 {
		return nil
	}
	if v.Machines.TemplateProblem != nil {
		return v.Machines.TemplateProblem
	}
	defer r.tellCreated(v, o)
	o.created = map[string]*clusterv1.Machine{}
	all := collections.FromMachines(v.Machines.Owned.UnsortedList()...)
	for _, name := range d.Create {
		machine, err := r.createMachine(ctx, v, render.MachineObjects{
			ControlPlane: v.ControlPlane, ClusterName: v.ClusterName, Name: name, FailureDomain: r.placement(ctx, v, all),
			RemediationFor: d.RemediationFor,
		}, len(all) == len(v.Machines.Owned))
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w (ClusterRoles with the label %s: \"true\" extend the role of the manager)", err,
				controlplanev1.InfrastructureRoleLabel)
		}
		if err != nil {
			return err
		}
		all.Insert(machine)
		if machine.ResourceVersion != "" { // It was created now, and not by a pass whose write the cache does not show yet.
			// The next pass tells on the Machine that it is up to date, as it was made so.
			bounded.SetCondition(machine, *upToDateCondition(nil, false, nil))
			o.created[name] = machine
		}
		d.RemediationFor = nil // One replaces the unhealthy Machine, and the others were missing before.
	}
	return nil
}

// tellCreated records one event about the Machines that were created.
func (r *Reconciler) tellCreated(v *view.View, o *outcomes) {
	names := slices.Sorted(maps.Keys(o.created))
	switch len(names) {
	case 0:
	case 1:
		r.eventAbout(v, o.created[names[0]], controlplanev1.EventMachineCreated, "CreateMachine", "Created Machine %s", names[0])
	default:
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventMachineCreated, "CreateMachine", "Created Machines %s", strings.Join(names, ", "))
	}
}

// placement picks the failure domain with the fewest Machines; none when the Cluster has none for control planes (CONTRACT CP-38).
func (r *Reconciler) placement(ctx context.Context, v *view.View, all collections.Machines) string {
	var domains []clusterv1.FailureDomain
	for _, domain := range v.Cluster.Status.FailureDomains {
		if ptr.Deref(domain.ControlPlane, false) {
			domains = append(domains, domain)
		}
	}
	return failuredomains.PickFewest(ctx, domains, all, all.Filter(collections.Not(collections.HasDeletionTimestamp)))
}

// createMachine creates a Machine after what it refers to, all under one name. When a step fails, the next pass creates the same objects
// again and goes on where this one stopped, or discards what it has left (CONTRACT CP-35). The first Machine of a pass, from which the
// others differ in little more than their names, is tried before anything is created: when Cluster API does not take it, an infrastructure
// provider is spared objects that come and go.
func (r *Reconciler) createMachine(
	ctx context.Context, v *view.View, objects render.MachineObjects, first bool,
) (*clusterv1.Machine, error) {
	infraMachine, err := r.infraMachine(v, objects)
	if err != nil {
		return nil, err
	}
	machine := objects.Machine(clusterv1.ContractVersionedObjectReference{
		APIGroup: infraMachine.GroupVersionKind().Group, Kind: infraMachine.GetKind(), Name: objects.Name,
	})
	if first {
		if err := r.tryMachine(ctx, machine.DeepCopy()); err != nil {
			return nil, err
		}
	}
	// The config first: by it a later pass finds what this one leaves behind if it ends here.
	config := objects.Config()
	tracing.Mark(ctx, config)
	if err := r.createForMachine(ctx, v, config, &bootstrapv1.OpenshiftAssistedConfig{}); err != nil {
		return nil, err
	}
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(infraMachine.GroupVersionKind())
	if err := r.createForMachine(ctx, v, infraMachine, existing); err != nil {
		return nil, err
	}
	if err := r.createOurs(ctx, machine, &clusterv1.Machine{}, controlledBy(v.ControlPlane)); err != nil {
		return nil, err
	}
	if machine.ResourceVersion != "" {
		r.wroteMachine(v, machine)
	}
	return machine, nil
}

// tryMachine asks the API server and its webhooks whether they take a Machine, and stores nothing. A webhook that cannot be asked so
// answers with a bad request; then only the creation itself can tell.
func (r *Reconciler) tryMachine(ctx context.Context, machine *clusterv1.Machine) error {
	err := r.Client.Create(ctx, machine, client.DryRunAll)
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsBadRequest(err) {
		return nil
	}
	return fmt.Errorf("create %s (dry run): %w", kube.Name(machine), err)
}

// infraMachine makes the infrastructure machine from its template.
func (r *Reconciler) infraMachine(v *view.View, objects render.MachineObjects) (*unstructured.Unstructured, error) {
	owner := objects.OwnerReference()
	infraMachine, err := external.GenerateTemplate(&external.GenerateTemplateInput{
		Template: v.Machines.Template,
		TemplateRef: &corev1.ObjectReference{
			APIVersion: v.Machines.Template.GetAPIVersion(), Kind: v.Machines.Template.GetKind(), Namespace: v.Machines.Template.GetNamespace(),
			Name: v.Machines.Template.GetName(),
		},
		Namespace:   v.ControlPlane.Namespace,
		Name:        objects.Name,
		ClusterName: v.ClusterName,
		OwnerRef:    &owner,
		Labels:      objects.Labels(),
		Annotations: objects.Annotations(),
	})
	if err != nil {
		return nil, fmt.Errorf("make the infrastructure machine of Machine %s/%s from %s %s: %w", v.ControlPlane.Namespace, objects.Name,
			v.Machines.Template.GetKind(), v.Machines.Template.GetName(), err)
	}
	return infraMachine, nil
}

// createForMachine creates an infrastructure machine or a config. It fails when the name is taken and nobody can tell for whom: that is no
// conflict, for which the user would be asked to delete an object of a living Machine.
func (r *Reconciler) createForMachine(ctx context.Context, v *view.View, o, existing client.Object) error {
	var unknown error
	err := r.createOurs(ctx, o, existing, func(taken client.Object) bool {
		ours, err := r.belongsToMachine(ctx, taken, v.ControlPlane)
		unknown = err
		return ours || err != nil
	})
	return errors.Join(err, unknown)
}

// belongsToMachine reports whether an infrastructure machine or a config was made for a Machine of the control plane: it is the control
// plane's, or already the Machine's, which the cache does not show yet. What is left of a Machine that vanished is neither: it is about to
// be collected, and a new Machine must not refer to it.
func (r *Reconciler) belongsToMachine(
	ctx context.Context, o client.Object, controlPlane *controlplanev1.OpenshiftAssistedControlPlane,
) (bool, error) {
	if !o.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	machine := &clusterv1.Machine{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(o), machine); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Machine %s, which %s of its name may belong to: %w", klog.KObj(o), kube.Kind(o), err)
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.UID == controlPlane.UID || (machine.UID != "" && ref.UID == machine.UID) {
			return true, nil
		}
	}
	return false, nil
}

// adoptMachines takes over control-plane Machines that nobody controls (CONTRACT CP-39). The control plane is read past the cache first:
// when it has just been deleted and its Machines were orphaned on purpose, they stay so.
func (r *Reconciler) adoptMachines(ctx context.Context, v *view.View, d plan.MachinesDecision) error {
	if len(d.Adopt) == 0 {
		return nil
	}
	current := &controlplanev1.OpenshiftAssistedControlPlane{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(v.ControlPlane), current); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read OpenshiftAssistedControlPlane %s before adopting Machines: %w", klog.KObj(v.ControlPlane), err)
	}
	if current.UID != v.ControlPlane.UID || !current.DeletionTimestamp.IsZero() {
		return nil // The cache is behind: the change triggers another pass.
	}
	var errs []error
	for _, m := range d.Adopt {
		machine := m.DeepCopy()
		written, err := r.lockedPatch(ctx, machine, map[string]any{
			"ownerReferences": append(machine.OwnerReferences, view.ControllerReference(v.ControlPlane)),
			// Without it the Machine would count as one of an earlier attempt, and be deleted.
			"annotations": map[string]any{controlplanev1.InstallAttemptAnnotation: view.Attempt(v.ControlPlane)},
		}, nil)
		if written {
			r.wroteMachine(v, machine)
			r.eventAbout(v, machine, controlplanev1.EventMachineAdopted, "AdoptMachine", "Adopted Machine %s", machine.Name)
		}
		errs = append(errs, err)
	}
	return kerrors.NewAggregate(errs)
}

// deleteSurplus deletes Machines beyond the number of replicas.
func (r *Reconciler) deleteSurplus(ctx context.Context, v *view.View, d plan.MachinesDecision) error {
	if len(d.Surplus) == 0 {
		return nil
	}
	if confirmed, err := r.confirmSpec(ctx, v); err != nil || !confirmed {
		return err
	}
	return r.deleteMachines(ctx, v, d.Surplus, "there are more Machines than replicas")
}

// rollOut deletes an outdated Machine in whose place another is created.
func (r *Reconciler) rollOut(ctx context.Context, v *view.View, d plan.RolloutDecision) error {
	if d.Delete == nil {
		return nil
	}
	if confirmed, err := r.confirmSpec(ctx, v); err != nil || !confirmed {
		return err
	}
	err := r.deleteMachines(ctx, v, []*clusterv1.Machine{d.Delete}, "it is outdated")
	if err == nil && d.Delete.DeletionTimestamp.IsZero() {
		metrics.OutdatedDeleted()
	}
	return err
}

// deleteMachines deletes all the Machines at once; those that are being deleted are left alone. So are those that have changed since they
// were read, because garbage collection may have taken them from the control plane (--cascade=orphan): the error is a conflict then, and
// the change triggers another pass.
func (r *Reconciler) deleteMachines(ctx context.Context, v *view.View, machines []*clusterv1.Machine, why string) error {
	var errs []error
	for _, m := range machines {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		if err := kube.DeleteUnchanged(ctx, r.Client, m, why); err != nil {
			errs = append(errs, err)
			continue
		}
		r.eventAbout(v, m, controlplanev1.EventMachineDeleted, "DeleteMachine", "Deleted Machine %s: %s", m.Name, why)
	}
	return kerrors.NewAggregate(errs)
}

// syncMachines keeps Machines and what they refer to in line with the template, in place, and tells on each Machine whether it is up to
// date (CONTRACT CP-40…CP-46). It writes only what differs.
func (r *Reconciler) syncMachines(ctx context.Context, v *view.View, d plan.MachinesDecision, o *outcomes) error {
	if !d.Sync {
		return nil
	}
	o.synced = map[string]*clusterv1.Machine{}
	var errs []error
	for _, observed := range v.Machines.Owned.SortedByCreationTimestamp() {
		m := observed.DeepCopy()
		err := r.syncMachine(ctx, v, m)
		if err == nil {
			o.synced[m.Name] = m
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return kerrors.NewAggregate(errs)
}

func (r *Reconciler) syncMachine(ctx context.Context, v *view.View, m *clusterv1.Machine) error {
	objects := render.MachineObjects{
		ControlPlane: v.ControlPlane, ClusterName: v.ClusterName, Name: m.Name, FailureDomain: m.Spec.FailureDomain,
	}
	fields := objects.SpecPatch(m)
	if !m.DeletionTimestamp.IsZero() {
		_, err := r.changeInPlace(ctx, v, m, fields)
		return err
	}
	if metadata := objects.MachineMetadataPatch(m); metadata != nil {
		if fields == nil {
			fields = map[string]any{}
		}
		fields["metadata"] = metadata["metadata"]
	}
	refused, again := r.changeInPlace(ctx, v, m, fields)
	if len(refused) == 0 && again != nil {
		return again
	}
	if infraMachine := v.Machines.Infra[m.Name]; infraMachine != nil {
		if err := r.patchIfNeeded(ctx, infraMachine.DeepCopy(), objects.MetadataPatch(infraMachine)); err != nil {
			return err
		}
	}
	if config := v.Machines.Configs[m.Name]; config != nil {
		if err := r.patchIfNeeded(ctx, config.DeepCopy(), objects.MetadataPatch(config)); err != nil {
			return err
		}
	}
	differences := append(refused, plan.Differences(v, m)...)
	told := upToDateCondition(differences, len(refused) == 0 && plan.Updating(v, m), v.Machines.InfraProblems[m.Name])
	return kerrors.NewAggregate([]error{again, r.tellState(ctx, m, told, memberCondition(v, m))})
}

// changeInPlace writes fields to a Machine in one patch. When the API server refuses that patch, changeInPlace writes each field in a patch
// of its own, so that a field that is refused does not keep the others from the Machine. It returns the refusals, and the errors for which
// the pass is tried again: those of an admission policy are among both, because no event tells that a policy was changed.
func (r *Reconciler) changeInPlace(ctx context.Context, v *view.View, m *clusterv1.Machine, fields map[string]any) ([]string, error) {
	if fields == nil {
		return nil, nil
	}
	defer r.wroteMachine(v, m)
	err := r.patchIfNeeded(ctx, m, fields)
	if kube.OutcomeOf(err).Refusal() == nil {
		return nil, err
	}
	var refused []string
	var again []error
	for _, part := range separate(fields) {
		err := r.patchIfNeeded(ctx, m, part)
		if kube.OutcomeOf(err).Refusal() != nil {
			refused = append(refused, fmt.Sprintf("The change in place is refused: %v", errors.Unwrap(err)))
		}
		if !apierrors.IsInvalid(err) || kube.DeniedByPolicy(err) {
			again = append(again, err)
		}
	}
	return refused, kerrors.NewAggregate(again)
}

// separate splits a merge patch into one for each field of spec and metadata, in a fixed order.
func separate(fields map[string]any) []map[string]any {
	var parts []map[string]any
	for _, section := range slices.Sorted(maps.Keys(fields)) {
		values, _ := fields[section].(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(values)) {
			parts = append(parts, map[string]any{section: map[string]any{field: values[field]}})
		}
	}
	return parts
}

// patchIfNeeded writes the fields to the object. If they are nil, it writes nothing.
func (r *Reconciler) patchIfNeeded(ctx context.Context, o client.Object, fields map[string]any) error {
	if fields == nil {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Updating object in place", "kind", kube.Kind(o), "object", klog.KObj(o))
	return r.mergePatch(ctx, o, fields)
}
