// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/pelletier/go-toml/v2"

	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// mirrorsLimits are those of a registries.conf: of TOML, only the size is looked at.
var mirrorsLimits = untrusted.Limits{Bytes: 256 << 10}

// Mirrors say where else the images of registries are: what containers-registries.conf(5), an ImageDigestMirrorSet and an ImageTagMirrorSet
// have in common. The library that container engines read that file with takes it from a disk only, and the managers have none to write to.
type Mirrors struct {
	registries []registryRule
	// unusable is the error when the location of a mirror makes no name of an image; it says which configuration has the mirror.
	unusable error
}

// registryRule is a table [[registry]] of registries.conf.
type registryRule struct {
	// Prefix is what it is for: a registry, a part of its repositories, or *. and a domain. It is Location when it is empty.
	Prefix string `toml:"prefix"`
	// Location replaces the prefix when the source itself is asked.
	Location string `toml:"location"`
	// Blocked: the source is never asked, only its mirrors are.
	Blocked            bool     `toml:"blocked"`
	MirrorByDigestOnly bool     `toml:"mirror-by-digest-only"`
	Mirrors            []mirror `toml:"mirror"`
}

// mirror is a table [[registry.mirror]].
type mirror struct {
	Location string `toml:"location"`
	// PullFromMirror says for what kind of names it is: all of them when it is empty.
	PullFromMirror string `toml:"pull-from-mirror"`
}

// The values of pull-from-mirror.
const (
	allNames   = "all"
	digestOnly = "digest-only"
	tagOnly    = "tag-only"
)

// maxSources is the number of names under which an image is looked up: each may take as long as a registry that does not answer.
const maxSources = 16

// ParseMirrors reads a registries.conf of version 2. What is in it besides mirrors is left alone. unusable is the error when it, or a name
// in it, cannot be used.
func ParseMirrors(file []byte, unusable error) (Mirrors, error) {
	if err := mirrorsLimits.Size(file); err != nil {
		return Mirrors{}, fmt.Errorf("%w: %w", unusable, err)
	}
	var parsed struct {
		Registries []registryRule `toml:"registry"`
	}
	if err := toml.Unmarshal(file, &parsed); err != nil {
		return Mirrors{}, fmt.Errorf("%w: %w", unusable, err)
	}
	found := Mirrors{unusable: unusable}
	for _, r := range parsed.Registries {
		if r.Prefix == "" {
			r.Prefix = r.Location
		}
		r = r.normal()
		if problem := r.problem(); problem != "" {
			return Mirrors{}, fmt.Errorf("%w: %s", unusable, problem)
		}
		// Of several tables for one prefix, container engines know the first.
		if !slices.ContainsFunc(found.registries, func(known registryRule) bool { return known.Prefix == r.Prefix }) {
			found.registries = append(found.registries, r)
		}
	}
	return found, nil
}

// problem says why container engines refuse a table; it is empty when they accept the table.
func (r registryRule) problem() string {
	domain, all := strings.CutPrefix(r.Prefix, wildcard)
	switch {
	case r.Prefix == "":
		return "a registry has neither prefix nor location"
	case r.Location == "" && !all:
		return fmt.Sprintf("registry %s has no location", r.Prefix)
	case all && strings.ContainsAny(domain, "/:"):
		return fmt.Sprintf("prefix %s: after %s comes a domain alone", r.Prefix, wildcard)
	}
	for _, m := range r.Mirrors {
		if !slices.Contains([]string{"", allNames, digestOnly, tagOnly}, m.PullFromMirror) {
			return fmt.Sprintf("pull-from-mirror %q of %s: it is %s, %s or %s", m.PullFromMirror, m.Location, allNames, digestOnly, tagOnly)
		}
		if r.MirrorByDigestOnly && m.PullFromMirror != "" {
			return fmt.Sprintf("registry %s has mirror-by-digest-only, and its mirror %s pull-from-mirror", r.Prefix, m.Location)
		}
	}
	return ""
}

// normal brings names into the form of those of images: nothing ends with a slash, and the Docker Hub has one name.
func (r registryRule) normal() registryRule {
	r.Prefix, r.Location = strings.TrimRight(r.Prefix, "/"), strings.TrimRight(r.Location, "/")
	if host, path, _ := strings.Cut(r.Prefix, "/"); host == dockerHub {
		r.Prefix = strings.TrimRight(name.DefaultRegistry+"/"+path, "/")
	}
	r.Mirrors = slices.Clone(r.Mirrors)
	for i := range r.Mirrors {
		r.Mirrors[i].Location = strings.TrimRight(r.Mirrors[i].Location, "/")
	}
	return r
}

// MirrorsOf are those of an OpenShift cluster, which the management cluster may be.
func MirrorsOf(digests []configv1.ImageDigestMirrorSet, tags []configv1.ImageTagMirrorSet) Mirrors {
	found := Mirrors{unusable: ErrManagementMirrors}
	add := func(source string, mirrors []configv1.ImageMirror, policy configv1.MirrorSourcePolicy, kind string) {
		r := registryRule{Prefix: source, Location: source, Blocked: policy == configv1.NeverContactSource}
		if strings.HasPrefix(source, wildcard) {
			r.Location = ""
		}
		for _, location := range mirrors {
			r.Mirrors = append(r.Mirrors, mirror{Location: string(location), PullFromMirror: kind})
		}
		found.registries = append(found.registries, r.normal())
	}
	for _, set := range digests {
		for _, m := range set.Spec.ImageDigestMirrors {
			add(m.Source, m.Mirrors, m.MirrorSourcePolicy, digestOnly)
		}
	}
	for _, set := range tags {
		for _, m := range set.Spec.ImageTagMirrors {
			add(m.Source, m.Mirrors, m.MirrorSourcePolicy, tagOnly)
		}
	}
	return found
}

// wildcard begins a prefix that is for all hosts of a domain.
const wildcard = "*."

// sources are the names under which an image is looked up, each once and in order: at the mirrors of the first set that knows it, then of
// the next, and last at the source itself. A name that a set blocks is left out, as container engines leave it out.
func sources(image name.Reference, sets []Mirrors) ([]name.Reference, error) {
	var found []name.Reference
	source := image
	for _, set := range sets {
		registries, matched := set.matching(image.Name())
		rest := image.Name()[matched:]
		for _, r := range registries {
			mirrored, err := r.mirrored(image, rest)
			if err == nil && r.Location != "" && source.Name() == image.Name() {
				source, err = parsedName(r.Location, rest)
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", set.unusable, r.Prefix, err)
			}
			found = append(found, mirrored...)
		}
	}
	isBlocked := func(n name.Reference) bool {
		return slices.ContainsFunc(sets, func(set Mirrors) bool { return set.block(n.Name()) })
	}
	found = slices.DeleteFunc(first(maxSources, found), isBlocked)
	if !isBlocked(image) && !isBlocked(source) {
		found = first(maxSources, append(first(maxSources-1, found), source))
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrBlocked, image.Context().Name())
	}
	return found, nil
}

// first are the first names, at most so many, without those that are there before.
func first(most int, names []name.Reference) []name.Reference {
	var found []name.Reference
	for _, n := range names {
		known := slices.ContainsFunc(found, func(f name.Reference) bool { return f.Name() == n.Name() })
		if !known && len(found) < most {
			found = append(found, n)
		}
	}
	return found
}

// parsedName is the name of an image at another location; rest is what follows its prefix.
func parsedName(location, rest string) (name.Reference, error) {
	found, err := name.ParseReference(location+rest, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("location %q: %w", location, err)
	}
	return found, nil
}

// matching returns the registries with the longest prefix that a name begins with, and how much of the name that prefix covers. There are
// several where an ImageDigestMirrorSet and an ImageTagMirrorSet are for one source.
func (m Mirrors) matching(image string) ([]registryRule, int) {
	var found []registryRule
	longest, matched := 0, 0
	for _, r := range m.registries {
		covers := r.covers(image)
		if covers == 0 || len(r.Prefix) < longest {
			continue
		}
		if len(r.Prefix) > longest {
			found, longest, matched = nil, len(r.Prefix), covers
		}
		found = append(found, r)
	}
	return found, matched
}

// block reports whether a name must not be asked for.
func (m Mirrors) block(image string) bool {
	registries, _ := m.matching(image)
	return slices.ContainsFunc(registries, func(r registryRule) bool { return r.Blocked })
}

// covers returns how much of a name a registry's prefix stands for; 0 when the name does not begin with it.
func (r registryRule) covers(image string) int {
	end := 0
	if domain, ok := strings.CutPrefix(r.Prefix, wildcard); ok {
		host, _, _ := strings.Cut(image, "/")
		if at := strings.Index(host, "."+domain); at > 0 {
			end = at + 1 + len(domain)
		}
	} else if strings.HasPrefix(image, r.Prefix) {
		end = len(r.Prefix)
	}
	if end == 0 || end < len(image) && !strings.ContainsRune("/:@", rune(image[end])) {
		return 0
	}
	return end
}

// mirrored returns the names of an image at the registry's mirrors. It leaves out mirrors for digests when the name has a tag, and mirrors
// for tags when it has a digest. rest is the part of the image's own name behind the prefix.
func (r registryRule) mirrored(image name.Reference, rest string) ([]name.Reference, error) {
	_, byDigest := image.(name.Digest)
	var found []name.Reference
	for _, m := range r.Mirrors {
		if byDigest && m.PullFromMirror == tagOnly || !byDigest && (r.MirrorByDigestOnly || m.PullFromMirror == digestOnly) {
			continue
		}
		mirrored, err := parsedName(m.Location, rest)
		if err != nil {
			return nil, err
		}
		found = append(found, mirrored)
	}
	return found, nil
}
