// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/utils/lru"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/tracing"
)

const (
	// attemptTimeout bounds all requests for one image, fetchTimeout those to one registry, connectTimeout the connection.
	attemptTimeout = 2 * time.Minute
	fetchTimeout   = 45 * time.Second
	connectTimeout = 10 * time.Second
	// tagLifetime is how long it is believed what a tag stands for; what a digest stands for never changes.
	tagLifetime = 10 * time.Minute
	// cacheSize is the number of images that are remembered.
	cacheSize = 256
)

// Access is what the manager needs to read from a registry: credentials, certificates and mirrors.
type Access struct {
	// PullSecret is a docker configuration.
	PullSecret []byte
	// TrustBundle are PEM certificates that are trusted besides those of the system, MirrorsBundle those that came with the cluster's mirrors.
	TrustBundle, MirrorsBundle string
	// Cluster and Management are the mirrors of the cluster, which come first, and those of the management cluster, which come last.
	Cluster, Management Mirrors
}

// Registry asks registries what images are, and remembers it. It is safe for concurrent use.
type Registry struct {
	// UserAgent tells registries who asks.
	UserAgent string
	// Timeout bounds all requests for one image to one registry.
	Timeout time.Duration
	// CAFile is a file of PEM certificates that are trusted besides those of the system and of the cluster; may be empty. It is read anew for
	// each image.
	CAFile string
	// MirrorsFile is a file in the format of containers-registries.conf(5), for all clusters; may be empty. It is read anew for each image.
	MirrorsFile string

	known *lru.Cache
	now   func() time.Time
}

// NewRegistry returns one that remembers nothing yet.
func NewRegistry(userAgent string) *Registry {
	return &Registry{UserAgent: userAgent, Timeout: fetchTimeout, known: lru.New(cacheSize), now: time.Now}
}

// question is what an answer is remembered by. Who asks in another way must not get it: a registry may show users different images, may not
// show them at all, and may lie about a digest that another one has too.
type question struct {
	image                                  string
	pullSecret, trustBundle, mirrorsBundle [sha256.Size]byte
}

// knownRelease is what an image is.
type knownRelease struct {
	release Release
	// expires is when a tag may stand for something else; zero for a digest.
	expires time.Time
}

// Fetch says what an image is: its mirrors are asked, then its registry, until one of them knows it. The error is one of this package, with
// details around it, or one for each that was asked.
func (r *Registry) Fetch(ctx context.Context, image string, access Access) (Release, error) {
	reference, err := name.ParseReference(image, name.StrictValidation)
	if err != nil {
		return Release{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	file, err := r.mirrors()
	if err != nil {
		return Release{}, err
	}
	names, err := sources(reference, []Mirrors{access.Cluster, file, access.Management})
	if err != nil {
		return Release{}, err
	}
	keys, err := newKeychain(access.PullSecret)
	if err != nil {
		return Release{}, err
	}
	roots, err := r.trusted(access)
	if err != nil {
		return Release{}, err
	}
	connection := newTransport(roots)
	defer connection.CloseIdleConnections()
	found, refused := r.fetchFromAny(ctx, names, access,
		remote.WithAuthFromKeychain(keys), remote.WithTransport(guard{connection}), remote.WithUserAgent(r.UserAgent))
	switch {
	case len(refused) == 0:
		return found, nil
	case len(names) == 1 && names[0].Name() == reference.Name():
		return Release{}, refused[0].err
	default:
		return Release{}, refused
	}
}

// fetchFromAny asks for one name after the other, and returns why each was refused when all were.
func (r *Registry) fetchFromAny(ctx context.Context, names []name.Reference, access Access, options ...remote.Option) (Release, refusals) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var refused refusals
	for _, source := range names {
		found, err := r.fetchFrom(ctx, source, access, options...)
		if err == nil {
			return found, nil
		}
		refused = append(refused, refusal{image: source.String(), err: err})
		if ctx.Err() != nil {
			break
		}
	}
	return Release{}, refused
}

// mirrors are those of the manager's file.
func (r *Registry) mirrors() (Mirrors, error) {
	if r.MirrorsFile == "" {
		return Mirrors{}, nil
	}
	file, err := os.ReadFile(r.MirrorsFile)
	if err != nil {
		return Mirrors{}, fmt.Errorf("%w: %w", ErrMirrorsFile, err)
	}
	return ParseMirrors(file, ErrMirrorsFile)
}

// fetchFrom asks one registry.
func (r *Registry) fetchFrom(ctx context.Context, reference name.Reference, access Access, options ...remote.Option) (Release, error) {
	if found, ok := r.remembered(reference, access); ok {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	found, err := fetch(reference, append(slices.Clip(options), remote.WithContext(ctx))...)
	if err != nil {
		return Release{}, classify(ctx, err)
	}
	r.remember(reference, access, found)
	return found, nil
}

// fetch reads the image of a name; of a list, whose images are all of the same release, the first.
func fetch(reference name.Reference, options ...remote.Option) (Release, error) {
	descriptor, err := remote.Get(reference, options...)
	if err != nil {
		return Release{}, err
	}
	var image v1.Image
	var listed []bootstrapv1.CPUArchitecture
	if descriptor.MediaType.IsIndex() {
		image, listed, err = firstImage(descriptor)
	} else {
		image, err = descriptor.Image()
	}
	if err != nil {
		return Release{}, err
	}
	found, err := inspect(image)
	found.Digest = descriptor.Digest.String()
	if len(listed) > 0 {
		found.Architectures = listed
	}
	return found, err
}

// firstImage returns the first image of a list, and the architectures of all.
func firstImage(descriptor *remote.Descriptor) (v1.Image, []bootstrapv1.CPUArchitecture, error) {
	index, err := descriptor.ImageIndex()
	if err != nil {
		return nil, nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, nil, err
	}
	var names []string
	var images []v1.Hash
	for _, entry := range manifest.Manifests {
		if !entry.MediaType.IsImage() {
			continue
		}
		images = append(images, entry.Digest)
		if entry.Platform != nil {
			names = append(names, entry.Platform.Architecture)
		}
	}
	if len(images) == 0 {
		return nil, nil, fmt.Errorf("%w: its list of architectures is empty", ErrNoRelease)
	}
	image, err := index.Image(images[0])
	return image, architectures(names...), err
}

func (r *Registry) remembered(reference name.Reference, access Access) (Release, bool) {
	found, ok := r.known.Get(questionOf(reference, access))
	if !ok {
		return Release{}, false
	}
	answer := found.(knownRelease)
	return answer.release, answer.expires.IsZero() || r.now().Before(answer.expires)
}

func (r *Registry) remember(reference name.Reference, access Access, found Release) {
	answer := knownRelease{release: found}
	if _, byDigest := reference.(name.Digest); !byDigest {
		answer.expires = r.now().Add(tagLifetime)
	}
	r.known.Add(questionOf(reference, access), answer)
}

func questionOf(reference name.Reference, access Access) question {
	return question{
		image: reference.Name(), pullSecret: sha256.Sum256(access.PullSecret),
		trustBundle: sha256.Sum256([]byte(access.TrustBundle)), mirrorsBundle: sha256.Sum256([]byte(access.MirrorsBundle)),
	}
}

// trusted are the certificates of the system, of the manager's file and of a cluster's bundles.
func (r *Registry) trusted(access Access) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // An image without certificates: those of the bundles are all there are.
	}
	if r.CAFile != "" {
		own, err := os.ReadFile(r.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCAFile, err)
		}
		if !pool.AppendCertsFromPEM(own) {
			return nil, fmt.Errorf("%w: it holds no PEM certificate", ErrCAFile)
		}
	}
	if access.TrustBundle != "" && !pool.AppendCertsFromPEM([]byte(access.TrustBundle)) {
		return nil, ErrTrustBundle
	}
	if access.MirrorsBundle != "" && !pool.AppendCertsFromPEM([]byte(access.MirrorsBundle)) {
		return nil, fmt.Errorf("%w: %s holds no PEM certificate", ErrMirrors, bootstrapv1.TrustBundleKey)
	}
	return pool, nil
}

// newTransport connects through the proxy of the environment, if it names one.
func newTransport(roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: connectTimeout,
		ResponseHeaderTimeout: fetchTimeout, ForceAttemptHTTP2: true,
	}
}

// errPlainHTTP says that credentials would be sent in the clear.
var errPlainHTTP = errors.New("a registry is only asked by https")

// guard refuses what the registry client falls back to for private addresses, and plain redirections: the pull secret is never sent in the
// clear. It reads no more of an answer than the largest layer that is looked into, and of all but blobs much less.
type guard struct{ next http.RoundTripper }

// RoundTrip passes a request on.
func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errPlainHTTP
	}
	response, err := tracing.Registries.RoundTrip(g.next, request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, limitOf(request))
	}
	return response, err
}

// limitOf is how much is read of the answer to a request, or to that which was redirected to it.
func limitOf(request *http.Request) int64 {
	for request.Response != nil {
		request = request.Response.Request
	}
	// The end of the path has the kind of document. What is before it does not count: a repository may have any name.
	if path.Base(path.Dir(request.URL.Path)) == "blobs" {
		return maxLayer
	}
	return maxDocument
}

// classify wraps an error in the reason that users are shown.
func classify(ctx context.Context, err error) error {
	var answer *transport.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrNoRelease):
		return err
	case errors.As(err, &certificate):
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	case errors.As(err, &answer):
		return fmt.Errorf("%w: %w", ofStatus(answer.StatusCode), err)
	case ctx.Err() != nil || isTimeout(err):
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}

func ofStatus(code int) error {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrUnauthorized
	case http.StatusNotFound:
		return ErrNotFound
	default:
		return ErrUnreachable
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
