// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// TestRetryAsked: the user's annotation begins the next attempt once the current one has failed, and never takes down what runs.
func TestRetryAsked(t *testing.T) {
	for life, want := range map[view.Life]bool{
		view.NotStarted: false, view.DayOneOpen: false, view.DayOneClosed: false, view.Installing: false, view.Failed: true,
		view.Completed: false, view.Running: false, view.Imported: false, view.Mismatch: false,
	} {
		t.Run(string(life), func(t *testing.T) {
			g := NewWithT(t)
			v := &view.View{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}, Life: life}
			v.ControlPlane.Annotations = map[string]string{controlplanev1.RetryInstallationAnnotation: ""}
			if life != view.NotStarted {
				v.Install.ClusterDeployment, v.Install.AgentClusterInstall = &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}
				attempt := map[string]string{controlplanev1.InstallAttemptAnnotation: "1"}
				v.Install.ClusterDeployment.Annotations, v.Install.AgentClusterInstall.Annotations = attempt, attempt
			}
			d := plan.DecideAttempt(v)
			g.Expect(d.Start).To(Equal(want))
			g.Expect(d.Stands()).To(Equal(want))
		})
	}
}
