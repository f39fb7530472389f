// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// joins says whether the host is a day-2 one that has rebooted, for whose Node the service looks until it is there.
func (h *host) joins() bool {
	return h.kind == kindAddition && h.rebooted() && isOneOf(h.state, installingStates)
}

// lookForNode is the service's look into the cluster of a day-2 host that has rebooted, by the kubeconfig of the Secret that there is now.
// What it does there while it reaches the cluster is done by whoever runs that. looks says that it looks for this host.
func (s *Simulator) lookForNode(ctx context.Context, id string) (looks bool, err error) {
	cd, looks := s.backend.looksInto(id)
	if !looks {
		return false, nil
	}
	kubeconfig, err := s.installerKubeconfig(ctx, cd)
	if err != nil {
		return true, err
	}
	s.backend.setReached(id, len(kubeconfig) > 0 && s.backend.opts.Workload.Accepts(ctx, cd, kubeconfig))
	return true, nil
}

// installerKubeconfig is what the service reaches a cluster with: that of its own installation, or that of an imported cluster, which the
// ClusterDeployment names (ASSISTED 1.4). It is empty when there is none.
func (s *Simulator) installerKubeconfig(ctx context.Context, key types.NamespacedName) ([]byte, error) {
	cd := &hivev1.ClusterDeployment{}
	if err := s.client.Get(ctx, key, cd); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot read ClusterDeployment %s: %w", key, err)
	}
	name := kubeconfigName(cd.Name)
	if metadata := cd.Spec.ClusterMetadata; cd.Spec.Installed && metadata != nil && metadata.AdminKubeconfigSecretRef.Name != "" {
		name = metadata.AdminKubeconfigSecretRef.Name
	}
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, types.NamespacedName{Namespace: cd.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read Secret %s of cluster %s: %w", name, key, err)
	case !cd.Spec.Installed:
		return secret.Data["kubeconfig"], nil // It is the service's own.
	}
	return secret.Data["kubeconfig"], s.labelReferenced(ctx, secret)
}

// looksInto is the cluster in which the service looks for a host's Node.
func (b *backend) looksInto(id string) (cd types.NamespacedName, looks bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || !h.joins() || b.clusters[h.clusterID] == nil {
		return cd, false
	}
	return b.clusters[h.clusterID].cd, true
}

func (b *backend) setReached(id string, reached bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil {
		h.reached = reached
	}
}

// serve notes whether the service looks after a machine in its cluster. A machine that no service knows, or another one, stays as it is: it
// has joined, or waits.
func (b *backend) serve(m *machine, up bool) {
	if h := b.hosts[m.hostID]; h != nil && b.running[h.id] == m {
		m.served = up && h.reached
	}
}
