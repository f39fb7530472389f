// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
)

const (
	someDigest = "@sha256:6b2a4f0c3d5e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708"
	ocp        = "quay.io/openshift-release-dev/ocp-release"
)

func parsed(t *testing.T, file string) Mirrors {
	t.Helper()
	mirrors, err := ParseMirrors([]byte(file), ErrMirrors)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return mirrors
}

func namesOf(references []name.Reference) []string {
	names := make([]string, len(references))
	for i, reference := range references {
		names[i] = reference.Name()
	}
	return names
}

func TestSources(t *testing.T) {
	for _, c := range []struct {
		name, conf, image string
		want              []string
	}{
		{"no mirrors", ``, ocp + ":4", []string{ocp + ":4"}},
		{"a registry's", `
[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "mirror.example.com:5000/quay"`, ocp + ":4", []string{
			"mirror.example.com:5000/quay/openshift-release-dev/ocp-release:4", ocp + ":4",
		}},
		{"a repository's, in order", `
[[registry]]
location = "` + ocp + `"
[[registry.mirror]]
location = "b.example.com/release"
[[registry.mirror]]
location = "a.example.com/release"`, ocp + someDigest, []string{
			"b.example.com/release" + someDigest, "a.example.com/release" + someDigest, ocp + someDigest,
		}},
		{"the longest prefix alone", `
[[registry]]
prefix = "quay.io/openshift-release-dev"
location = "quay.io/openshift-release-dev"
[[registry.mirror]]
location = "long.example.com"
[[registry]]
prefix = "quay.io"
location = "quay.io"
[[registry.mirror]]
location = "short.example.com"`, ocp + ":4", []string{"long.example.com/ocp-release:4", ocp + ":4"}},
		{"half a name is no prefix", `
[[registry]]
location = "quay.io/openshift"
[[registry.mirror]]
location = "mirror.example.com"`, ocp + ":4", []string{ocp + ":4"}},
		{"by digest only, for a tag", `
[[registry]]
location = "quay.io"
mirror-by-digest-only = true
[[registry.mirror]]
location = "mirror.example.com"`, ocp + ":4", []string{ocp + ":4"}},
		{"mirrors for tags and for digests", `
[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "digests.example.com"
pull-from-mirror = "digest-only"
[[registry.mirror]]
location = "tags.example.com"
pull-from-mirror = "tag-only"
[[registry.mirror]]
location = "all.example.com"
pull-from-mirror = "all"`, "quay.io/rel" + someDigest, []string{
			"digests.example.com/rel" + someDigest, "all.example.com/rel" + someDigest, "quay.io/rel" + someDigest,
		}},
		{"a blocked source", `
[[registry]]
location = "quay.io"
blocked = true
[[registry.mirror]]
location = "mirror.example.com"`, "quay.io/rel:4", []string{"mirror.example.com/rel:4"}},
		{"a mirror whose own name another entry blocks", `
[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "forbidden.example.com/quay"
[[registry.mirror]]
location = "mirror.example.com"
[[registry]]
prefix = "forbidden.example.com"
location = "forbidden.example.com"
blocked = true`, "quay.io/rel:4", []string{"mirror.example.com/rel:4", "quay.io/rel:4"}},
		{"a mirror below a blocked registry that an entry of its own allows", `
[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "mirror.example.com/quay"
[[registry]]
location = "mirror.example.com"
blocked = true
[[registry]]
location = "mirror.example.com/quay"`, "quay.io/rel:4", []string{"mirror.example.com/quay/rel:4", "quay.io/rel:4"}},
		{"a blocked location of the source", `
[[registry]]
prefix = "quay.io"
location = "moved.example.com"
[[registry.mirror]]
location = "mirror.example.com"
[[registry]]
location = "moved.example.com"
blocked = true`, "quay.io/rel:4", []string{"mirror.example.com/rel:4"}},
		{"another location", `
[[registry]]
prefix = "quay.io/rel"
location = "moved.example.com/sel"`, "quay.io/rel:4", []string{"moved.example.com/sel:4"}},
		{"all hosts of a domain", `
[[registry]]
prefix = "*.example.com"
[[registry.mirror]]
location = "mirror.example.org/all"`, "a.b.example.com/rel:4", []string{"mirror.example.org/all/rel:4", "a.b.example.com/rel:4"}},
		{"the domain is no host of it", `
[[registry]]
prefix = "*.example.com"
[[registry.mirror]]
location = "mirror.example.org/all"`, "example.com/rel:4", []string{"example.com/rel:4"}},
		{"a port ends a host", `
[[registry]]
prefix = "*.example.com"
[[registry.mirror]]
location = "mirror.example.org"`, "a.example.community/rel:4", []string{"a.example.community/rel:4"}},
		{"the Docker Hub", `
[[registry]]
location = "docker.io"
[[registry.mirror]]
location = "mirror.example.com"`, "docker.io/org/rel:4", []string{"mirror.example.com/org/rel:4", "index.docker.io/org/rel:4"}},
		{"a slash at the end, and a part of a name like a version of the API", `
[[registry]]
prefix = "quay.io/v2/"
location = "quay.io/v2/"
[[registry.mirror]]
location = "mirror.example.com/"`, "quay.io/v2/rel:4", []string{"mirror.example.com/rel:4", "quay.io/v2/rel:4"}},
		{"it is not for the whole registry", `
[[registry]]
location = "quay.io/v2"
blocked = true`, "quay.io/rel:4", []string{"quay.io/rel:4"}},
		{"a mirror that is named twice, and is the source", `
[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "mirror.example.com"
[[registry.mirror]]
location = "mirror.example.com"
[[registry.mirror]]
location = "quay.io"`, "quay.io/rel:4", []string{"mirror.example.com/rel:4", "quay.io/rel:4"}},
		{"the first of two tables for one prefix", `
[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "first.example.com"
[[registry]]
location = "quay.io"
[[registry.mirror]]
location = "second.example.com"`, "quay.io/rel:4", []string{"first.example.com/rel:4", "quay.io/rel:4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			image, err := name.ParseReference(c.image)
			g.Expect(err).NotTo(HaveOccurred())
			found, err := sources(image, []Mirrors{parsed(t, c.conf)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(namesOf(found)).To(Equal(c.want))
		})
	}
}

// TestSetsOfMirrors: each set adds its mirrors, and the first that moves the source does.
func TestSetsOfMirrors(t *testing.T) {
	g := NewWithT(t)
	image, err := name.ParseReference("quay.io/ocp/rel:4")
	g.Expect(err).NotTo(HaveOccurred())
	found, err := sources(image, []Mirrors{
		parsed(t, "[[registry]]\nlocation = 'quay.io/ocp'\n[[registry.mirror]]\nlocation = 'm.example.com'"),
		parsed(t, "[[registry]]\nprefix = 'quay.io'\nlocation = 'proxy.example.com/quay'"),
		parsed(t, "[[registry]]\nprefix = 'quay.io'\nlocation = 'later.example.com'\n[[registry.mirror]]\nlocation = 'n.example.com'"),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namesOf(found)).To(Equal([]string{"m.example.com/rel:4", "n.example.com/ocp/rel:4", "proxy.example.com/quay/ocp/rel:4"}))
	const blocked = "\n[[registry]]\nlocation = 'm.example.com'\nblocked = true"
	own := parsed(t, "[[registry]]\nlocation = 'quay.io'\nblocked = true\n[[registry.mirror]]\nlocation = 'm.example.com'")
	_, err = sources(image, []Mirrors{own, parsed(t, blocked)})
	g.Expect(err).To(MatchError(ErrBlocked), "one set's mirror that another set blocks")
}

func TestMirrorsThatCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	_, err := ParseMirrors([]byte("[[registry]\n"), ErrMirrorsFile)
	g.Expect(err).To(MatchError(ErrMirrorsFile))
	const mirror = "\n[[registry.mirror]]\nlocation = 'm.example.com'\n"
	for conf, want := range map[string]string{
		"location = 'quay.io'" + mirror + "pull-from-mirror = 'digest_only'": "" +
			`pull-from-mirror "digest_only" of m.example.com: it is all, digest-only or tag-only`,
		"location = 'quay.io'\nmirror-by-digest-only = true" + mirror + "pull-from-mirror = 'digest-only'": "registry quay.io has " +
			"mirror-by-digest-only, and its mirror m.example.com pull-from-mirror",
		"prefix = 'quay.io'" + mirror:            "registry quay.io has no location",
		"blocked = true":                         "a registry has neither prefix nor location",
		"prefix = '*.example.com/ocp'" + mirror:  "prefix *.example.com/ocp: after *. comes a domain alone",
		"prefix = '*.example.com:5000'" + mirror: "prefix *.example.com:5000: after *. comes a domain alone",
	} {
		_, err = ParseMirrors([]byte("[[registry]]\n"+conf), ErrMirrors)
		g.Expect(err).To(And(MatchError(ErrMirrors), MatchError(ContainSubstring(want))))
	}
	image, err := name.ParseReference("quay.io/rel:4")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = sources(
		image,
		[]Mirrors{
			parsed(
				t, "[[registry]]\nlocation = 'quay.io'\nblocked = true\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = 'm.example.com'",
			),
		},
	)
	g.Expect(err).To(MatchError(ErrBlocked))
	_, err = sources(image, []Mirrors{parsed(t, "[[registry]]\nlocation = 'quay.io'\n[[registry.mirror]]\nlocation = 'M_/?'")})
	g.Expect(err).To(And(MatchError(ErrMirrors), MatchError(ContainSubstring(`quay.io: location "M_/?"`))))
	_, err = sources(image, []Mirrors{parsed(t, "[[registry]]\nprefix = 'quay.io'\nlocation = 'M_/?'")})
	g.Expect(err).To(MatchError(ErrMirrors))
	_, err = sources(image, []Mirrors{MirrorsOf([]configv1.ImageDigestMirrorSet{{Spec: configv1.ImageDigestMirrorSetSpec{
		ImageDigestMirrors: []configv1.ImageDigestMirrors{
			{Source: "quay.io/rel"}, {Source: "quay.io", Mirrors: []configv1.ImageMirror{"registry/ocp"}},
		},
	}}}, nil)})
	g.Expect(err).NotTo(HaveOccurred(), "the mirror is not for this image")
	digest, err := name.ParseReference("quay.io/other" + someDigest)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = sources(digest, []Mirrors{MirrorsOf([]configv1.ImageDigestMirrorSet{{Spec: configv1.ImageDigestMirrorSetSpec{
		ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: "quay.io", Mirrors: []configv1.ImageMirror{"registry"}}},
	}}}, nil)})
	g.Expect(Explain(err)).To(Equal(ErrManagementMirrors.Error()), "it is not the cluster's ConfigMap that is wrong")
}

// TestTooManyMirrors: nobody keeps a worker busy for ever, or makes a message that no condition holds.
func TestTooManyMirrors(t *testing.T) {
	g := NewWithT(t)
	conf := "[[registry]]\nlocation = 'quay.io'\n"
	for i := range 100 {
		conf += fmt.Sprintf("[[registry.mirror]]\nlocation = 'm%d.example.com/%s'\n", i, strings.Repeat("a/", 100))
	}
	image, err := name.ParseReference("quay.io/rel:4")
	g.Expect(err).NotTo(HaveOccurred())
	found, err := sources(image, []Mirrors{parsed(t, conf)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveLen(maxSources))
	g.Expect(found[maxSources-2].Name()).To(HavePrefix("m14.example.com/a/"))
	g.Expect(found[maxSources-1].Name()).To(Equal("quay.io/rel:4"))
	var refused refusals
	for _, source := range found {
		refused = append(
			refused, refusal{image: source.Name(), err: fmt.Errorf("%w: no token:\nhush %s", ErrUnauthorized, strings.Repeat("x", 1<<10))},
		)
	}
	g.Expect(len(Explain(refused))).To(BeNumerically("<=", maxExplanation+len("…")))
	g.Expect(detail(refused)).NotTo(ContainSubstring("hush"), "what a server answered is not logged")
}

func TestFetchFromMirrors(t *testing.T) {
	h := newHub(t)
	digest := h.push("4.20.4", releaseImage(t))
	// Nobody listens at the first address; the second is the registry, whose certificate is in the ConfigMap of mirrors.
	conf := func(locations ...string) string {
		conf := "[[registry]]\nlocation = 'release.invalid/ocp'\n"
		for _, location := range locations {
			conf += "[[registry.mirror]]\nlocation = '" + location + "'\n"
		}
		return conf
	}
	const down = "127.0.0.1:1/ocp"
	up := h.host() + "/ocp"
	t.Run("the first that has it", func(t *testing.T) {
		g := NewWithT(t)
		access := h.access()
		access.Cluster = parsed(t, conf(down, up))
		found, err := NewRegistry("test").Fetch(t.Context(), "release.invalid/ocp/release:4.20.4", access)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Digest).To(Equal(digest))
	})
	t.Run("from the manager's file", func(t *testing.T) {
		g := NewWithT(t)
		r := NewRegistry("test")
		r.MirrorsFile = filepath.Join(t.TempDir(), "registries.conf")
		_, err := r.Fetch(t.Context(), "release.invalid/ocp/release:4.20.4", h.access())
		g.Expect(err).To(MatchError(ErrMirrorsFile))
		g.Expect(os.WriteFile(r.MirrorsFile, []byte("registry = 1"), 0o600)).To(Succeed())
		_, err = r.Fetch(t.Context(), "release.invalid/ocp/release:4.20.4", h.access())
		g.Expect(Explain(err)).To(Equal("the manager cannot use the file of its flag --registries-conf-file"))
		g.Expect(os.WriteFile(r.MirrorsFile, []byte(conf(up)), 0o600)).To(Succeed())
		_, err = r.Fetch(t.Context(), "release.invalid/ocp/release:4.20.4", h.access())
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("each that was asked is told", func(t *testing.T) {
		g := NewWithT(t)
		access := h.access()
		access.Management = parsed(t, conf(up, down))
		_, err := NewRegistry("test").Fetch(t.Context(), "release.invalid/ocp/release:4.20.5", access)
		g.Expect(err).To(And(MatchError(ErrNotFound), MatchError(ErrUnreachable)))
		g.Expect(Explain(err)).To(Equal(up + "/release:4.20.5: the registry does not have the image; " +
			down + "/release:4.20.5: the registry cannot be reached; release.invalid/ocp/release:4.20.5: the registry cannot be reached"))
	})
	t.Run("credentials are those of the mirror", func(t *testing.T) {
		g := NewWithT(t)
		h.password[repository] = "right"
		defer delete(h.password, repository)
		access := Access{
			PullSecret: pullSecret(map[string]string{"release.invalid": "right", h.host(): "wrong"}), TrustBundle: h.bundle(),
			Cluster: parsed(t, conf(up)),
		}
		_, err := NewRegistry("test").Fetch(t.Context(), "release.invalid/ocp/release:4.20.4", access)
		g.Expect(err).To(MatchError(ErrUnauthorized))
		access.PullSecret = pullSecret(map[string]string{"release.invalid": "wrong", up: "right"})
		_, err = NewRegistry("test").Fetch(t.Context(), "release.invalid/ocp/release:4.20.4", access)
		g.Expect(err).NotTo(HaveOccurred())
	})
}
