// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// Claim is the value of bootstrapv1.ClaimAnnotation for a Machine. The bootstrap manager writes it, and both managers compare it.
func Claim(machine metav1.Object) string {
	return machine.GetName() + "/" + string(machine.GetUID())
}

// ClaimedFor returns the name and UID of the Machine that the Agent is claimed for; ok is false when it is claimed for none.
func (a *Agent) ClaimedFor() (name, uid string, ok bool) {
	return strings.Cut(a.Annotations[bootstrapv1.ClaimAnnotation], "/")
}
