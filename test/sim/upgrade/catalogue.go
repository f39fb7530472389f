// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Release is a release of OpenShift.
type Release struct {
	// Version is its name, Image its pull specification, by digest.
	Version, Image string
	// KubeletVersion and OSImage are what its hosts report in status.nodeInfo.
	KubeletVersion, OSImage string
	// Signed says that a signature of the digest is found.
	Signed bool
	// Gates are what the release writes to ConfigMap admin-gates: keys such as ack-4.20-kube-1.34-api-removals-in-4.21 with a text. Each has
	// to be acknowledged before the next minor version.
	Gates map[string]string
}

// Risk is why an update may not be recommended.
type Risk struct {
	Name, Message, URL string
	// Recommended says whether the update is recommended in this cluster in spite of the risk: True, False or Unknown.
	Recommended metav1.ConditionStatus
}

// Edge is an update that the graph knows. With risks it is a conditional one.
type Edge struct {
	From, To string
	Risks    []Risk
}

// Catalogue is every release that exists, and the graph of the updates between them.
type Catalogue struct {
	Releases []Release
	Edges    []Edge
	// Unreachable says that the graph cannot be retrieved, as in a cluster without internet.
	Unreachable bool
}

// ByVersion returns a release by its version.
func (c Catalogue) ByVersion(version string) (Release, bool) {
	return c.find(func(r Release) bool { return r.Version == version })
}

// ByImage returns a release by its pull specification.
func (c Catalogue) ByImage(image string) (Release, bool) {
	return c.find(func(r Release) bool { return r.Image == image })
}

// With is the catalogue with a release in the place of the one of the same version.
func (c Catalogue) With(release Release) Catalogue {
	kept := slices.DeleteFunc(slices.Clone(c.Releases), func(r Release) bool { return r.Version == release.Version })
	c.Releases = append(kept, release)
	return c
}

func (c Catalogue) find(matches func(Release) bool) (Release, bool) {
	index := slices.IndexFunc(c.Releases, matches)
	if index < 0 {
		return Release{}, false
	}
	return c.Releases[index], true
}

// Channel is the channel in which an installed version is looked for by default.
func Channel(version string) string {
	v := parse(version)
	return fmt.Sprintf("stable-%d.%d", v.Major, v.Minor)
}

// parse reads a version; one that is none is the lowest there is.
func parse(version string) semver.Version {
	v, err := semver.Parse(version)
	if err != nil {
		return semver.Version{}
	}
	return v
}

// ofChannel reports whether a channel has releases of a version's minor: a channel has those of its own minor, and the older ones from
// which they are reached.
func ofChannel(channel, version string) bool {
	_, name, found := strings.Cut(channel, "-")
	if !found {
		return false
	}
	major, minor, found := strings.Cut(name, ".")
	x, errX := strconv.ParseUint(major, 10, 32)
	y, errY := strconv.ParseUint(minor, 10, 32)
	if !found || errX != nil || errY != nil {
		return false
	}
	v := parse(version)
	return v.Major < x || v.Major == x && v.Minor <= y
}

// crossesMinor reports whether a step leads to a later minor or major version.
func crossesMinor(from, to string) bool {
	a, b := parse(from), parse(to)
	return b.Major > a.Major || b.Major == a.Major && b.Minor > a.Minor
}

// rendered is the name of the configuration that a pool has with a release.
func rendered(pool string, release Release) string {
	sum := sha256.Sum256([]byte(pool + release.Version + release.Image))
	return "rendered-" + pool + "-" + hex.EncodeToString(sum[:16])
}

// retrieve asks the graph for the updates from the current release.
func (c *Cluster) retrieve() {
	channel := c.in.Spec.Channel
	c.available, c.conditional = nil, nil
	_, known := c.catalogue.ByVersion(c.target.Version)
	switch {
	case channel == "":
		c.set(configv1.RetrievedUpdates, configv1.ConditionFalse, "NoChannel", "The update channel has not been configured.")
	case c.Knobs.Unreachable:
		c.set(configv1.RetrievedUpdates, configv1.ConditionFalse, "RemoteFailed",
			"Unable to retrieve available updates: Get \"https://api.openshift.com/api/upgrades_info/v1/graph\": dial tcp: i/o timeout")
	case !known || !ofChannel(channel, c.target.Version):
		c.set(configv1.RetrievedUpdates, configv1.ConditionFalse, "VersionNotFound", fmt.Sprintf(
			"Unable to retrieve available updates: currently reconciling cluster version %s not found in the %q channel", c.target.Version, channel))
	default:
		c.set(configv1.RetrievedUpdates, configv1.ConditionTrue, "", "")
		c.offer(channel)
	}
}

// offer lists the updates of a channel, the newest first. A conditional one that is recommended in this cluster is available too.
func (c *Cluster) offer(channel string) {
	edges := slices.Clone(c.catalogue.Edges)
	slices.SortStableFunc(edges, func(a, b Edge) int { return parse(b.To).Compare(parse(a.To)) })
	for _, edge := range edges {
		to, known := c.catalogue.ByVersion(edge.To)
		if edge.From != c.target.Version || !known || !ofChannel(channel, edge.To) {
			continue
		}
		release := configv1.Release{Version: to.Version, Image: to.Image}
		if len(edge.Risks) == 0 {
			c.available = append(c.available, release)
			continue
		}
		update := c.conditionalUpdate(release, edge.Risks)
		if update.Conditions[0].Status == metav1.ConditionTrue {
			c.available = append(c.available, release)
		}
		c.conditional = append(c.conditional, update)
	}
}

// conditionalUpdate is an update with risks, and whether it is recommended: not if one risk says so, and nobody knows if one is unknown.
func (c *Cluster) conditionalUpdate(release configv1.Release, risks []Risk) configv1.ConditionalUpdate {
	out := configv1.ConditionalUpdate{Release: release}
	recommended := metav1.Condition{
		Type: "Recommended", Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "The update is recommended, because none of the " +
			"conditional update risks apply to this cluster.", LastTransitionTime: metav1.NewTime(c.began).Rfc3339Copy(),
	}
	var against []Risk
	for _, risk := range risks {
		out.Risks = append(out.Risks, configv1.ConditionalUpdateRisk{
			Name: risk.Name, Message: risk.Message, URL: risk.URL, MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
		})
		if risk.Recommended == metav1.ConditionTrue {
			continue
		}
		against = append(against, risk)
		if recommended.Status != metav1.ConditionFalse {
			recommended.Status = risk.Recommended
		}
	}
	var messages []string
	for _, risk := range against {
		recommended.Reason = risk.Name
		messages = append(messages, risk.Message+" "+risk.URL)
	}
	if len(against) > 1 {
		recommended.Reason = "MultipleReasons"
	}
	if len(against) > 0 {
		recommended.Message = strings.Join(messages, "\n\n")
	}
	out.Conditions = []metav1.Condition{recommended}
	return out
}
