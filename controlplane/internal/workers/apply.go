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

// fieldManager is the name under which Machines and MachineSets record who has written their version.
const fieldManager = "openshift-assisted-workerversions"

// apply writes one field of each object, and returns the MachineSets that have their version now, and whether an object was changed since
// it was read, which is looked at again then. One that cannot be written keeps none of the others.
func (r *Reconciler) apply(ctx context.Context, d decision) (followed []setVersion, changed bool, _ error) {
	c := client.WithFieldOwner(r.Client, fieldManager)
	log := ctrl.LoggerFrom(ctx)
	errs := make([]error, 0, len(d.machines)+len(d.sets))
	for _, f := range d.machines {
		log.Info("Setting the version of a Machine to what its Node runs", "Machine", klog.KObj(f.machine), "version", f.version)
		err := kube.PatchUnchanged(ctx, c, f.machine, func(m *clusterv1.Machine) { m.Spec.Version = f.version })
		changed = changed || kube.IsConflict(err)
		errs = append(errs, kube.OutcomeOf(client.IgnoreNotFound(err)).Err())
	}
	for _, f := range d.sets {
		log.Info("Setting the version of a MachineSet to what all its Nodes run", "MachineSet", klog.KObj(f.set), "version", f.version)
		err := kube.PatchUnchanged(ctx, c, f.set, func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Version = f.version })
		if err == nil {
			followed = append(followed, f)
		}
		changed = changed || kube.IsConflict(err)
		errs = append(errs, kube.OutcomeOf(client.IgnoreNotFound(err)).Err())
	}
	return followed, changed, kerrors.NewAggregate(errs)
}
