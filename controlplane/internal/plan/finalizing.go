// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// ReachedFinalizing reports whether the control-plane hosts of the wanted attempt were installed, and the operators of the cluster came
// next: this pass sees it, or an earlier one did, which status remembers. It stays true when the attempt fails; once the attempt is
// complete, nothing has to be remembered.
func ReachedFinalizing(v *view.View) bool {
	switch phase := v.Install.Phase(); {
	case phase == assisted.PhaseCompleted:
		return false
	case phase == assisted.PhaseFinalizing, phase == assisted.PhaseFailed && assisted.HostsInstalled(v.Install.AgentClusterInstall):
		return true
	}
	known := v.ControlPlane.Status.Install
	return !known.FinalizingTime.IsZero() && known.Attempt != nil && strconv.Itoa(int(*known.Attempt)) == view.Attempt(v.ControlPlane)
}

// mayHoldData says why the hosts of an attempt that has failed may run a cluster that can be repaired and that may hold data; empty when it
// is known that they do not. When the cluster fails after its control-plane hosts were installed, assisted-service turns them to errors, as
// it does with hosts that were never installed. What it leaves are the stages of the hosts and the percentage: whoever has missed the phase
// sees them. An Agent that is gone, or that tells nothing, may have been that of an installed host.
func mayHoldData(v *view.View) string {
	const risk = "the cluster may be repairable, and may hold data"
	if ReachedFinalizing(v) || FailedOf(v.ControlPlane).Installed {
		return "the control-plane hosts were installed: " + risk
	}
	agents := map[string]*assisted.Agent{}
	for _, a := range v.BoundAgents() {
		if a.Spec.Role == assisted.RoleMaster && a.WasInstalled() {
			return fmt.Sprintf("the control-plane host of Machine %s was installed: %s", view.MachineOf(a), risk)
		}
		if name, uid, ok := a.ClaimedFor(); ok {
			agents[name+"/"+uid] = a
		}
	}
	names := v.Machines.Owned.Names()
	slices.Sort(names)
	for _, name := range names {
		m := v.Machines.Owned[name]
		a := agents[assisted.Claim(m)]
		if living(m) && (a == nil || !a.NeverInstalled()) {
			return fmt.Sprintf("assisted-service does not say whether the control-plane host of Machine %s was installed: if it was, %s", name, risk)
		}
	}
	return ""
}
