// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// handOverMedia writes the live ISO to the infrastructure machine.
func (r *Reconciler) handOverMedia(ctx context.Context, s *scope, url string) error {
	machine := writableAs(s.infraMachine, url)
	before := machine.DeepCopy()
	if err := metal3.SetLiveISO(machine, url); err != nil {
		return err
	}
	err := r.Client.Patch(ctx, machine, client.MergeFrom(before))
	if apierrors.IsInvalid(err) {
		// The API server's message quotes the URL, which lets its reader boot into the cluster (docs/security.md).
		return kube.Refusal(fmt.Sprintf(
			"the API server refused the live ISO of InfraEnv %s on %s %s: look for other required fields of spec.image", s.infraEnvName,
			machine.GetKind(), machine.GetName(),
		))
	}
	if err != nil {
		return kube.InOwnWords(err, fmt.Sprintf("the live ISO on %s %s", machine.GetKind(), machine.GetName()))
	}
	note := ""
	if !metal3.IsLiveISO(s.infraMachine) {
		// Somebody who meant boot mode UserData sees it here.
		note = fmt.Sprintf(", in place of the disk image that its template names: spec.boot.mode is %s", bootstrapv1.BootModeLiveISO)
	}
	r.event(
		s.config, bootstrapv1.EventBootMediaPublished, "Wrote the live ISO of InfraEnv %s to %s %s%s", s.infraEnvName, machine.GetKind(),
		machine.GetName(), note,
	)
	return nil
}

// writableAs returns a copy of the infrastructure machine in an API version that takes a URL of this length (METAL3 M3-20). In another
// version than the one that was read, its spec is empty but for what the patch sets, since field names differ between the versions.
func writableAs(machine *unstructured.Unstructured, url string) *unstructured.Unstructured {
	if !tooLong(machine, url) {
		return machine.DeepCopy()
	}
	older := &unstructured.Unstructured{}
	older.SetGroupVersionKind(machine.GroupVersionKind().GroupKind().WithVersion(metal3.UnlimitedVersion))
	older.SetNamespace(machine.GetNamespace())
	older.SetName(machine.GetName())
	return older
}
