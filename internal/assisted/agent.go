// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/openshift/assisted-service/api/common"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// FindCondition returns the condition of a type, or nil.
func FindCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// Is reports whether the condition exists, is True and, if reasons are given, has one of them.
func (c *Condition) Is(status corev1.ConditionStatus, reasons ...string) bool {
	return c != nil && c.Status == status && (len(reasons) == 0 || slices.Contains(reasons, c.Reason))
}

// Condition returns the Agent's condition of a type, or nil.
func (a *Agent) Condition(conditionType string) *Condition {
	return FindCondition(a.Status.Conditions, conditionType)
}

// BoundTo reports whether the Agent's spec refers to the ClusterDeployment.
func (a *Agent) BoundTo(namespace, name string) bool {
	ref := a.Spec.ClusterDeploymentName
	return ref != nil && ref.Namespace == namespace && ref.Name == name
}

// ToClusterDeployment maps an Agent to the ClusterDeployment that it is bound to, whose control plane has the same name. When the Agent was
// just unbound, the handler maps its former version as well.
func ToClusterDeployment(_ context.Context, o client.Object) []reconcile.Request {
	agent, ok := o.(*Agent)
	if !ok || agent.Spec.ClusterDeploymentName == nil {
		return nil
	}
	ref := agent.Spec.ClusterDeploymentName
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
}

// MayBeBound reports whether assisted-service accepts a bind now: an Agent that is not known-unbound answers with an internal error and is
// retried every 10 s (ASSISTED 1.2, 8.8 rule 1).
func (a *Agent) MayBeBound() bool {
	return a.Unbound() && a.Status.DebugInfo.State == AgentStateKnownUnbound
}

// Examined reports whether the service has said anything of an unbound host since it registered. What it says of one that it has not
// examined yet changes within seconds, so that whatever is written to its Agent meanwhile is likely to be refused as outdated.
func (a *Agent) Examined() bool {
	return a.Status.DebugInfo.State != "" && a.Status.DebugInfo.State != AgentStateDiscoveringUnbound
}

// Unbound reports whether the Agent's spec refers to no ClusterDeployment.
func (a *Agent) Unbound() bool { return a.Spec.ClusterDeploymentName == nil }

// Discovers reports whether the host runs the discovery image and its installation has not begun, as far as the service knows.
func (a *Agent) Discovers() bool {
	return slices.Contains(discoveryStates, strings.TrimSuffix(a.Status.DebugInfo.State, unboundSuffix))
}

// ReadyToInstall reports whether the Agent counts as ready for the first installation. RequirementsMet alone is not enough: an unbound
// approved Agent shows it too (ASSISTED 8.8 rule 4).
func (a *Agent) ReadyToInstall() bool {
	return a.Spec.Approved && !a.DiskOwed() &&
		a.Status.DebugInfo.State == AgentStateKnown &&
		a.Condition(ConditionBound).Is(corev1.ConditionTrue) &&
		a.Condition(ConditionSpecSynced).Is(corev1.ConditionTrue) &&
		a.Condition(ConditionRequirementsMet).Is(corev1.ConditionTrue, ReasonAgentIsReady)
}

// DiskOwed reports whether a disk was chosen for the Agent when it was bound and is not in its spec yet. The Agent must not be approved,
// nor count for an installation, before it is (docs/adr/0003-installation-disk.md).
func (a *Agent) DiskOwed() bool {
	chosen := a.Annotations[bootstrapv1.InstallationDiskAnnotation]
	return chosen != "" && a.Spec.InstallationDiskID != chosen
}

// TakesDisk reports whether the service takes a disk now: a host that is bound and has reported its inventory since. Until then the service
// fails on the empty inventory before it has looked at anything else (ASSISTED 8.1); status still shows the inventory of before.
func (a *Agent) TakesDisk() bool {
	states := []string{AgentStateInsufficient, AgentStatePendingForInput, AgentStateKnown}
	return a.Condition(ConditionBound).Is(corev1.ConditionTrue) && slices.Contains(states, a.Status.DebugInfo.State) && a.HasInventory()
}

// Installed reports whether the installation of the host is complete.
func (a *Agent) Installed() bool {
	return a.Condition(ConditionInstalled).Is(corev1.ConditionTrue)
}

// WasInstalled reports of a host of the first installation whether its own installation was complete. Once the cluster fails,
// assisted-service turns an installed host to an error like every other one, but leaves the stage that it had reached.
func (a *Agent) WasInstalled() bool {
	return a.Installed() || a.Status.Progress.CurrentStage == StageDone
}

// NeverInstalled reports whether assisted-service says of a host of the first installation that its own installation was never complete.
// When it says nothing of that, neither WasInstalled nor NeverInstalled is true.
func (a *Agent) NeverInstalled() bool {
	return !a.WasInstalled() && a.Condition(ConditionInstalled).Is(corev1.ConditionFalse)
}

// Failed reports whether the installation of the host failed.
func (a *Agent) Failed() bool {
	return a.Condition(ConditionInstalled).Is(corev1.ConditionFalse, ReasonInstallationFailed)
}

// Installing reports whether the installation of the host runs.
func (a *Agent) Installing() bool {
	return a.Condition(ConditionInstalled).Is(corev1.ConditionFalse, ReasonInstallationInProgress)
}

// BindRefused reports whether the service refused a bind because an installation was starting. It does not try again by itself: the Agent
// has to be changed when the cluster takes hosts (ASSISTED 8.4).
func (a *Agent) BindRefused() bool {
	return a.Spec.ClusterDeploymentName != nil &&
		a.Status.DebugInfo.State == AgentStateKnownUnbound &&
		a.Condition(ConditionSpecSynced).Is(corev1.ConditionFalse, ReasonInputError)
}

// Refused reports whether the service refuses what a bound host is given, such as a Secret that does not exist.
func (a *Agent) Refused() bool {
	return a.Condition(ConditionBound).Is(corev1.ConditionTrue) && a.Condition(ConditionSpecSynced).Is(corev1.ConditionFalse, ReasonInputError)
}

// HasInventory reports whether the host has said what it is. It is false just after registration and while a host binds.
func (a *Agent) HasInventory() bool { return len(a.Status.Inventory.Interfaces) > 0 }

// MACAddresses returns the hardware addresses of the host, in lower case and sorted.
func (a *Agent) MACAddresses() []string {
	macs := make([]string, 0, len(a.Status.Inventory.Interfaces))
	for _, i := range a.Status.Inventory.Interfaces {
		if i.MACAddress != "" {
			macs = append(macs, strings.ToLower(i.MACAddress))
		}
	}
	sort.Strings(macs)
	return slices.Compact(macs)
}

// Addresses returns the IP addresses of the host, without those that mean something on one link only. They are those of discovery: a host
// reports nothing more once it runs the installed system.
func (a *Agent) Addresses() []string {
	var addresses []string
	for _, i := range a.Status.Inventory.Interfaces {
		for _, reported := range slices.Concat(i.IPV4Addresses, i.IPV6Addresses) {
			address, _, _ := strings.Cut(reported, "/")
			if ip, err := netip.ParseAddr(address); err == nil && ip.IsGlobalUnicast() {
				addresses = append(addresses, ip.String())
			}
		}
	}
	return addresses
}

// FailingChecks returns the texts of the checks that fail, sorted, as "<id>: <message>". The maps come from an Agent's or an
// AgentClusterInstall's status.validationsInfo.
func FailingChecks(validations common.ValidationsStatus) []string {
	var failing []string
	for _, group := range validations {
		for _, check := range group {
			if fails(check) {
				failing = append(failing, check.ID+": "+check.Message)
			}
		}
	}
	sort.Strings(failing)
	return failing
}
