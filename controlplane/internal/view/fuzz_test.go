// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

// FuzzRecords is for the annotations that the provider reads back, which anybody may have changed.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{`{"attempt":"1","controlPlane":"u","workers":["a"]}`, "{", "null",
		strings.Repeat("[", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		untrustedtest.Bounded(t, func() {
			cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
			cp.Annotations = map[string]string{
				controlplanev1.InstallationStartedAnnotation: value, controlplanev1.InstalledClusterAnnotation: value,
				controlplanev1.InstallAttemptAnnotation: value,
			}
			_ = StartedOf(cp)
			_, _ = InstalledOf(cp)
			_ = AttemptNumber(Attempt(cp))
		})
	})
}
