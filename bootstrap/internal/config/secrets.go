// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/bootstrap/internal/nmstate"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// dataSecretMemory is how long a bootstrap data Secret that is as it should be is not read again while its config does not change: less
// than the resync, which finds what somebody else has changed.
const dataSecretMemory = 5 * time.Minute

// secrets reads Secrets from the API server: a cache of them would need the right to list all Secrets of the management cluster. Events are
// many and tell nothing of a Secret, so what was read is remembered for a while instead of being asked for in every pass.
type secrets struct {
	reader client.Reader
	// recent has Secrets without their data, and networks network data as it is parsed.
	recent, networks *cache.LRUExpireCache
}

// How many Secrets are remembered at most: those of all hosts that boot at a time, and 64 MiB of network data. A Secret more is read anew.
const (
	maxDataSecrets = 1 << 14
	maxNetworks    = 1 << 10
)

func newSecrets(reader client.Reader, clock cache.Clock) secrets {
	return secrets{
		reader: reader, recent: cache.NewLRUExpireCacheWithClock(maxDataSecrets, clock),
		networks: cache.NewLRUExpireCacheWithClock(maxNetworks, clock),
	}
}

// dataSecretKey asks for the bootstrap data Secret of a config in one version: a config that changes is looked at anew.
type dataSecretKey struct {
	config          types.UID
	resourceVersion string
}

func keyOf(s *scope) dataSecretKey {
	return dataSecretKey{config: s.config.UID, resourceVersion: s.config.ResourceVersion}
}

// dataSecret reads the Secret of the config's name without its data; nil when there is none. One that is in nobody's way, or missing, is
// not read again soon.
func (r secrets) dataSecret(ctx context.Context, s *scope) (*corev1.Secret, error) {
	if known, ok := r.recent.Get(keyOf(s)); ok {
		secret, _ := known.(*corev1.Secret)
		return secret.DeepCopy(), nil
	}
	secret, err := kube.GetOrNil[corev1.Secret](ctx, r.reader, client.ObjectKeyFromObject(s.config))
	if err != nil {
		return nil, err
	}
	if secret != nil {
		secret.Data = nil
	}
	if secret == nil || intact(s, secret) {
		r.recent.Add(keyOf(s), secret.DeepCopy(), dataSecretMemory)
	}
	return secret, nil
}

// keep carries what a pass knows of the bootstrap data Secret over to the version of the config that the pass itself has written: nobody
// else has changed the config, and the next pass need not ask again.
func (r secrets) keep(s *scope, version string) {
	if known, ok := r.recent.Get(keyOf(s)); ok {
		r.recent.Add(dataSecretKey{config: s.config.UID, resourceVersion: version}, known, dataSecretMemory)
	}
}

// forget makes the next pass read the bootstrap data Secret of the config again.
func (r secrets) forget(s *scope) { r.recent.Remove(keyOf(s)) }

// networkData reads a Secret with network data; nil when there is none. All configs of a namespace ask for the Secrets of the same hosts:
// each Secret is read once in networkRetry.
func (r secrets) networkData(ctx context.Context, key types.NamespacedName) (map[string][]byte, error) {
	if known, ok := r.networks.Get(key); ok {
		data, _ := known.(map[string][]byte)
		return data, nil
	}
	secret, err := kube.GetOrNil[corev1.Secret](ctx, r.reader, key)
	if err != nil {
		return nil, err
	}
	var data map[string][]byte
	if secret != nil {
		data = nmstate.Bound(secret.Data)
	}
	r.networks.Add(key, data, networkRetry)
	return data, nil
}

// intact reports whether a bootstrap data Secret belongs to the config and carries its Cluster's name.
func intact(s *scope, secret *corev1.Secret) bool {
	return metav1.IsControlledBy(secret, s.config) && secret.Labels[clusterv1.ClusterNameLabel] == s.cluster.Name
}
