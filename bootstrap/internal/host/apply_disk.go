// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// setDisk notes the chosen disk on the Agent that is bound, and takes a disk of an earlier bind off: the service fails on any disk until
// the bound host has reported (ASSISTED 8.1). A disk that somebody else asked for stays where there are no hints.
func (b *binding) setDisk(a *assisted.Agent) {
	earlier := a.Annotations[bootstrapv1.InstallationDiskAnnotation]
	if b.disk != "" || a.Spec.InstallationDiskID == earlier {
		a.Spec.InstallationDiskID = ""
	}
	if b.disk == "" {
		delete(a.Annotations, bootstrapv1.InstallationDiskAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, bootstrapv1.InstallationDiskAnnotation, b.disk)
}

// approve gives a bound Agent its disk and its approval in one patch: the service takes the disk before it acts on the approval (ASSISTED
// 1.2).
func (r *Reconciler) approve(ctx context.Context, s *scope, a *assisted.Agent) error {
	disk := a.Annotations[bootstrapv1.InstallationDiskAnnotation]
	ctrl.LoggerFrom(ctx).Info("Approving Agent", "Agent", a.Name, "disk", disk)
	err := r.patchAgent(ctx, s, a, func(a *assisted.Agent) { a.Spec.InstallationDiskID, a.Spec.Approved = disk, true })
	if err != nil {
		return kube.Explained(err, fmt.Sprintf("the approval of Agent %s with disk %s", a.Name, disk))
	}
	r.normal(s, bootstrapv1.EventInstallationDiskSet, "Set disk %s of Agent %s to be installed on, and approved the Agent", disk, a.Name)
	return nil
}
