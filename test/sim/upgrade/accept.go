// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// request is the update that is asked for, as far as it is not the target yet.
type request struct {
	version, image string
	force          bool
	// since is when it was first seen.
	since time.Time
}

// verdict is what the cluster-version operator thinks of the release that is asked for.
type verdict struct {
	status          configv1.ConditionStatus
	reason, message string
}

// loaded is the verdict on a release that is accepted.
func loaded(release Release) verdict {
	return verdict{configv1.ConditionTrue, "PayloadLoaded", fmt.Sprintf("Payload loaded %s architecture=\"amd64\"",
		named(release.Version, release.Image))}
}

func named(version, image string) string { return fmt.Sprintf("version=%q image=%q", version, image) }

// follow takes spec.desiredUpdate. What is invalid is as if it were not there; what is refused is tried again with every look, because a
// signature or an acknowledgement may come.
func (c *Cluster) follow() {
	c.observed = c.in.Generation
	asked, invalid := c.resolve()
	c.invalid = invalid
	if asked.image == "" || asked.image == c.target.Image {
		c.request, c.accepted = request{}, loaded(c.target)
		return
	}
	if asked.version != c.request.version || asked.image != c.request.image || asked.force != c.request.force {
		asked.since = c.now
		c.request = asked
		c.accepted = verdict{
			configv1.ConditionUnknown, "RetrievePayload", "Retrieving and verifying payload " + named(asked.version, asked.image),
		}
		return
	}
	if c.now.Sub(c.request.since) >= c.options.Load {
		c.load()
	}
}

// resolve is the update that the spec asks for, with its image; without one there is nothing to do.
func (c *Cluster) resolve() (asked request, invalid string) {
	update := c.in.Spec.DesiredUpdate
	if update == nil {
		return request{}, ""
	}
	asked = request{version: update.Version, image: update.Image, force: update.Force}
	if asked.image != "" {
		return asked, ""
	}
	if asked.version == "" {
		return request{}, "spec.desiredUpdate: Required value: must specify version or image"
	}
	images := c.payloads(asked.version)
	if len(images) == 1 {
		asked.image = images[0]
		return asked, ""
	}
	why := "when image is empty the update must be a previous version or an available update"
	if len(images) > 1 {
		why = "there are multiple possible payloads for this version, specify the exact image"
	}
	return request{}, fmt.Sprintf("spec.desiredUpdate.version: Invalid value: %q: %s", asked.version, why)
}

// payloads are the images by which a version is known: from the graph, else from the history of the cluster.
func (c *Cluster) payloads(version string) []string {
	var images []string
	for _, release := range c.available {
		if release.Version == version {
			images = append(images, release.Image)
		}
	}
	for _, update := range c.conditional {
		if update.Release.Version == version {
			images = append(images, update.Release.Image)
		}
	}
	if len(images) == 0 {
		for _, entry := range c.history {
			if entry.Version == version {
				images = append(images, entry.Image)
			}
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// load judges the release that is asked for, and begins the update when nothing is against it.
func (c *Cluster) load() {
	asked := c.request
	release, unverified, failure := c.payload(asked)
	if failure != "" {
		c.refuse("RetrievePayload", "Retrieving payload failed", asked.version, failure)
		return
	}
	if asked.version != "" && asked.version != release.Version {
		c.refuse("VerifyPayloadVersion", "Verifying payload failed", asked.version, fmt.Sprintf(
			"release image version %s does not match the expected upstream version %s", release.Version, asked.version))
		return
	}
	var risks []string
	if unverified != "" {
		risks = append(risks, fmt.Sprintf("Target release %s cannot be verified, but continuing anyway because the update was forced: %s",
			named(asked.version, asked.image), unverified))
	}
	failed, warnings := c.preconditions(release)
	if len(failed) > 0 && !asked.force {
		c.accepted = verdict{configv1.ConditionFalse, "PreconditionChecks", fmt.Sprintf(
			"Preconditions failed for payload loaded %s: %s", named(release.Version, release.Image), summary(slices.Concat(failed, warnings)))}
		return
	}
	if len(failed) > 0 {
		risks = append(risks, "Forced through blocking failures: "+summary(failed))
	}
	c.begin(release, unverified == "", strings.Join(append(risks, warnings...), "\n"))
}

func (c *Cluster) refuse(step, what, version, failure string) {
	c.accepted = verdict{configv1.ConditionFalse, step, fmt.Sprintf("%s %s failure: %s", what, named(version, c.request.image), failure)}
}

// payload retrieves the release of an image. A digest that nobody has signed is taken by force only, and unverified tells of it.
func (c *Cluster) payload(asked request) (release Release, unverified, failure string) {
	release, exists := c.catalogue.ByImage(asked.image)
	_, digest, byDigest := strings.Cut(asked.image, "@")
	switch {
	case !byDigest:
		unverified = "release images that are not accessed via digest cannot be verified"
	case !exists || !release.Signed && !slices.Contains(c.Knobs.Signatures, digest):
		unverified = fmt.Sprintf("unable to verify %s against keyrings: verifier-public-key-redhat", digest)
	}
	switch {
	case unverified != "" && !asked.force:
		failure = "The update cannot be verified: " + unverified
	case !exists:
		failure = "Unable to download and prepare the update: manifest unknown"
	}
	return release, unverified, failure
}

// begin makes a release the target. What was being installed is left as it is.
func (c *Cluster) begin(release Release, verified bool, risks string) {
	now := c.stamp()
	if len(c.history) > 0 && c.history[0].CompletionTime == nil {
		c.history[0].CompletionTime = &now
	}
	c.history = append([]configv1.UpdateHistory{{
		State: configv1.PartialUpdate, StartedTime: now, Version: release.Version, Image: release.Image, Verified: verified, AcceptedRisks: risks,
	}}, c.history...)
	for _, o := range slices.Concat(c.waves...) {
		o.mixed = o.mixed || o.toward != o.release.Image
	}
	c.target, c.began, c.request, c.accepted = release, c.now, request{}, loaded(release)
	c.retrieve()
}
