// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"
)

const (
	version           = "4.20.4"
	kubernetesVersion = "v1.33.5"
	repository        = "ocp/release"
)

// hub is a registry with TLS.
type hub struct {
	t      *testing.T
	server *httptest.Server
	// password has the passwords of repositories; a repository without one is for everybody.
	password map[string]string
	// requests counts all that came.
	requests atomic.Int32
	// answer replaces the registry when it is set.
	answer atomic.Pointer[http.HandlerFunc]
	// content is the registry itself.
	content http.Handler
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{t: t, password: map[string]string{}, content: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		if answer := h.answer.Load(); answer != nil {
			(*answer)(w, r)
			return
		}
		if !h.authorized(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.content.ServeHTTP(w, r)
	}))
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.server.StartTLS()
	t.Cleanup(h.server.Close)
	return h
}

// authorized asks for a password where a repository has one; /v2/ itself only tells how to give it.
func (h *hub) authorized(r *http.Request) bool {
	_, password, given := r.BasicAuth()
	if r.URL.Path == "/v2/" {
		return given || len(h.password) == 0
	}
	for scope, wanted := range h.password {
		if strings.HasPrefix(r.URL.Path, "/v2/"+scope+"/") {
			return password == wanted
		}
	}
	return true
}

func (h *hub) host() string { return strings.TrimPrefix(h.server.URL, "https://") }

func (h *hub) image(tag string) string { return h.host() + "/" + repository + ":" + tag }

// bundle is the certificate that the hub is trusted by.
func (h *hub) bundle() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw}))
}

// access is for a hub without passwords.
func (h *hub) access() Access { return Access{PullSecret: pullSecret(nil), TrustBundle: h.bundle()} }

func (h *hub) options() []remote.Option {
	return []remote.Option{
		remote.WithTransport(h.server.Client().Transport), remote.WithAuth(&authn.Basic{Username: "u", Password: h.password[repository]}),
	}
}

// push puts an image under a tag and returns its digest.
func (h *hub) push(tag string, image v1.Image) string {
	h.t.Helper()
	g := NewWithT(h.t)
	reference, err := name.ParseReference(h.image(tag))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(reference, image, h.options()...)).To(Succeed())
	digest, err := image.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	return digest.String()
}

// pushIndex puts a list of images under a tag and returns its digest.
func (h *hub) pushIndex(tag string, images ...v1.Image) string {
	h.t.Helper()
	g := NewWithT(h.t)
	var index v1.ImageIndex = empty.Index
	for _, image := range images {
		config, err := image.ConfigFile()
		g.Expect(err).NotTo(HaveOccurred())
		addendum := mutate.IndexAddendum{Add: image}
		addendum.Platform = &v1.Platform{OS: "linux", Architecture: config.Architecture}
		index = mutate.AppendManifests(index, addendum)
	}
	reference, err := name.ParseReference(h.image(tag))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.WriteIndex(reference, index, h.options()...)).To(Succeed())
	digest, err := index.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	return digest.String()
}

// pullSecret is a docker configuration with passwords by scope.
func pullSecret(passwords map[string]string) []byte {
	auths := map[string]any{}
	for scope, password := range passwords {
		auths[scope] = map[string]string{"username": "u", "password": password}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err)
	}
	return data
}

// layerOf is a layer with files.
func layerOf(t *testing.T, files map[string]string) v1.Layer {
	t.Helper()
	g := NewWithT(t)
	buffer := &bytes.Buffer{}
	writer := tar.NewWriter(buffer)
	for path, content := range files {
		g.Expect(writer.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})).To(Succeed())
		_, err := writer.Write([]byte(content))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(writer.Close()).To(Succeed())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
	g.Expect(err).NotTo(HaveOccurred())
	return layer
}

// imageOf is an image with labels and layers.
func imageOf(t *testing.T, labels map[string]string, layers ...v1.Layer) v1.Image {
	t.Helper()
	g := NewWithT(t)
	image, err := mutate.AppendLayers(empty.Image, layers...)
	g.Expect(err).NotTo(HaveOccurred())
	image, err = mutate.Config(image, v1.Config{Labels: labels})
	g.Expect(err).NotTo(HaveOccurred())
	return image
}

// imageReferences is the file of a release, with versions by tag.
func imageReferences(versions ...string) string {
	tags := make([]string, 0, len(versions))
	for i := 0; i+1 < len(versions); i += 2 {
		tags = append(tags, fmt.Sprintf(`{"name":%q,"annotations":{"io.openshift.build.versions":%q}}`, versions[i], versions[i+1]))
	}
	return `{"kind":"ImageStream","metadata":{"name":"4.20.4"},"spec":{"tags":[` + strings.Join(tags, ",") + `]}}`
}

// releaseImage is what a release looks like: its references are in the last layer, above those of an operating system.
func releaseImage(t *testing.T) v1.Image {
	t.Helper()
	return imageOf(t, map[string]string{"io.openshift.release": version},
		layerOf(t, map[string]string{"etc/os-release": "rhel"}),
		layerOf(t, map[string]string{"release-manifests/image-references": imageReferences(
			"cli", "kubectl=1.33.4", "rhel-coreos", "machine-os=9.6.20251013-1", "tests", "kubernetes=1.33.9", "hyperkube", "kubernetes=1.33.5")}))
}

// ofArchitecture is a release image for an architecture, by the name that container images have.
func ofArchitecture(t *testing.T, name string) v1.Image {
	t.Helper()
	g := NewWithT(t)
	image := releaseImage(t)
	config, err := image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	config = config.DeepCopy()
	config.Architecture = name
	image, err = mutate.ConfigFile(image, config)
	g.Expect(err).NotTo(HaveOccurred())
	return image
}
