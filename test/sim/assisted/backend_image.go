// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// imageInputs is everything that the discovery image is made of: what changes the ISO URL (ASSISTED 1.1).
type imageInputs struct {
	PullSecret      string                `json:"pullSecret"`
	SSHKey          string                `json:"sshKey"`
	Proxy           string                `json:"proxy"`
	NTP             []string              `json:"ntp"`
	NTPSources      []string              `json:"ntpSources"`
	Ignition        string                `json:"ignition"`
	KernelArguments []aiv1.KernelArgument `json:"kernelArguments"`
	TrustBundle     string                `json:"trustBundle"`
	OSImageVersion  string                `json:"osImageVersion"`
	ImageType       string                `json:"imageType"`
	DiscoveryDelay  int64                 `json:"discoveryDelay"`
	Network         []string              `json:"network"`
	Mirrors         string                `json:"mirrors"`
	// Architecture is taken once: a change makes no other image (ASSISTED 1.1). Networks are what Network has, by host.
	Architecture string    `json:"-"`
	Networks     []network `json:"-"`
}

// validate returns why no image can be made, in the service's words.
func (in imageInputs) validate() error {
	if in.Ignition != "" {
		if err := parseIgnition(in.Ignition); err != nil {
			return err
		}
	}
	if len(in.NTP) > 0 && len(in.NTPSources) > 0 {
		return userError("additionalNTPSources and ntpSources are mutually exclusive")
	}
	if !slices.Contains(imageTypes, in.ImageType) {
		return userError("image type %s is not one of %v", in.ImageType, imageTypes[1:])
	}
	if block, _ := pem.Decode([]byte(in.TrustBundle)); in.TrustBundle != "" && block == nil {
		return userError("additional trust bundle is not a valid PEM bundle")
	}
	for _, argument := range in.KernelArguments {
		if argument.Operation != "append" {
			return userError("only append operation is allowed for kernel argument %s", argument.Value)
		}
	}
	return nil
}

// keepUncleared keeps what the service does not forget when a field is emptied (ASSISTED 1.1).
func (in imageInputs) keepUncleared(old imageInputs) imageInputs {
	for _, field := range []struct{ now, before *string }{
		{&in.Ignition, &old.Ignition}, {&in.Proxy, &old.Proxy}, {&in.SSHKey, &old.SSHKey}, {&in.OSImageVersion, &old.OSImageVersion},
	} {
		if *field.now == "" {
			*field.now = *field.before
		}
	}
	if len(in.NTP) == 0 {
		in.NTP = old.NTP
	}
	in.Architecture = cmp.Or(old.Architecture, in.Architecture)
	return in
}

func (in imageInputs) digest() (string, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("cannot compare the inputs of a discovery image: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw)), nil
}

// infraEnvView is what a reconciler may see of an InfraEnv's row.
type infraEnvView struct {
	id, isoURL, base, token, architecture string

	created int64
}

// syncInfraEnv registers an InfraEnv or updates it. clusterKnown is false when it names a cluster that the service does
// not know (yet); an InfraEnv that has been bound once stays bound to that very cluster.
func (b *backend) syncInfraEnv(key types.NamespacedName, ref *types.NamespacedName, in imageInputs) (infraEnvView, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	env := b.infraEnvs[key]
	clusterID := ""
	if ref != nil {
		clusterID = b.byCD[*ref]
	}
	if ref != nil && clusterID == "" {
		return b.view(env), errMissingCluster
	}
	if err := in.validate(); err != nil {
		return infraEnvView{}, err
	}
	if env != nil {
		in = in.keepUncleared(env.image)
	}
	osImage, err := osImages(b.opts.OSImages).choose(in, env)
	if err != nil {
		return infraEnvView{}, err
	}
	if env == nil {
		env = &infraEnv{key: key, id: b.uuid(), clusterID: clusterID, clusterRef: ref}
		b.infraEnvs[key] = env
	}
	env.image, env.osImage = in, osImage
	digest, err := env.image.digest()
	if err != nil {
		return infraEnvView{}, err
	}
	if digest != env.digest {
		env.digest = digest
		b.rotate(env)
	}
	return b.view(env), nil
}

// errMissingCluster says that the cluster of an InfraEnv is not there.
var errMissingCluster = fmt.Errorf("cluster is missing")

// rotate gives an InfraEnv a new image token. The tokens before it stay valid.
func (b *backend) rotate(env *infraEnv) {
	env.token = b.newToken(b.opts.ImageTokenLength)
	env.created = b.now()
	b.tokens[env.token] = env.key
}

func (b *backend) view(env *infraEnv) infraEnvView {
	if env == nil {
		return infraEnvView{}
	}
	base := b.opts.ImageBaseURL
	return infraEnvView{
		id: env.id, base: base, token: env.token, created: env.created.Unix(), architecture: env.image.Architecture,
		isoURL: fmt.Sprintf("%s/byapikey/%s/%s/%s/minimal.iso", base, env.token, env.osImage, env.image.Architecture),
	}
}

// removeInfraEnv forgets an InfraEnv and all its tokens.
func (b *backend) removeInfraEnv(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.infraEnvs, key)
	for token, owner := range b.tokens {
		if owner == key {
			delete(b.tokens, token)
		}
	}
}
