// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"testing"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
)

// TestUpgradeIsValidated: an installed cluster comes to newer releases, one minor version at a time.
func TestUpgradeIsValidated(t *testing.T) {
	const older, jump = "must not be older than the release that the cluster runs, which is 4.20.4",
		"must not be more than one minor version ahead of the release that the cluster runs, which is 4.20.4"
	for name, tc := range map[string]struct {
		// running is status.distributionVersion, former and wanted spec.distributionVersion before and after.
		running, former, wanted string
		want                    []string
	}{
		"the same":                                  {"4.20.4", "4.20.4", "4.20.4", nil},
		"a newer one":                               {"4.20.4", "4.20.4", "4.20.8", nil},
		"the next minor version":                    {"4.20.4", "4.20.4", "4.21.0", nil},
		"5.0 from 4.22":                             {"4.22.9", "4.22.9", "5.0.0", nil},
		"5.0 from 4.23":                             {"4.23.1", "4.23.1", "5.0.1", nil},
		"5.0 from an older one":                     {"4.20.4", "4.20.4", "5.0.0", []string{jump, "step by step, to 4.21 first"}},
		"5.1 from 4.23":                             {"4.23.1", "4.23.1", "5.1.0", []string{"which is 4.23.1", "to 4.24 or 5.0 first"}},
		"5.1 from 5.0":                              {"5.0.1", "5.0.1", "5.1.0", nil},
		"5.2 from 5.0":                              {"5.0.1", "5.0.1", "5.2.0", []string{"to 5.1 first"}},
		"back from 5.0":                             {"5.0.1", "5.0.1", "4.23.9", []string{"must not be older"}},
		"two minor versions":                        {"4.20.4", "4.20.4", "4.22.0", []string{"spec.distributionVersion", jump}},
		"an older one":                              {"4.20.4", "4.20.4", "4.20.3", []string{"spec.distributionVersion", older}},
		"back to the one that still runs":           {"4.20.4", "4.20.8", "4.20.4", nil},
		"older than the one that runs":              {"4.20.4", "4.20.8", "4.20.3", []string{older}},
		"two wishes at once":                        {"4.20.4", "4.21.0", "4.22.0", []string{jump}},
		"nothing is known of the one that runs":     {"", "4.20.4", "4.20.3", []string{older}},
		"it was brought further by somebody else":   {"4.21.2", "4.20.4", "4.21.2", nil},
		"behind what somebody else brought it to":   {"4.21.2", "4.20.4", "4.20.9", []string{"which is 4.21.2"}},
		"from behind what somebody else brought it": {"4.21.2", "4.20.4", "4.22.0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			former := valid()
			former.Status.Install.Phase = controlplanev1.InstallPhaseCompleted
			former.Status.Initialization.ControlPlaneInitialized = new(true)
			former.Status.DistributionVersion, former.Spec.DistributionVersion = tc.running, tc.former
			changed := former.DeepCopy()
			changed.Spec.DistributionVersion = tc.wanted
			_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, changed)
			check(t, err, tc.want)
		})
	}
}

// TestAnotherAttemptIsNoUpgrade: an attempt that has failed can be followed by one with an older release, also when an earlier attempt
// installed a cluster, which was lost since.
func TestAnotherAttemptIsNoUpgrade(t *testing.T) {
	for attempt, want := range map[string][]string{"1": {"spec.distributionVersion", "must not be older"}, "2": nil} {
		former := recorded(attempt)
		former.Status.Install.Phase = controlplanev1.InstallPhaseFailed
		changed := former.DeepCopy()
		changed.Spec.DistributionVersion = "4.20.3"
		_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, changed)
		check(t, err, want)
	}
}
