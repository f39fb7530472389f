// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"slices"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/bootstrap/internal/identity"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Candidates are the Agents and BareMetalHosts that can matter for the identity of a Machine's host, by name: identity.Recognize comes to
// the same verdict with them as with all objects of the namespace. They are copies.
type Candidates struct {
	Agents []assisted.Agent
	Hosts  []bmov1alpha1.BareMetalHost
}

// Wanted is the Machine for whose host candidates are looked for.
type Wanted struct {
	// Host is the BareMetalHost that the Machine consumes; nil while there is none.
	Host *bmov1alpha1.BareMetalHost
	// Claim is the Machine's claim.
	Claim string
	// Recorded is the Agent that the Machine's config records; empty when there is none.
	Recorded string
	// InfraEnv is the one that the config records; empty when there is none.
	InfraEnv string
	// Alone is true when the host is recognised by its InfraEnv alone.
	Alone bool
}

// Candidates finds the candidates.
func (f Finder) Candidates(ctx context.Context, w Wanted) (Candidates, error) {
	g := gathering{Finder: f, agents: map[string]*assisted.Agent{}, hosts: map[string]*bmov1alpha1.BareMetalHost{}}
	steps := []func(context.Context, Wanted) error{g.own, g.ofHost, g.strangers, g.around}
	for _, step := range steps {
		if err := step(ctx, w); err != nil {
			return Candidates{}, err
		}
	}
	return Candidates{
		Agents: copies(g.agents, func(a *assisted.Agent) assisted.Agent { return *a.DeepCopy() }),
		Hosts:  copies(g.hosts, func(h *bmov1alpha1.BareMetalHost) bmov1alpha1.BareMetalHost { return *h.DeepCopy() }),
	}, nil
}

// gathering is what was found so far, by name.
type gathering struct {
	Finder
	agents map[string]*assisted.Agent
	hosts  map[string]*bmov1alpha1.BareMetalHost
}

// own finds the Agents that are the Machine's by name: claimed, recorded, or the only ones of its InfraEnv.
func (g gathering) own(ctx context.Context, w Wanted) error {
	if err := g.addAgents(g.Agents(ctx, AgentClaim, w.Claim)); err != nil {
		return err
	}
	if w.Recorded != "" {
		if err := g.addAgents(g.agentNamed(ctx, w.Recorded)); err != nil {
			return err
		}
	}
	if !w.Alone || w.InfraEnv == "" {
		return nil
	}
	return g.addAgents(g.Agents(ctx, AgentInfraEnv, w.InfraEnv))
}

// ofHost finds the Agents that can be the host, and the other hosts that have its serial number, with their Agents: they may be mistaken
// for each other.
func (g gathering) ofHost(ctx context.Context, w Wanted) error {
	if w.Host == nil || w.Alone {
		return nil
	}
	hosts := []*bmov1alpha1.BareMetalHost{w.Host}
	if serial := metal3.SerialNumber(w.Host); serial != "" {
		twins, err := g.HostsWithSerial(ctx, serial)
		if err != nil {
			return err
		}
		hosts = append(twins, w.Host)
	}
	for _, host := range hosts {
		g.hosts[host.Name] = host
		if err := g.addAgents(g.AgentsOf(ctx, host)); err != nil {
			return err
		}
	}
	return nil
}

// strangers finds Agents of the InfraEnv that are no host's, the first by name: one of them may be the host with another address than its
// BareMetalHost has. They concern a host that no Agent can be.
func (g gathering) strangers(ctx context.Context, w Wanted) error {
	if w.Host == nil || w.Alone || w.InfraEnv == "" {
		return nil
	}
	strangers, err := g.Agents(ctx, AgentStranger, w.InfraEnv)
	if err != nil {
		return err
	}
	slices.SortFunc(strangers, func(a, b *assisted.Agent) int { return cmp.Compare(a.Name, b.Name) })
	for _, stranger := range strangers[:min(len(strangers), identity.MaxStrangers)] {
		g.agents[stranger.Name] = stranger
		if err := g.addHosts(g.Hosts(ctx, HostSerial, serialOf(stranger), client.Limit(1))); err != nil {
			return err
		}
	}
	return nil
}

// around finds the hosts that each Agent that was found can be.
func (g gathering) around(ctx context.Context, w Wanted) error {
	if w.Host == nil || w.Alone {
		return nil
	}
	for _, agent := range g.agents {
		can, shared, err := g.HostsOf(ctx, agent)
		if err := g.addHosts(append(can, shared...), err); err != nil {
			return err
		}
	}
	return nil
}

func (g gathering) addAgents(agents []*assisted.Agent, err error) error {
	for _, agent := range agents {
		g.agents[agent.Name] = agent
	}
	return err
}

func (g gathering) addHosts(hosts []*bmov1alpha1.BareMetalHost, err error) error {
	for _, host := range hosts {
		g.hosts[host.Name] = host
	}
	return err
}

// copies are the objects of a map in the order of their names.
func copies[T any](objects map[string]*T, of func(*T) T) []T {
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	list := make([]T, 0, len(names))
	for _, name := range names {
		list = append(list, of(objects[name]))
	}
	return list
}
