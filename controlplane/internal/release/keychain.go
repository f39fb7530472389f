// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/kubernetes"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"

	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// pullSecretLimits are those of a docker configuration, which has some values for each registry.
var pullSecretLimits = untrusted.Limits{Bytes: 256 << 10, Values: 10_000}

// dockerConfig is the content of a pull secret: credentials by the registry, or the part of its repositories, that they are for.
type dockerConfig struct {
	Auths map[string]authn.AuthConfig `json:"auths"`
}

// newKeychain reads a docker configuration. Its entries match repositories as they do in kubelets: a host may have wildcards, and of
// several entries for one host, that with the longest path is used. No part of the configuration gets into an error.
func newKeychain(config []byte) (authn.Keychain, error) {
	if err := pullSecretLimits.JSON(config); err != nil {
		return nil, fmt.Errorf("%w: .dockerconfigjson: %w", ErrPullSecret, err)
	}
	var parsed dockerConfig
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, fmt.Errorf("%w: .dockerconfigjson is no docker configuration", ErrPullSecret)
	}
	normal, err := json.Marshal(parsed.normal())
	if err != nil {
		return nil, fmt.Errorf("%w: .dockerconfigjson cannot be written again", ErrPullSecret)
	}
	keys, err := kubernetes.NewFromPullSecrets(context.Background(), []corev1.Secret{{
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: normal},
	}})
	if err != nil {
		return nil, fmt.Errorf("%w: .dockerconfigjson has a key that is no name of a registry", ErrPullSecret)
	}
	return keychain{keys}, nil
}

// normal returns the configuration with one form of key for each scope: of two keys for one scope, the keyring would take either.
func (c dockerConfig) normal() dockerConfig {
	found := dockerConfig{Auths: map[string]authn.AuthConfig{}}
	for _, key := range slices.Sorted(maps.Keys(c.Auths)) {
		scope := normalize(key)
		if scope == "" {
			continue
		}
		// Of several keys for one scope, that in the form of a repository's name counts, else the first.
		if _, known := found.Auths[scope]; !known || key+"/" == scope {
			found.Auths[scope] = c.Auths[key]
		}
	}
	return found
}

// dockerHub is the name that users have for name.DefaultRegistry.
const dockerHub = "docker.io"

// normalize brings the key of a docker configuration into the form of a repository's name with a slash at its end: the key may be a URL
// with the version of the API before its path, and the Docker Hub has several names. It returns "" for a key that names no registry.
func normalize(key string) string {
	key = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://"), "/") + "/"
	parsed, err := url.Parse("https://" + key)
	if err != nil || parsed.Host == "" || parsed.Host+parsed.Path != key {
		return ""
	}
	host, path := parsed.Host, parsed.Path
	for strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v2/") {
		path = path[len("/v1"):]
	}
	if host == dockerHub || host == "registry-1.docker.io" {
		host = name.DefaultRegistry
	}
	return host + path
}

// keychain compares whole parts of names, as container engines do: the credentials for quay.io/org are none for quay.io/organisation.
type keychain struct{ keys authn.Keychain }

// Resolve returns the credentials for a repository; none are needed where none are given.
func (k keychain) Resolve(repository authn.Resource) (authn.Authenticator, error) {
	return k.keys.Resolve(folder{repository})
}

// folder is a repository whose name ends with a slash, as the keys do.
type folder struct{ authn.Resource }

// String returns the name with the slash.
func (f folder) String() string { return f.Resource.String() + "/" }
