// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// Conditions of a ClusterVersion that have no constant in OpenShift's API.
const (
	failing         configv1.ClusterStatusConditionType = "Failing"
	invalid         configv1.ClusterStatusConditionType = "Invalid"
	releaseAccepted configv1.ClusterStatusConditionType = "ReleaseAccepted"
	implicitly      configv1.ClusterStatusConditionType = "ImplicitlyEnabledCapabilities"
)

// set writes a condition. Its time is that of the last change of its status.
func (c *Cluster) set(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) {
	condition := configv1.ClusterOperatorStatusCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: c.stamp(),
	}
	index := slices.IndexFunc(c.conditions, func(have configv1.ClusterOperatorStatusCondition) bool { return have.Type == kind })
	if index < 0 {
		c.conditions = append(c.conditions, condition)
		return
	}
	if c.conditions[index].Status == status {
		condition.LastTransitionTime = c.conditions[index].LastTransitionTime
	}
	c.conditions[index] = condition
}

// unset removes the conditions that match.
func (c *Cluster) unset(matches func(kind string) bool) {
	c.conditions = slices.DeleteFunc(c.conditions, func(have configv1.ClusterOperatorStatusCondition) bool {
		return matches(string(have.Type))
	})
}

// report writes the conditions of the ClusterVersion.
func (c *Cluster) report() {
	c.set(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+c.installed.Version)
	c.set(releaseAccepted, c.accepted.status, c.accepted.reason, c.accepted.message)
	if c.invalid != "" {
		c.set(invalid, configv1.ConditionTrue, "InvalidClusterVersion", "The cluster version is invalid: "+c.invalid)
	} else {
		c.unset(func(kind string) bool { return kind == string(invalid) })
	}
	if names := slices.Sorted(slices.Values(c.Knobs.Capabilities)); len(names) > 0 {
		c.set(implicitly, configv1.ConditionTrue, "CapabilitiesImplicitlyEnabled",
			"The following capabilities could not be disabled: "+strings.Join(names, ", "))
	} else {
		c.set(implicitly, configv1.ConditionFalse, "AsExpected", "Capabilities match configured spec")
	}
	if c.reconciling() {
		c.reportReconciling()
	} else {
		c.reportUpdating()
	}
	against := c.upgradeable()
	for _, condition := range against {
		c.set(condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	c.unset(func(kind string) bool {
		return strings.HasPrefix(kind, string(configv1.OperatorUpgradeable)) &&
			!slices.ContainsFunc(against, func(is configv1.ClusterOperatorStatusCondition) bool { return string(is.Type) == kind })
	})
}

// reportReconciling is what a cluster says that has its target.
func (c *Cluster) reportReconciling() {
	version := c.target.Version
	if reason, what := c.reportDegraded(); reason != "" {
		c.set(configv1.OperatorProgressing, configv1.ConditionFalse, reason, fmt.Sprintf("Error while reconciling %s: the %s", version, what))
		return
	}
	c.set(failing, configv1.ConditionFalse, "", "")
	if c.invalid != "" {
		c.set(configv1.OperatorProgressing, configv1.ConditionFalse, "InvalidClusterVersion",
			fmt.Sprintf("Stopped at %s: the cluster version is invalid", version))
		return
	}
	c.set(configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is "+version)
}

// reportUpdating is what a cluster says that gets its target.
func (c *Cluster) reportUpdating() {
	version := c.target.Version
	if reason, what := c.reportDegraded(); reason != "" {
		c.set(configv1.OperatorProgressing, configv1.ConditionTrue, reason, fmt.Sprintf("Unable to apply %s: the %s", version, what))
		return
	}
	done, all := c.done()
	message := fmt.Sprintf("Working towards %s: %d of %d done (%d%% complete)", version, done, all, 100*done/all)
	waiting, slow := c.waitedFor()
	switch {
	case len(slow) > 0:
		text := fmt.Sprintf("waiting on %s over %s which is longer than expected", strings.Join(slow, ", "), usual(slow))
		c.set(failing, configv1.ConditionUnknown, "SlowClusterOperator", text)
		c.set(configv1.OperatorProgressing, configv1.ConditionTrue, "ClusterOperatorUpdating", message+", "+text)
		return
	case c.invalid != "":
		c.set(configv1.OperatorProgressing, configv1.ConditionTrue, "InvalidClusterVersion",
			fmt.Sprintf("Reconciling %s: the cluster version is invalid", version))
	case len(waiting) > 0:
		c.set(configv1.OperatorProgressing, configv1.ConditionTrue, plural("ClusterOperator", waiting)+"Updating",
			message+", waiting on "+strings.Join(waiting, ", "))
	default:
		c.set(configv1.OperatorProgressing, configv1.ConditionTrue, "", message)
	}
	c.set(failing, configv1.ConditionFalse, "", "")
}

// usual is how long the slowest of some operators usually takes at most, whatever it takes here.
func usual(names []string) string {
	if slices.Contains(names, machineConfig) {
		return "90 minutes"
	}
	return "30 minutes"
}

// reportDegraded says that operators are degraded, and returns how that is said elsewhere; nothing when none is.
func (c *Cluster) reportDegraded() (reason, what string) {
	names := c.degradedOperators()
	if len(names) == 0 {
		return "", ""
	}
	verb := "is"
	if len(names) > 1 {
		verb = "are"
	}
	what = fmt.Sprintf("%s %s %s degraded", plural("cluster operator", names), strings.Join(names, ", "), verb)
	reason = plural("ClusterOperator", names) + "Degraded"
	c.set(failing, configv1.ConditionTrue, reason, "C"+strings.TrimPrefix(what, "c"))
	return reason, what
}

func plural(word string, names []string) string {
	if len(names) == 1 {
		return word
	}
	return word + "s"
}
