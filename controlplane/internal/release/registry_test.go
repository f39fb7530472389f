// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

func TestFetch(t *testing.T) {
	h := newHub(t)
	single := h.push("4.20.4-x86_64", ofArchitecture(t, "amd64"))
	silent := h.push("4.20.4", releaseImage(t))
	list := h.pushIndex(
		"4.20.4-multi", ofArchitecture(t, "s390x"), ofArchitecture(t, "arm64"), ofArchitecture(t, "amd64"), ofArchitecture(t, "amd64"),
	)
	for _, c := range []struct {
		name, image, digest string
		architectures       []bootstrapv1.CPUArchitecture
	}{
		{"tag", h.image("4.20.4-x86_64"), single, []bootstrapv1.CPUArchitecture{"x86_64"}},
		{"list of architectures", h.image("4.20.4-multi"), list, []bootstrapv1.CPUArchitecture{"aarch64", "s390x", "x86_64"}},
		{"digest", h.host() + "/" + repository + "@" + single, single, []bootstrapv1.CPUArchitecture{"x86_64"}},
		{"no architecture", h.image("4.20.4"), silent, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := NewRegistry("test").Fetch(t.Context(), c.image, h.access())
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(found).To(Equal(Release{
				Digest: c.digest, Version: version, KubernetesVersion: kubernetesVersion, Architectures: c.architectures,
			}))
		})
	}
}

func TestImagesThatAreNoRelease(t *testing.T) {
	labels := map[string]string{"io.openshift.release": version}
	h := newHub(t)
	h.push("other", imageOf(t, nil, layerOf(t, map[string]string{"etc/os-release": "rhel"})))
	h.push("empty", imageOf(t, labels))
	h.push("no-references", imageOf(t, labels, layerOf(t, map[string]string{"etc/os-release": "rhel"})))
	h.push("broken", imageOf(t, labels, layerOf(t, map[string]string{"release-manifests/image-references": "apiVersion: v1"})))
	h.push(
		"no-kubernetes",
		imageOf(t, labels, layerOf(t, map[string]string{"release-manifests/image-references": imageReferences("cli", "kubectl=1.33.4")})),
	)
	h.pushIndex("empty-list")
	kubernetes := func(version string) v1.Layer {
		return layerOf(t, map[string]string{"release-manifests/image-references": imageReferences("hyperkube", "kubernetes="+version)})
	}
	long := "4.20.4-" + strings.Repeat("a", maxVersion)
	h.push("no-version", imageOf(t, map[string]string{"io.openshift.release": "latest"}, kubernetes("1.33.5")))
	h.push("long-version", imageOf(t, map[string]string{"io.openshift.release": long}, kubernetes("1.33.5")))
	h.push("long-kubernetes", imageOf(t, labels, kubernetes(long)))
	h.push(
		"large", imageOf(t, map[string]string{"io.openshift.release": version, "large": strings.Repeat("a", maxDocument)}, kubernetes("1.33.5")),
	)
	for _, tag := range []string{
		"other", "empty", "no-references", "broken", "no-kubernetes", "empty-list", "no-version", "long-version", "long-kubernetes", "large",
	} {
		_, err := NewRegistry("test").Fetch(t.Context(), h.image(tag), h.access())
		NewWithT(t).Expect(err).To(MatchError(ErrNoRelease), tag)
	}
}

// TestTamperedLayers: a registry, or a mirror, cannot show another file in a layer than the one that the image's digest stands for.
func TestTamperedLayers(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	genuine := archive(t, imageReferences("hyperkube", "kubernetes=1.33.5"))
	layer := static.NewLayer(genuine, types.OCIUncompressedLayer)
	hash, err := layer.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	h.push("4.20.4", imageOf(t, map[string]string{"io.openshift.release": version}, layer))
	for title, tampered := range map[string][]byte{
		"another version":    bytes.Replace(genuine, []byte("1.33.5"), []byte("1.39.5"), 1),
		"other bytes behind": append(bytes.Clone(genuine[:len(genuine)-1]), 'x'),
		"no archive at all":  bytes.Repeat([]byte("x"), len(genuine)),
	} {
		h.answer.Store(new(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/blobs/"+hash.String()) {
				_, _ = w.Write(tampered)
				return
			}
			h.content.ServeHTTP(w, r)
		})))
		_, err := NewRegistry("test").Fetch(t.Context(), h.image("4.20.4"), h.access())
		g.Expect(err).To(And(MatchError(ErrUnreachable), MatchError(ContainSubstring("sha256"))), title)
	}
}

func TestCredentialsByRepository(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	h.password[repository] = "right"
	digest := h.push("4.20.4", releaseImage(t))
	access := func(passwords map[string]string) Access {
		return Access{PullSecret: pullSecret(passwords), TrustBundle: h.bundle()}
	}
	registry := NewRegistry("test")
	_, err := registry.Fetch(
		t.Context(), h.image("4.20.4"),
		access(map[string]string{h.host(): "wrong", h.host() + "/ocp/release": "right", h.host() + "/ocp": "wrong"}),
	)
	g.Expect(err).NotTo(HaveOccurred())
	byDigest := h.host() + "/" + repository + "@" + digest
	_, err = registry.Fetch(t.Context(), byDigest, access(map[string]string{h.host(): "right"}))
	g.Expect(err).NotTo(HaveOccurred())
	// What one pull secret may see is not shown to another.
	_, err = registry.Fetch(t.Context(), byDigest, access(nil))
	g.Expect(err).To(MatchError(ErrUnauthorized))
	for _, passwords := range []map[string]string{nil, {h.host(): "wrong"}, {h.host() + "/ocp/rel": "right"},
		{h.host(): "right", h.host() + "/ocp": "wrong"}} {
		_, err := registry.Fetch(t.Context(), h.image("4.20.4"), access(passwords))
		g.Expect(err).To(MatchError(ErrUnauthorized))
		g.Expect(err.Error()).NotTo(Or(ContainSubstring("right"), ContainSubstring("wrong")))
	}
	_, err = registry.Fetch(t.Context(), h.image("4.20.4"), Access{PullSecret: []byte("secret"), TrustBundle: h.bundle()})
	g.Expect(err).To(MatchError(ErrPullSecret))
	g.Expect(err).NotTo(MatchError(ContainSubstring("secret:")))
}

func TestKeysOfPullSecrets(t *testing.T) {
	g := NewWithT(t)
	keys, err := newKeychain(pullSecret(map[string]string{
		"https://index.docker.io/v1/":       "hub",
		"http://registry.example.com:5000/": "plain",
		"quay.io":                           "quay",
		"quay.io/org":                       "org",
		"docker.io/org":                     "hub-org",
		"https://quay.io":                   "another",
		"https://quay.io/v2/":               "and another",
		"*.mirrors.example.com":             "any",
		"*.mirrors.example.com/org":         "any-org",
		"one.mirrors.example.com":           "one",
		"*.other.example.com:5000":          "port",
		"*.io":                              "io",
		"[broken":                           "no glob",
		"%zz":                               "no name of a host",
		"quay.io/org?a":                     "no name of a repository",
	}))
	g.Expect(err).NotTo(HaveOccurred())
	for image, want := range map[string]string{
		"docker.io/library/app:1": "hub", "docker.io/org/app:1": "hub-org", "registry.example.com:5000/app:1": "plain",
		"registry.example.com/app:1": "",
		"quay.io/app:1":              "quay", "quay.io/org/app:1": "org", "quay.io/org/b/app:1": "org", "quay.io/organisation/app:1": "quay",
		"quay.io/org:1": "org", "one.mirrors.example.com/org/a:1": "one", "two.mirrors.example.com/app:1": "any",
		"two.mirrors.example.com/org/b:1": "any-org", "a.two.mirrors.example.com/app:1": "", "mirrors.example.com/app:1": "",
		"x.other.example.com:5000/app:1": "port", "x.other.example.com/app:1": "", "x.other.example.com:5001/app:1": "",
		"mirrors.example.com.io/app:1": "", "ghcr.io/app:1": "io", "one.mirrors.example.com:80/app:1": "",
	} {
		reference, err := name.ParseReference(image)
		g.Expect(err).NotTo(HaveOccurred())
		found, err := keys.Resolve(reference.Context())
		g.Expect(err).NotTo(HaveOccurred())
		config, err := found.Authorization()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Password).To(Equal(want), image)
	}
}

func TestProblemsOfRegistries(t *testing.T) {
	const system = "system" // no certificates but those of the system
	h := newHub(t)
	h.push("4.20.4", releaseImage(t))
	slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	broken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotImplemented) }
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(`{"layers":[{},{},{},{},{},{},{},{}]}`))
		}
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+h.host()+r.URL.Path, http.StatusTemporaryRedirect)
	}
	for _, c := range []struct {
		name   string
		image  string
		answer http.HandlerFunc
		bundle string
		// timeout is the shipped one when it is zero.
		timeout time.Duration
		want    error
	}{
		{name: "no such tag", image: h.image("4.20.5"), want: ErrNotFound},
		{name: "no tag", image: h.host() + "/" + repository, want: ErrNotFound},
		{name: "slow", answer: slow, timeout: time.Second, want: ErrTimeout}, {name: "broken", answer: broken, want: ErrUnreachable},
		{name: "endless", answer: endless, want: ErrUnreachable}, {name: "redirection to plain HTTP", answer: redirect, want: ErrUnreachable},
		{name: "nobody there", image: "127.0.0.1:1/ocp/release:4.20.4", want: ErrUnreachable},
		{name: "unknown certificate", bundle: system, want: ErrCertificate}, {name: "no certificate", bundle: "none", want: ErrTrustBundle},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.answer.Store(nil)
			if c.answer != nil {
				h.answer.Store(&c.answer)
			}
			access := h.access()
			if c.bundle != "" {
				access.TrustBundle = strings.TrimPrefix(c.bundle, system)
			}
			image := c.image
			if image == "" {
				image = h.image("4.20.4")
			}
			registry := NewRegistry("test")
			registry.Timeout = cmp.Or(c.timeout, registry.Timeout)
			_, err := registry.Fetch(t.Context(), image, access)
			NewWithT(t).Expect(err).To(MatchError(c.want))
			NewWithT(t).Expect(Explain(err)).To(Equal(c.want.Error()))
		})
	}
}

// TestLimits: only layers may be large, whatever a repository is called.
func TestLimits(t *testing.T) {
	g := NewWithT(t)
	request := func(path string) *http.Request {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://registry.example.com"+path, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		return request
	}
	layer := request("/v2/ocp/release/blobs/sha256:1")
	redirected := request("/storage/1")
	redirected.Response = &http.Response{Request: layer}
	for asked, want := range map[*http.Request]int64{
		layer: maxLayer, redirected: maxLayer,
		request("/v2/"): maxDocument, request("/v2/a/blobs/b/manifests/t"): maxDocument, request("/v2/ocp/release/manifests/blobs"): maxDocument,
	} {
		g.Expect(limitOf(asked)).To(Equal(want), asked.URL.Path)
	}
}

// TestCertificatesOfTheManager: registries under a private CA are trusted by a file of the manager's, which may appear and change while it
// runs.
func TestCertificatesOfTheManager(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	digest := h.push("4.20.4", releaseImage(t))
	registry := NewRegistry("test")
	registry.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	fetch := func(bundle string) error {
		found, err := registry.Fetch(t.Context(), h.image("4.20.4"), Access{PullSecret: pullSecret(nil), TrustBundle: bundle})
		if err == nil {
			g.Expect(found.Digest).To(Equal(digest))
		}
		return err
	}
	g.Expect(fetch(h.bundle())).To(And(MatchError(ErrCAFile), MatchError(ContainSubstring("no such file"))))
	g.Expect(os.WriteFile(registry.CAFile, []byte("none"), 0o600)).To(Succeed())
	g.Expect(fetch(h.bundle())).To(And(MatchError(ErrCAFile), MatchError(ContainSubstring("no PEM certificate"))))
	g.Expect(Explain(fetch(h.bundle()))).To(Equal("the manager cannot use the file of its flag --registry-ca-file"))
	g.Expect(os.WriteFile(registry.CAFile, []byte(privateCA(t)), 0o600)).To(Succeed())
	g.Expect(fetch("")).To(MatchError(ErrCertificate), "it is that of another registry")
	g.Expect(os.WriteFile(registry.CAFile, []byte(privateCA(t)+h.bundle()), 0o600)).To(Succeed())
	g.Expect(fetch("")).To(Succeed())
}

// TestProxy: registries are asked through the proxy that the environment names. No name of this one's is ever resolved.
func TestProxy(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	digest := h.push("4.20.4", releaseImage(t))
	proxy.target.Store(new(h.host()))
	found, err := NewRegistry("test").Fetch(t.Context(), proxiedHost+"/"+repository+":4.20.4", h.access())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Digest).To(Equal(digest))
	g.Expect(proxy.asked.Load()).To(HaveValue(Equal(proxiedHost + ":443")))
}

func TestWhatIsRemembered(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	digest := h.push("4.20.4", releaseImage(t))
	registry := NewRegistry("test")
	now := time.Now()
	registry.now = func() time.Time { return now }
	requests := func(image string) int32 {
		before := h.requests.Load()
		_, err := registry.Fetch(t.Context(), image, h.access())
		g.Expect(err).NotTo(HaveOccurred())
		return h.requests.Load() - before
	}
	g.Expect(requests(h.image("4.20.4"))).To(BeNumerically(">", 2))
	g.Expect(requests(h.image("4.20.4"))).To(BeZero())
	g.Expect(requests(h.host()+"/"+repository+"@"+digest)).NotTo(BeZero(), "another registry may have lied about this digest")
	g.Expect(requests(h.host() + "/" + repository + "@" + digest)).To(BeZero())
	now = now.Add(tagLifetime + time.Second)
	g.Expect(requests(h.host() + "/" + repository + "@" + digest)).To(BeZero())
	g.Expect(requests(h.image("4.20.4"))).NotTo(BeZero())
}

func TestFetchIsSafeForConcurrentUse(t *testing.T) {
	h := newHub(t)
	h.push("4.20.4", releaseImage(t))
	registry := NewRegistry("test")
	var running sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		running.Go(func() { _, errs[i] = registry.Fetch(t.Context(), h.image("4.20.4"), h.access()) })
	}
	running.Wait()
	NewWithT(t).Expect(errors.Join(errs...)).NotTo(HaveOccurred())
}
