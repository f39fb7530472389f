// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	definitions "github.com/capi-openshift/agent-providers/internal/metrics"
)

func TestWhyAnInstallationFailed(t *testing.T) {
	broken, victim := agentOf("a", "error", "Failed - disk is broken"), agentOf("b", "error", clusterFailedToInstall)
	installing := agentOf("a", "installing-in-progress", "Writing image to disk")
	installing.Status.Conditions[0].Reason = assisted.ReasonInstallationInProgress
	yes, no := corev1.ConditionTrue, corev1.ConditionFalse
	for name, test := range map[string]struct {
		agents []*assisted.Agent
		failed corev1.ConditionStatus
		info   string
		want   string
	}{
		"a host failed, its cluster not yet":     {[]*assisted.Agent{broken}, no, "", definitions.InstallReasonHost},
		"a host and its cluster failed":          {[]*assisted.Agent{broken, victim}, yes, hostsFailed, definitions.InstallReasonHost},
		"the cluster tells before the host does": {[]*assisted.Agent{installing}, yes, hostsFailed, definitions.InstallReasonHost},
		"it took too long":                       {[]*assisted.Agent{victim}, yes, "installation timeout", definitions.InstallReasonCluster},
		"somebody cancelled it":                  {nil, no, "Cluster was cancelled by user", definitions.InstallReasonCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			v := viewOf(false)
			v.Install.Agents = test.agents
			v.Install.AgentClusterInstall = &hiveext.AgentClusterInstall{}
			v.Install.AgentClusterInstall.Status.DebugInfo.StateInfo = test.info
			v.Install.AgentClusterInstall.Status.Conditions = []hivev1.ClusterInstallCondition{
				{Type: hiveext.ClusterFailedCondition, Status: test.failed},
			}
			if got := failureCause(v); got != test.want {
				t.Errorf("the cause is %q, not %q", got, test.want)
			}
		})
	}
}

// hostsFailed is what the service says (cd-delete-while-installing.log).
const hostsFailed = "cluster has hosts in error"
