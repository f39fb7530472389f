// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/internal/kube"
)

// fieldManager is the name under which Machines, MachineSets and MachineDeployments record who has written their version.
const fieldManager = "openshift-assisted-workerversions"

// apply writes one field of each object, and returns what has its version now of MachineDeployments and MachineSets, and whether an object
// was changed since it was read, which is looked at again then. One that cannot be written keeps none of the others.
func (r *Reconciler) apply(ctx context.Context, d decision) (followed decision, changed bool, _ error) {
	w := writer{client: client.WithFieldOwner(r.Client, fieldManager)}
	log := ctrl.LoggerFrom(ctx)
	for _, f := range d.deployments {
		log.Info("Setting the version of a MachineDeployment to what all its Nodes run",
			"MachineDeployment", klog.KObj(f.deployment), "version", f.version)
		if write(ctx, &w, f.deployment, func(o *clusterv1.MachineDeployment) { o.Spec.Template.Spec.Version = f.version }) {
			followed.deployments = append(followed.deployments, f)
		}
	}
	for _, f := range d.machines {
		log.Info("Setting the version of a Machine to what its Node runs", "Machine", klog.KObj(f.machine), "version", f.version)
		write(ctx, &w, f.machine, func(o *clusterv1.Machine) { o.Spec.Version = f.version })
	}
	for _, f := range d.sets {
		log.Info("Setting the version of a MachineSet to what all its Nodes run", "MachineSet", klog.KObj(f.set), "version", f.version)
		if write(ctx, &w, f.set, func(o *clusterv1.MachineSet) { o.Spec.Template.Spec.Version = f.version }) {
			followed.sets = append(followed.sets, f)
		}
	}
	return followed, w.changed, kerrors.NewAggregate(w.errs)
}

// writer writes objects one after the other, and remembers what went wrong.
type writer struct {
	client client.Client
	// changed: an object was changed after it was read.
	changed bool
	errs    []error
}

// write writes an object unless it was changed since it was read, and reports whether it did.
func write[T client.Object](ctx context.Context, w *writer, o T, set func(T)) bool {
	err := kube.PatchUnchanged(ctx, w.client, o, set)
	w.changed = w.changed || kube.IsConflict(err)
	w.errs = append(w.errs, kube.OutcomeOf(client.IgnoreNotFound(err)).Err())
	return err == nil
}
