// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// setDisk notes the chosen disk on the Agent that is bound, and takes a disk of an earlier bind off: the service fails on any disk until
// the bound host has reported (ASSISTED 8.1). A disk that somebody else asked for stays where there are no hints.
func (b *binding) setDisk() {
	earlier := b.agent.Annotations[bootstrapv1.InstallationDiskAnnotation]
	if b.disk != "" || b.agent.Spec.InstallationDiskID == earlier {
		b.agent.Spec.InstallationDiskID = ""
	}
	if b.disk == "" {
		delete(b.agent.Annotations, bootstrapv1.InstallationDiskAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&b.agent.ObjectMeta, bootstrapv1.InstallationDiskAnnotation, b.disk)
}

// approve gives a bound Agent its disk and its approval in one patch: the service takes the disk before it acts on the approval (ASSISTED
// 1.2).
func (r *Reconciler) approve(ctx context.Context, s *scope, a *assisted.Agent) error {
	before := a.DeepCopy()
	a.Spec.InstallationDiskID = a.Annotations[bootstrapv1.InstallationDiskAnnotation]
	a.Spec.Approved = true
	ctrl.LoggerFrom(ctx).Info("Approving Agent", "Agent", a.Name, "disk", a.Spec.InstallationDiskID)
	if err := r.Client.Patch(ctx, a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("approve Agent %s with disk %s: %w", a.Name, a.Spec.InstallationDiskID, err)
	}
	r.normal(
		s, bootstrapv1.EventInstallationDiskSet, "Set disk %s of Agent %s to be installed on, and approved the Agent", a.Spec.InstallationDiskID,
		a.Name,
	)
	return nil
}
