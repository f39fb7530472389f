// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"errors"
	"fmt"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	machineFinalizer = "metal3machine." + infrastructureGroup
	// hostAnnotation names the host of a Metal3Machine as <namespace>/<name>; the namespace is ignored (M3-70).
	hostAnnotation = "metal3.io/BareMetalHost"
	// blockMoveAnnotation stays on a host for ever (M3-51).
	blockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"

	conditionAssociate = "AssociateBareMetalHost"
	conditionMetaData  = "AssociateMetal3MachineMetaData"
	conditionData      = "Metal3DataReady"

	deprecatedAssociate = "AssociateBMH"
	deprecatedNode      = "KubernetesNodeReady"

	reasonPaused = "Paused"

	// requeued is the delay that CAPM3's messages name; ours keep the text, while the delay is Durations.HostRetry or NodePoll.
	requeued = "Object will be requeued after 30s"
)

// waitError is a failure that is tried again after a fixed time. Every other error is tried again with back-off, as in CAPM3.
type waitError struct {
	message string
	after   time.Duration
}

func (e *waitError) Error() string { return e.message }

// machineReconciler plays CAPM3's Metal3Machine controller.
type machineReconciler struct {
	*config
	workloads *workloads
}

// machinePass is one pass over one Metal3Machine.
type machinePass struct {
	*machineReconciler
	*object
	// machine is the owner; nil until CAPI core has set the owner reference.
	machine *clusterv1.Machine
	// cluster is the Machine's Cluster; nil as long as machine is.
	cluster *clusterv1.Cluster
}

func setupMachines(mgr ctrl.Manager, cfg *config) error {
	r := &machineReconciler{config: cfg, workloads: newWorkloads(cfg.client)}
	unpaused := predicate.NewPredicateFuncs(func(o client.Object) bool { return !hasPausedAnnotation(o) })
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerNamePrefix+"machine").
		For(cfg.shape.newObject(kindMachine), builder.WithPredicates(unpaused)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(machineToMetal3Machine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.clusterToMetal3Machines)).
		Watches(cfg.shape.newObject(kindCluster), handler.EnqueueRequestsFromMapFunc(r.metal3ClusterToMetal3Machines)).
		Watches(&bmov1alpha1.BareMetalHost{}, handler.EnqueueRequestsFromMapFunc(hostToMetal3Machine)).
		WithOptions(controllerOptions(cfg)).
		Complete(cfg.faults.whilePresent(r))
}

func machineToMetal3Machine(_ context.Context, o client.Object) []reconcile.Request {
	machine, ok := o.(*clusterv1.Machine)
	if !ok || machine.Spec.InfrastructureRef.Kind != kindMachine {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}}}
}

// hostToMetal3Machine finds the consumer only: a host that becomes available wakes nobody (M3-11).
func hostToMetal3Machine(_ context.Context, o client.Object) []reconcile.Request {
	host, ok := o.(*bmov1alpha1.BareMetalHost)
	if !ok || host.Spec.ConsumerRef == nil || host.Spec.ConsumerRef.Kind != kindMachine {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.ConsumerRef.Name}}}
}

func (r *machineReconciler) clusterToMetal3Machines(ctx context.Context, o client.Object) []reconcile.Request {
	return r.metal3MachinesOf(ctx, o.GetNamespace(), o.GetName())
}

func (r *machineReconciler) metal3ClusterToMetal3Machines(ctx context.Context, o client.Object) []reconcile.Request {
	return r.metal3MachinesOf(ctx, o.GetNamespace(), ownerOf(o, "Cluster"))
}

func (r *machineReconciler) metal3MachinesOf(ctx context.Context, namespace, cluster string) []reconcile.Request {
	machines := &clusterv1.MachineList{}
	if err := r.client.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the Machines of a Cluster", "Cluster", client.ObjectKey{Namespace: namespace, Name: cluster})
		return nil
	}
	var requests []reconcile.Request
	for i := range machines.Items {
		if machines.Items[i].Spec.ClusterName == cluster {
			requests = append(requests, machineToMetal3Machine(ctx, &machines.Items[i])...)
		}
	}
	return requests
}

// Reconcile runs one pass and writes its outcome, also when the pass failed: the failure is in the conditions.
func (r *machineReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.load(ctx, kindMachine, req.NamespacedName)
	if err != nil || o == nil {
		return ctrl.Result{}, err
	}
	o.summarized = []string{conditionAssociate, conditionMetaData, conditionData}
	o.deprecatedSummarized = []string{deprecatedAssociate, deprecatedNode, conditionData}
	p := &machinePass{machineReconciler: r, object: o}
	if err := p.readOwners(ctx); err != nil {
		return ctrl.Result{}, err
	}
	passErr := p.run(ctx)
	if err := o.flush(ctx); err != nil {
		return ctrl.Result{}, err
	}
	var wait *waitError
	switch {
	case errors.As(passErr, &wait):
		return ctrl.Result{RequeueAfter: wait.after}, nil
	case apierrors.IsConflict(passErr):
		// The cache was behind: the next pass decides on what is there now.
		return ctrl.Result{RequeueAfter: firstBackoff}, nil
	}
	return ctrl.Result{}, passErr
}

// readOwners reads the Machine that owns the Metal3Machine and its Cluster. Absent ones stay nil.
func (p *machinePass) readOwners(ctx context.Context) error {
	name := ownerOf(p, "Machine")
	if name == "" {
		return nil
	}
	machine := &clusterv1.Machine{}
	if err := p.config.client.Get(ctx, client.ObjectKey{Namespace: p.GetNamespace(), Name: name}, machine); err != nil {
		return client.IgnoreNotFound(err)
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	if err := p.config.client.Get(ctx, key, cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	p.machine, p.cluster = machine, cluster
	return nil
}

// run takes the gates of M3-1 to M3-3 in CAPM3's order, and then works on the host.
func (p *machinePass) run(ctx context.Context) error {
	if !p.GetDeletionTimestamp().IsZero() {
		return p.release(ctx)
	}
	if p.machine == nil {
		p.waiting(
			"WaitingForMetal3MachineOwnerRef", "WaitingForM3MachineOwnerRef", "Waiting for Machine Controller to set OwnerRef on Metal3Machine",
		)
		return nil
	}
	if isPaused(p.cluster, p) {
		return p.pause(ctx)
	}
	resumed, err := p.resume(ctx)
	if err != nil {
		return err
	}
	p.setCondition(conditionPaused, metav1.ConditionFalse, reasonNotPaused, "")
	if !deprecatedTrue(p.cluster.GetV1Beta1Conditions(), clusterv1.InfrastructureReadyV1Beta1Condition) {
		p.waiting(
			"WaitingForClusterInfrastructureReady", "WaitingForClusterInfrastructure",
			"Waiting for cluster infrastructure to be ready before proceeding",
		)
		return nil
	}
	controllerutil.AddFinalizer(p, machineFinalizer)
	switch {
	case !p.bootstrapReady():
		p.waiting("WaitingForBootstrapData", "WaitingForBootstrapReady", "Waiting for bootstrap data to be ready before proceeding")
		return nil
	case p.GetAnnotations()[hostAnnotation] == "":
		return p.associate(ctx)
	case resumed:
		// The host is written again by the pass that this one's own write triggers, as recorded.
		p.associated(reasonAssociated)
		return nil
	}
	return p.update(ctx)
}

// waiting reports that no host is looked for yet.
func (p *machinePass) waiting(reason, deprecatedReason, message string) {
	p.setCondition(conditionAssociate, metav1.ConditionFalse, reason, message)
	p.setDeprecated(clusterv1.Condition{
		Type: deprecatedAssociate, Status: "False", Severity: clusterv1.ConditionSeverityInfo, Reason: deprecatedReason,
	})
}

// bootstrapReady is the gate of M3-3: with a config its deprecated condition counts, and not the Secret's name.
func (p *machinePass) bootstrapReady() bool {
	if p.machine.Spec.Bootstrap.ConfigRef.IsDefined() {
		return deprecatedTrue(p.machine.GetV1Beta1Conditions(), clusterv1.BootstrapReadyV1Beta1Condition)
	}
	return p.machine.Spec.Bootstrap.DataSecretName != nil
}

// userDataName is the name that CAPM3 takes for the bootstrap Secret (M3-4).
func (p *machinePass) userDataName() string {
	config, secret := p.machine.Spec.Bootstrap.ConfigRef, p.machine.Spec.Bootstrap.DataSecretName
	if config.IsDefined() && (secret == nil || p.UserDataRace) {
		return config.Name
	}
	return *secret
}

// failMetaData reports err as CAPM3 does for everything that goes wrong once a host is chosen, and returns it.
func (p *machinePass) failMetaData(reason string, err error) error {
	p.setCondition(conditionMetaData, metav1.ConditionFalse, reason, err.Error())
	return err
}

// nested returns a string field of the Metal3Machine, empty when it is not there.
func (o *object) nested(path ...string) string {
	value, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return ""
	}
	return value
}

func (o *object) set(value any, path ...string) error {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		return fmt.Errorf("set %v of %s %s: %w", path, o.GetKind(), client.ObjectKeyFromObject(o), err)
	}
	return nil
}

func (o *object) hasCondition(kind string, status metav1.ConditionStatus) bool {
	for _, condition := range o.conditions {
		if condition.Type == kind {
			return condition.Status == status
		}
	}
	return false
}

func deprecatedTrue(conditions clusterv1.Conditions, kind clusterv1.ConditionType) bool {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition.Status == "True"
		}
	}
	return false
}
