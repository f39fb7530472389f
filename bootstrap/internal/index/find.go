// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Finder finds objects of a namespace by their fields. What it returns belongs to the cache: it is read, and copied by who changes it.
type Finder struct {
	// Reader is the manager's cached client.
	Reader client.Reader
	// Namespace is the namespace.
	Namespace string
	// Events is true for who looks for what an event concerns: a crowd hears nothing of one of its own.
	Events bool
}

// Agents finds Agents.
func (f Finder) Agents(ctx context.Context, field, value string, opts ...client.ListOption) ([]*assisted.Agent, error) {
	list := &assisted.AgentList{}
	err := f.find(ctx, list, field, value, opts)
	return pointers(list.Items), err
}

// Hosts finds BareMetalHosts.
func (f Finder) Hosts(ctx context.Context, field, value string, opts ...client.ListOption) ([]*bmov1alpha1.BareMetalHost, error) {
	list := &bmov1alpha1.BareMetalHostList{}
	err := f.find(ctx, list, field, value, opts)
	return pointers(list.Items), err
}

// Machines finds Machines.
func (f Finder) Machines(ctx context.Context, field, value string) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	err := f.find(ctx, list, field, value, nil)
	return pointers(list.Items), err
}

// Configs finds OpenshiftAssistedConfigs.
func (f Finder) Configs(ctx context.Context, field, value string) ([]*bootstrapv1.OpenshiftAssistedConfig, error) {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	err := f.find(ctx, list, field, value, nil)
	return pointers(list.Items), err
}

// Installs finds the AgentClusterInstalls of a Cluster.
func (f Finder) Installs(ctx context.Context, cluster string) ([]*hiveext.AgentClusterInstall, error) {
	list := &hiveext.AgentClusterInstallList{}
	err := f.find(ctx, list, InstallCluster, cluster, nil)
	return pointers(list.Items), err
}

// Deployments finds the ClusterDeployments of a Cluster.
func (f Finder) Deployments(ctx context.Context, cluster string) ([]*hivev1.ClusterDeployment, error) {
	list := &hivev1.ClusterDeploymentList{}
	err := f.find(ctx, list, DeploymentCluster, cluster, nil)
	return pointers(list.Items), err
}

func (f Finder) find(ctx context.Context, list client.ObjectList, field, value string, opts []client.ListOption) error {
	opts = append(opts, client.InNamespace(f.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(field, value)})
	if err := f.Reader.List(ctx, list, opts...); err != nil {
		return fmt.Errorf("find %T of namespace %s by %s: %w", list, f.Namespace, field, err)
	}
	return nil
}

func pointers[T any](items []T) []*T {
	found := make([]*T, len(items))
	for i := range items {
		found[i] = &items[i]
	}
	return found
}

// AgentsOf finds the Agents that can be the host, whatever InfraEnv they registered through. An address that another host has as well
// proves nothing, unless the host boots from it: many hosts may have one address in common, as that of a port to their BMC.
func (f Finder) AgentsOf(ctx context.Context, host *bmov1alpha1.BareMetalHost) ([]*assisted.Agent, error) {
	if name := host.Annotations[bootstrapv1.VouchedAgentAnnotation]; name != "" {
		return f.agentNamed(ctx, name)
	}
	boot := metal3.BootMAC(host)
	var agents []*assisted.Agent
	for _, mac := range append(metal3.InspectedMACs(host), known(boot)...) {
		if mac != boot {
			have, err := f.Hosts(ctx, HostMAC, mac, client.Limit(two))
			if err != nil {
				return nil, err
			}
			if len(have) == two {
				continue
			}
		}
		found, err := some(f.Events, func(opts ...client.ListOption) ([]*assisted.Agent, error) {
			return f.Agents(ctx, AgentMAC, mac, opts...)
		})
		if err != nil {
			return nil, err
		}
		agents = append(agents, found...)
	}
	return agents, nil
}

// crowd is how many Agents or BareMetalHosts of one address or serial number are looked at, the first by name. Two are enough to know that
// nobody can tell them apart. Without the limit, each event of a thousand objects that a tenant gives one address would make the manager
// compare all with all.
const crowd = 16

// some finds objects that are alike: all, if they are no crowd, and else the first by name, or none for an event.
func some[T client.Object](event bool, find func(...client.ListOption) ([]T, error)) ([]T, error) {
	found, err := find(client.Limit(crowd + 1))
	if err != nil || len(found) <= crowd {
		return found, err
	}
	if event {
		return nil, nil
	}
	if found, err = find(); err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found[:min(len(found), crowd)], nil
}

// HostsWithSerial finds the BareMetalHosts of a serial number.
func (f Finder) HostsWithSerial(ctx context.Context, serial string) ([]*bmov1alpha1.BareMetalHost, error) {
	return f.someHosts(ctx, HostSerial, serial)
}

func (f Finder) someHosts(ctx context.Context, field, value string) ([]*bmov1alpha1.BareMetalHost, error) {
	return some(f.Events, func(opts ...client.ListOption) ([]*bmov1alpha1.BareMetalHost, error) {
		return f.Hosts(ctx, field, value, opts...)
	})
}

// two hosts are enough to know that an address is not that of one host alone.
const two = 2

// HostsOf finds the BareMetalHosts that can be the Agent's and, of every address that proves nothing, two others that have it.
func (f Finder) HostsOf(ctx context.Context, agent *assisted.Agent) (can, shared []*bmov1alpha1.BareMetalHost, _ error) {
	can, err := f.Hosts(ctx, HostVouched, agent.Name)
	if err != nil {
		return nil, nil, err
	}
	for _, mac := range agent.MACAddresses() {
		boot, err := f.someHosts(ctx, HostBoot, mac)
		if err != nil {
			return nil, nil, err
		}
		have, err := f.Hosts(ctx, HostMAC, mac, client.Limit(two))
		if err != nil {
			return nil, nil, err
		}
		if can = append(can, boot...); len(have) == two {
			shared = append(shared, have...)
			continue
		}
		can = append(can, have...)
	}
	return can, shared, nil
}

// agentNamed returns the Agent of a name, if there is one.
func (f Finder) agentNamed(ctx context.Context, name string) ([]*assisted.Agent, error) {
	key := client.ObjectKey{Namespace: f.Namespace, Name: name}
	agent, err := kube.GetOrNil[assisted.Agent](ctx, f.Reader, key, client.UnsafeDisableDeepCopy)
	if err != nil || agent == nil {
		return nil, err
	}
	return []*assisted.Agent{agent}, nil
}
