// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// minorToFive is the first 4.y whose operator takes an update to 5.0. None takes one to another release of OpenShift 5.
const minorToFive = 22

// preconditions are what is against an update to a release, and what only warns of it.
func (c *Cluster) preconditions(release Release) (failed, warnings []string) {
	add := func(name, reason, message string) string {
		return fmt.Sprintf("Precondition %q failed because of %q: %s", name, reason, message)
	}
	if message := c.rollsBack(release); message != "" {
		failed = append(failed, add("ClusterVersionRollback", "LowDesiredVersion", message))
	}
	if reason, message := giantHop(c.target.Version, release.Version); message != "" {
		failed = append(failed, add("ClusterVersionGiantHop", reason, message))
	}
	if upgradeable := c.upgradeable(); len(upgradeable) > 0 && crossesMinor(c.target.Version, release.Version) {
		why := upgradeable[len(upgradeable)-1]
		failed = append(failed, add("ClusterVersionUpgradeable", why.Reason, why.Message))
	}
	for _, update := range c.conditional {
		if is := update.Conditions[0]; update.Release.Image == release.Image && is.Status != metav1.ConditionTrue {
			warnings = append(warnings, add("ClusterVersionRecommendedUpdate", is.Reason, fmt.Sprintf(
				"Update from %s to %s is not recommended:\n\n%s", c.target.Version, release.Version, is.Message)))
		}
	}
	return failed, warnings
}

// summary is all that is against an update in one text.
func summary(failed []string) string {
	if len(failed) == 1 {
		return failed[0]
	}
	return "Multiple precondition checks failed:\n* " + strings.Join(failed, "\n* ")
}

// rollsBack is what is against an older release: only that which the cluster had before is taken, and only of the same minor version.
func (c *Cluster) rollsBack(release Release) string {
	current, wanted := parse(c.target.Version), parse(release.Version)
	if !wanted.LT(current) {
		return ""
	}
	at := slices.IndexFunc(c.history, func(entry configv1.UpdateHistory) bool { return entry.Image != c.target.Image })
	switch {
	case at < 0:
		return fmt.Sprintf("%s is less than the current target %s, and the cluster has no previous Semantic Version", wanted, current)
	case c.history[at].Version != release.Version:
		return fmt.Sprintf("%s is less than the current target %s, and the only supported rollback is to the cluster's previous version %s (%s)",
			wanted, current, c.history[at].Version, c.history[at].Image)
	case wanted.Major == current.Major && wanted.Minor == current.Minor:
		return ""
	}
	return fmt.Sprintf("%s is less than the current target %s and matches the cluster's previous version, but rollbacks that change major "+
		"or minor versions are not recommended", wanted, current)
}

// giantHop is what is against a step that leaves out a minor version.
func giantHop(from, to string) (reason, message string) {
	current, wanted := parse(from), parse(to)
	switch {
	case wanted.Major > current.Major:
		supported := "within the current major version"
		if current.Major == 4 && current.Minor >= minorToFive && wanted.Major == 5 {
			supported += " or to 5.0"
			if wanted.Minor == 0 {
				return "", ""
			}
		}
		return "MajorVersionUpdate", fmt.Sprintf("%s has a larger major version than the current target %s (%d > %d), and only updates %s "+
			"are supported.", wanted, current, wanted.Major, current.Major, supported)
	case wanted.Major == current.Major && wanted.Minor > current.Minor+1:
		return "MultipleMinorVersionsUpdate", fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), "+
			"and only updates within the current minor version or to the next minor version are supported.",
			wanted, current, wanted.Major, wanted.Minor, current.Major, current.Minor)
	}
	return "", ""
}

// upgradeable are the conditions against another minor version, each by its source; with several the last one has them all. There is none
// when nothing is against it.
func (c *Cluster) upgradeable() []configv1.ClusterOperatorStatusCondition {
	var out []configv1.ClusterOperatorStatusCondition
	add := func(kind, reason, message string) {
		out = append(out, configv1.ClusterOperatorStatusCondition{
			Type: configv1.ClusterStatusConditionType(kind), Status: configv1.ConditionFalse, Reason: reason, Message: message,
		})
	}
	if reason, message := c.unacknowledged(); reason != "" {
		add("UpgradeableAdminAck", reason, message)
	}
	if reason, message := c.notUpgradeableOperators(); reason != "" {
		add("UpgradeableClusterOperators", reason, message)
	}
	if slices.ContainsFunc(c.in.Spec.Overrides, func(o configv1.ComponentOverride) bool { return o.Unmanaged }) {
		add("UpgradeableClusterVersionOverrides", "ClusterVersionOverridesSet", "Disabling ownership via cluster version overrides prevents "+
			"updates between minor or major versions. Please remove overrides before requesting a minor or major version update.")
	}
	if !c.reconciling() {
		add("UpgradeableUpgradeInProgress", "UpdateInProgress",
			"An update is already in progress and the details are in the Progressing condition")
	}
	if len(out) == 1 {
		out[0].Type = configv1.OperatorUpgradeable
	}
	if len(out) > 1 {
		var reasons, messages []string
		for _, condition := range out {
			reasons, messages = append(reasons, condition.Reason), append(messages, "* "+condition.Message)
		}
		add(string(configv1.OperatorUpgradeable), "MultipleReasons", fmt.Sprintf(
			"Cluster should not be updated between minor or major versions for multiple reasons: %s\n%s",
			strings.Join(reasons, ","), strings.Join(messages, "\n")))
	}
	return out
}

// unacknowledged is the text of every gate of the installed minor version that nobody has acknowledged. The operator does not say the key.
func (c *Cluster) unacknowledged() (reason, message string) {
	version := parse(c.installed.Version)
	prefix := fmt.Sprintf("ack-%d.%d-", version.Major, version.Minor)
	var keys, texts []string
	for key := range c.installed.Gates {
		if strings.HasPrefix(key, prefix) && c.in.Acks[key] != "true" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		texts = append(texts, c.installed.Gates[key])
	}
	if len(texts) == 0 {
		return "", ""
	}
	return "AdminAckRequired", strings.Join(texts, " ")
}

// notUpgradeableOperators are the operators that want no other minor version.
func (c *Cluster) notUpgradeableOperators() (reason, message string) {
	var texts []string
	for _, o := range c.Operators() {
		if o.NotUpgradeable == "" {
			continue
		}
		reason = o.NotUpgradeableReason
		texts = append(texts, fmt.Sprintf("Cluster operator %s should not be updated between minor or major versions: %s",
			o.Name, o.NotUpgradeable))
	}
	if len(texts) > 1 {
		return "ClusterOperatorsNotUpgradeable", "Multiple cluster operators should not be updated between minor or major versions:\n* " +
			strings.Join(texts, "\n* ")
	}
	return reason, strings.Join(texts, "")
}
