// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// frozen refuses changes of a config that would have no effect any more. Templates, whose configs are made afterwards, have no such limits.
func frozen(old, config *bootstrapv1.OpenshiftAssistedConfig) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if old.Spec.StaticNetworking != config.Spec.StaticNetworking {
		errs = append(errs, field.Forbidden(spec.Child("staticNetworking"), "is immutable, because the medium of the host is made with it: change the template and delete the Machine"))
	}
	if old.Annotations[bootstrapv1.InstallationDiskAnnotation] != "" &&
		!equality.Semantic.DeepEqual(old.Spec.Installation.RootDeviceHints, config.Spec.Installation.RootDeviceHints) {
		errs = append(errs, field.Forbidden(spec.Child("installation", "rootDeviceHints"),
			"is immutable once the host is bound to the cluster, because its disk has been chosen: change the template and delete the Machine"))
	}
	return errs
}
