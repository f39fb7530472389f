// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// frozen refuses changes of a config that would have no effect any more. Templates, whose configs are made afterwards, have no such limits.
func frozen(old, config *bootstrapv1.OpenshiftAssistedConfig) field.ErrorList {
	hints := field.NewPath("spec", "installation", "rootDeviceHints")
	if old.Annotations[bootstrapv1.InstallationDiskAnnotation] != "" &&
		!equality.Semantic.DeepEqual(old.Spec.Installation.RootDeviceHints, config.Spec.Installation.RootDeviceHints) {
		return field.ErrorList{field.Forbidden(hints, "is immutable once the host is bound to the cluster, because its disk has been chosen: change the template and delete the Machine")}
	}
	return nil
}
