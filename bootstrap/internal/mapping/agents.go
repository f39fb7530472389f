// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"
	"slices"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// FromAgent is the config whose Machine an Agent is claimed for. While it is claimed for none, those are whose hosts it can be, those that
// have a host with the serial number of one of these, and the one that recognises the only Agent of its InfraEnv. A config that has
// recorded the Agent is woken when the Agent is deleted.
func (m Mapper) FromAgent(ctx context.Context, o client.Object) []reconcile.Request {
	agent, ok := o.(*assisted.Agent)
	if !ok {
		return nil
	}
	if requests := m.FromClaimedAgent(ctx, agent); requests != nil {
		return requests
	}
	requests := m.configs(ctx, agent.Namespace, index.ConfigAgent, agent.Name)
	if infraEnv := agent.Labels[assisted.InfraEnvLabel]; infraEnv != "" {
		requests = append(requests, m.configs(ctx, agent.Namespace, index.ConfigAlone, infraEnv)...)
	}
	if !m.served(metal3.CRDBareMetalHosts) {
		return requests
	}
	hosts, _, err := m.in(agent.Namespace).HostsOf(ctx, agent)
	if err != nil {
		return failed(ctx, err)
	}
	for _, host := range hosts {
		requests = append(append(requests, m.FromHost(ctx, host)...), m.fromNamesakes(ctx, host)...)
	}
	return requests
}

// FromClaimedAgent is the config whose Machine an Agent is claimed for.
func (m Mapper) FromClaimedAgent(ctx context.Context, o client.Object) []reconcile.Request {
	agent, ok := o.(*assisted.Agent)
	if !ok {
		return nil
	}
	name, uid, claimed := agent.ClaimedFor()
	if !claimed {
		return nil
	}
	machine := &clusterv1.Machine{}
	err := m.Client.Get(ctx, types.NamespacedName{Namespace: agent.Namespace, Name: name}, machine, client.UnsafeDisableDeepCopy)
	if err == nil && string(machine.UID) == uid {
		return m.FromMachine(ctx, machine) // By name, also when the config has vanished: the Machine may wait for its Agent to go.
	}
	configs, err := m.in(agent.Namespace).Configs(ctx, index.ConfigOwner, uid)
	if err != nil {
		return failed(ctx, err)
	}
	var requests []reconcile.Request
	for _, config := range configs {
		if ref := MachineRef(config); ref != nil && string(ref.UID) == uid {
			requests = append(requests, requestOf(config))
		}
	}
	return requests
}

// FromHost is the config of the Machine whose infrastructure machine consumes a BareMetalHost.
func (m Mapper) FromHost(ctx context.Context, o client.Object) []reconcile.Request {
	host, ok := o.(*bmov1alpha1.BareMetalHost)
	if !ok || host.Spec.ConsumerRef == nil {
		return nil
	}
	return m.fromInfraMachine(ctx, host.Namespace, host.Spec.ConsumerRef.Name)
}

// FromAnyHost is FromHost and the configs of others that the host concerns: its addresses and its serial number may make an Agent
// ambiguous, or unambiguous.
func (m Mapper) FromAnyHost(ctx context.Context, o client.Object) []reconcile.Request {
	host, ok := o.(*bmov1alpha1.BareMetalHost)
	if !ok {
		return nil
	}
	requests := append(m.FromHost(ctx, host), m.fromNamesakes(ctx, host)...)
	if !m.served(assisted.CRDAgents) {
		return requests
	}
	agents, err := m.in(host.Namespace).AgentsOf(ctx, host)
	if err != nil {
		return failed(ctx, err)
	}
	for _, agent := range agents {
		requests = append(requests, m.FromAgent(ctx, agent)...)
	}
	return requests
}

// fromNamesakes are the configs of the other hosts that have the serial number of a host.
func (m Mapper) fromNamesakes(ctx context.Context, host *bmov1alpha1.BareMetalHost) []reconcile.Request {
	serial := metal3.SerialNumber(host)
	if serial == "" {
		return nil
	}
	namesakes, err := m.in(host.Namespace).HostsWithSerial(ctx, serial)
	if err != nil {
		return failed(ctx, err)
	}
	var requests []reconcile.Request
	for _, namesake := range namesakes {
		if namesake.Name != host.Name {
			requests = append(requests, m.FromHost(ctx, namesake)...)
		}
	}
	return requests
}

// FromStranger is every config that waits for a host that registers through the Agent's InfraEnv. With more Agents than a message counts,
// none of them says anything new.
func (m Mapper) FromStranger(ctx context.Context, o client.Object) []reconcile.Request {
	infraEnv := o.GetLabels()[assisted.InfraEnvLabel]
	if infraEnv == "" {
		return nil
	}
	most := 2 * identity.MaxStrangers // Some more, so that who counts at the same time counts them all.
	strangers, err := m.in(o.GetNamespace()).Agents(ctx, index.AgentStranger, infraEnv, client.Limit(int64(most)+1))
	if err != nil {
		return failed(ctx, err)
	}
	if len(strangers) > most {
		return nil
	}
	return m.configs(ctx, o.GetNamespace(), index.ConfigUnrecognized, infraEnv)
}

// Strangers lets through what makes an Agent one in which no host is recognised, or none of those any more.
var Strangers = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return stranger(e.Object) },
	DeleteFunc: func(e event.DeleteEvent) bool { return stranger(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return (stranger(before) || stranger(after)) && (stranger(before) != stranger(after) ||
			before.GetLabels()[assisted.InfraEnvLabel] != after.GetLabels()[assisted.InfraEnvLabel] ||
			before.GetAnnotations()[bootstrapv1.RecognitionAnnotation] != after.GetAnnotations()[bootstrapv1.RecognitionAnnotation])
	},
}

func stranger(o client.Object) bool {
	annotations := o.GetAnnotations()
	return annotations[bootstrapv1.ClaimAnnotation] == "" && annotations[bootstrapv1.RecognitionAnnotation] != ""
}

// FromSerial is FromStranger of the Agents that report a BareMetalHost's serial number: they are that host's problem, and no stranger to
// others.
func (m Mapper) FromSerial(ctx context.Context, o client.Object) []reconcile.Request {
	host, ok := o.(*bmov1alpha1.BareMetalHost)
	if !ok || !m.served(assisted.CRDAgents) {
		return nil
	}
	agents, err := m.in(host.Namespace).Agents(ctx, index.AgentSerial, metal3.SerialNumber(host))
	if err != nil {
		return failed(ctx, err)
	}
	var requests []reconcile.Request
	for _, agent := range agents {
		if stranger(agent) {
			requests = append(requests, m.FromStranger(ctx, agent)...)
		}
	}
	return requests
}

// Identities lets through what changes by what a BareMetalHost is recognised: its addresses, its serial number, and the Agent that somebody
// vouches for. Of everything else its own config alone has to know.
var Identities = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*bmov1alpha1.BareMetalHost)
	after, same := e.ObjectNew.(*bmov1alpha1.BareMetalHost)
	return ok && same && (metal3.BootMAC(before) != metal3.BootMAC(after) || metal3.SerialNumber(before) != metal3.SerialNumber(after) ||
		!slices.Equal(metal3.InspectedMACs(before), metal3.InspectedMACs(after)) ||
		before.Annotations[bootstrapv1.VouchedAgentAnnotation] != after.Annotations[bootstrapv1.VouchedAgentAnnotation])
}}

// Serials lets through what changes the serial number of a BareMetalHost that existed before.
var Serials = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*bmov1alpha1.BareMetalHost)
		after, same := e.ObjectNew.(*bmov1alpha1.BareMetalHost)
		return ok && same && metal3.SerialNumber(before) != metal3.SerialNumber(after)
	},
}
