// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"sort"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// observeNetworks reads the NMStateConfigs of the InfraEnv and the network data of the hosts that the Machine may get. It needs the
// InfraEnv, the infrastructure machine and the hosts.
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
		if n.secret, n.problem = metal3.NetworkDataSecret(n.host); n.secret != "" || n.problem != nil {
			s.networks = append(s.networks, n)
		}
	}
	return r.readNetworkData(ctx, s)
}

// readNetworkData reads the Secrets of the hosts. Those of hosts without an NMStateConfig come first: while one of them is missing, no
// medium is handed out, and Secrets of hosts that have an NMStateConfig need not be read.
func (r *Reconciler) readNetworkData(ctx context.Context, s *scope) error {
	for _, known := range []bool{false, true} {
		missing := false
		for i := range s.networks {
			n := &s.networks[i]
			if hasNMState(s, n.host) != known || n.problem != nil || !wantsNetworkData(s, n.host) {
				continue
			}
			data, err := r.secrets.networkData(ctx, types.NamespacedName{Namespace: s.config.Namespace, Name: n.secret})
			if err != nil {
				return fmt.Errorf("network data of BareMetalHost %s: %w", n.host.Name, err)
			}
			n.read, n.data = true, data
			missing = missing || data == nil && mayGet(s, n.host)
		}
		if missing {
			return nil
		}
	}
	return nil
}

func hasNMState(s *scope, host *bmov1alpha1.BareMetalHost) bool {
	name := nmstateName(s.infraEnvName, host.Name)
	return slices.ContainsFunc(s.nmstates, func(c assisted.NMStateConfig) bool { return c.Name == name })
}

// wantsNetworkData reports whether the Secret of a host is read. It is not for a config whose medium is out and that waits for a host, as
// long as the host has an NMStateConfig: a change of the Secret concerns configs that are made afterwards.
func wantsNetworkData(s *scope, host *bmov1alpha1.BareMetalHost) bool {
	return !hasNMState(s, host) || !ptr.Deref(s.config.Status.Initialization.DataSecretCreated, false) && mayGet(s, host)
}
