// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"sort"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// observeNetworks reads the NMStateConfigs of the InfraEnv and the network data of the hosts that the Machine may get. It needs the InfraEnv, the
// infrastructure machine and the hosts.
func (r *Reconciler) observeNetworks(ctx context.Context, s *scope) error {
	if !wantsNetworks(s) || s.infraEnvName == "" || s.infraMachine == nil {
		return nil
	}
	list := &assisted.NMStateConfigList{}
	err := r.Client.List(ctx, list, client.InNamespace(s.config.Namespace), client.HasLabels{bootstrapv1.NMStateInfraEnvLabel})
	if err != nil {
		return fmt.Errorf("list NMStateConfigs of InfraEnv %s: %w", s.infraEnvName, err)
	}
	s.nmstates = slices.DeleteFunc(list.Items, func(c assisted.NMStateConfig) bool { return !madeFor(s, &c) })
	sort.Slice(s.nmstates, func(i, j int) bool { return s.nmstates[i].Name < s.nmstates[j].Name })
	var candidates []bmov1alpha1.BareMetalHost
	candidates, s.networksProblem = metal3.Candidates(s.infraMachine, s.hosts)
	sort.Slice(candidates, func(i, j int) bool { return candidates[i].Name < candidates[j].Name })
	for i := range candidates {
		n := hostNetwork{host: &candidates[i]}
		if n.secret, n.problem = metal3.NetworkDataSecret(n.host); n.secret == "" && n.problem == nil {
			continue
		}
		if n.problem == nil {
			if err := r.readNetworkData(ctx, s, &n); err != nil {
				return err
			}
		}
		s.networks = append(s.networks, n)
	}
	return nil
}

// readNetworkData reads the Secret of a host. It is not read again for a config whose medium is out and that waits for a host, as long as the
// host has an NMStateConfig: a change of the Secret concerns configs that are made afterwards.
func (r *Reconciler) readNetworkData(ctx context.Context, s *scope, n *hostNetwork) error {
	name := nmstateName(s.infraEnvName, n.host.Name)
	exists := slices.ContainsFunc(s.nmstates, func(c assisted.NMStateConfig) bool { return c.Name == name })
	if exists && (ptr.Deref(s.config.Status.Initialization.DataSecretCreated, false) || !metal3.Free(n.host)) {
		return nil
	}
	secret := &corev1.Secret{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.config.Namespace, Name: n.secret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Secret %s with the network data of BareMetalHost %s: %w", n.secret, n.host.Name, err)
	}
	n.read = true
	if !apierrors.IsNotFound(err) {
		n.data = secret.Data
		if n.data == nil {
			n.data = map[string][]byte{}
		}
	}
	return nil
}
