// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// TestCredentialWhileAnotherClusterAnswers: the manager is connected to another cluster, such as for the seconds until it connects with a
// corrected kubeconfig. Neither that cluster's ServiceAccount nor its certificates say anything about the token of this one.
func TestCredentialWhileAnotherClusterAnswers(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	own := w.authority("own", 100*day)
	w.trusts(own)
	w.passes(2)
	w.recorded()
	published, requested := w.kubeconfig().Data["value"], w.credentials.Requested
	w.api.upgrades.Reported.ClusterID = "another"
	w.credentials.Account, w.credentials.Bundle = false, w.authority("another", 100*day)
	for range 3 {
		w.after(time.Minute)
	}
	g.Expect(w.reason(controlplanev1.UpgradingCondition)).To(Equal(controlplanev1.UpgradeOtherClusterReason))
	g.Expect(w.credentials.Requested).To(Equal(requested))
	g.Expect(string(w.kubeconfig().Data["value"])).To(Equal(string(published)))
	g.Expect(w.recorded()).NotTo(ContainElement(controlplanev1.EventKubeconfigTokenReplaced))

	w.api.upgrades.Reported.ClusterID, w.credentials.Bundle = clusterID, own
	w.after(time.Minute)
	g.Expect(w.credentials.Requested).To(BeNumerically(">", requested), "the account of this cluster is missing")
	w.checkWorks()
}
