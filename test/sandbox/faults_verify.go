// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"slices"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// verifyNobodyIsLetIn checks that none of the hosts that register is approved or bound. The report may come before the first of them.
func verifyNobodyIsLetIn(ctx context.Context, s *FaultScene) error {
	agents := &assisted.AgentList{}
	err := s.await(ctx, "a host to register", func(ctx context.Context) (string, error) {
		err := s.World.Client.List(ctx, agents, client.InNamespace(s.Cluster.Namespace))
		if err == nil && len(agents.Items) == 0 {
			return "there is no Agent", nil
		}
		return "", err
	})
	if err != nil {
		return err
	}
	for i := range agents.Items {
		if agent := &agents.Items[i]; letIn(agent) {
			return fmt.Errorf("nobody can tell whose Agent %s is, and it is approved (%t) or bound", agent.Name, agent.Spec.Approved)
		}
	}
	return nil
}

// verifyVictimIsOut checks that no Agent was let in for the Machine of the host that the fault has hit, nor one that is of no Machine.
func verifyVictimIsOut(ctx context.Context, s *FaultScene) error {
	victim, err := s.victimMachine(ctx)
	if err != nil {
		return err
	}
	agentOf, err := s.agentsLetIn(ctx)
	if err != nil {
		return err
	}
	if agent := agentOf[assisted.Claim(victim)]; agent != "" {
		return fmt.Errorf("the host of Machine %s cannot be recognised, and Agent %s, which is claimed for the Machine, is approved or bound",
			victim.Name, agent)
	}
	return nil
}

// verifyMachinesAreIn checks that Agents are let in, each of them for a Machine of the Cluster and none for the same as another.
func verifyMachinesAreIn(ctx context.Context, s *FaultScene) error {
	return s.await(ctx, "the hosts that are well to be let in", func(ctx context.Context) (string, error) {
		agentOf, err := s.agentsLetIn(ctx)
		if err == nil && len(agentOf) == 0 {
			return "no Agent is approved", nil
		}
		return "", err
	})
}

// agentsLetIn are the names of the Agents that are approved or bound, by the claims of their Machines. It returns an error when one of them
// is of no Machine of the Cluster, or of the same as another.
func (s *FaultScene) agentsLetIn(ctx context.Context) (map[string]string, error) {
	machines, err := s.World.Machines(ctx, s.Cluster)
	if err != nil {
		return nil, err
	}
	agents := &assisted.AgentList{}
	if err := s.World.Client.List(ctx, agents, client.InNamespace(s.Cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the Agents: %w", err)
	}
	agentOf := map[string]string{}
	for i := range agents.Items {
		agent := &agents.Items[i]
		if !letIn(agent) {
			continue
		}
		claim := agent.Annotations[bootstrapv1.ClaimAnnotation]
		owned := slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return assisted.Claim(&m) == claim })
		switch {
		case !owned:
			return nil, fmt.Errorf("Agent %s is approved or bound, and its claim %q names no Machine of the Cluster", agent.Name, claim)
		case agentOf[claim] != "":
			return nil, fmt.Errorf("Agents %s and %s are approved or bound, and both are claimed for the Machine with claim %q",
				agentOf[claim], agent.Name, claim)
		}
		agentOf[claim] = agent.Name
	}
	return agentOf, nil
}

// verifyNobodyRegisters checks that no host was booted.
func verifyNobodyRegisters(ctx context.Context, s *FaultScene) error {
	agents := &assisted.AgentList{}
	if err := s.World.Client.List(ctx, agents, client.InNamespace(s.Cluster.Namespace)); err != nil {
		return fmt.Errorf("cannot list the Agents: %w", err)
	}
	if len(agents.Items) > 0 {
		return fmt.Errorf("no BareMetalHost is available, and Agent %s has registered", agents.Items[0].Name)
	}
	return nil
}

// victimMachine is the Machine whose BareMetalHost the fault has hit.
func (s *FaultScene) victimMachine(ctx context.Context) (*clusterv1.Machine, error) {
	host := &bmov1alpha1.BareMetalHost{}
	if err := s.World.Client.Get(ctx, s.Victim(), host); err != nil {
		return nil, fmt.Errorf("cannot read BareMetalHost %s: %w", s.Victim(), err)
	}
	machines, err := s.World.Machines(ctx, s.Cluster)
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if ref := host.Spec.ConsumerRef; ref != nil && ref.Name == machines[i].Spec.InfrastructureRef.Name {
			return &machines[i], nil
		}
	}
	return nil, fmt.Errorf("BareMetalHost %s has no Machine", host.Name)
}
