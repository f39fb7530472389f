// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/untrusted/untrustedtest"
)

// FuzzLost is for the annotation that counts the attempts that were lost, which anybody may have changed.
func FuzzLost(f *testing.F) {
	for _, seed := range []string{`{"count":1,"last":"2026-01-02T03:04:05Z"}`, "{", "null", strings.Repeat("[", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		untrustedtest.Bounded(t, func() {
			cp := &controlplanev1.OpenshiftAssistedControlPlane{}
			cp.Annotations = map[string]string{controlplanev1.LostInstallationsAnnotation: value}
			_, _ = LostOf(cp).Next()
		})
	})
}

// FuzzFailed is for the annotation that tells since when an attempt has failed, which anybody may have changed.
func FuzzFailed(f *testing.F) {
	for _, seed := range []string{`{"attempt":"1","time":"2026-01-02T03:04:05Z","answered":true}`, "{", "null", strings.Repeat("[", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		untrustedtest.Bounded(t, func() {
			cp := &controlplanev1.OpenshiftAssistedControlPlane{}
			cp.Annotations = map[string]string{controlplanev1.InstallationFailedAnnotation: value}
			_ = FailedOf(cp).String()
		})
	})
}
