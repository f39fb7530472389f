// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// pullSecretLimits are those of a docker configuration, which has some values for each registry.
var pullSecretLimits = untrusted.Limits{Bytes: 256 << 10, Values: 10_000}

// keychain holds the credentials of a pull secret by what they are for: a registry, or a part of its repositories.
type keychain map[string]authn.AuthConfig

var _ authn.Keychain = keychain{}

// newKeychain reads a docker configuration. No part of it gets into an error.
func newKeychain(config []byte) (keychain, error) {
	if err := pullSecretLimits.JSON(config); err != nil {
		return nil, fmt.Errorf("%w: .dockerconfigjson: %w", ErrPullSecret, err)
	}
	var parsed struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, fmt.Errorf("%w: .dockerconfigjson is no docker configuration", ErrPullSecret)
	}
	found := keychain{}
	for _, scope := range slices.Sorted(maps.Keys(parsed.Auths)) {
		// Of several keys for one scope, that in the form of a repository's name counts, else the first.
		if _, known := found[normalize(scope)]; !known || scope == normalize(scope) {
			found[normalize(scope)] = parsed.Auths[scope]
		}
	}
	return found, nil
}

// dockerHub is the name that users have for name.DefaultRegistry.
const dockerHub = "docker.io"

// normalize brings the key of a docker configuration into the form of a repository's name: it may be a URL, with the version of the API at
// its end, and the Docker Hub has several names.
func normalize(scope string) string {
	scope = strings.TrimPrefix(strings.TrimPrefix(scope, "https://"), "http://")
	scope = strings.TrimSuffix(strings.TrimSuffix(scope, "/"), "/v1")
	scope = strings.TrimSuffix(scope, "/v2")
	registry, path, nested := strings.Cut(scope, "/")
	if registry == dockerHub || registry == "registry-1.docker.io" {
		registry = name.DefaultRegistry
	}
	if nested {
		return registry + "/" + path
	}
	return registry
}

// Resolve returns the credentials with the longest scope that the repository is in; none are needed where none are given.
func (k keychain) Resolve(repository authn.Resource) (authn.Authenticator, error) {
	for scope := repository.String(); scope != ""; scope = scope[:max(strings.LastIndexByte(scope, '/'), 0)] {
		if auth, ok := k[scope]; ok {
			return authn.FromConfig(auth), nil
		}
	}
	return authn.Anonymous, nil
}
