// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// hangProvisioning ends once the host's config says what it waits for.
func hangProvisioning(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		s.World.Metal3.Faults().NeverProvision(host)
		s.Later(func(ctx context.Context) error {
			defer s.World.Metal3.Faults().Clear(host)
			return s.awaitConfig(ctx, fmt.Sprintf("BareMetalHost %s is being provisioned", host.Name))
		})
	})
}

// hangStage ends once the host is in the stage and its config says that the host is being installed.
func hangStage(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		s.World.Assisted.Faults().StageHang(host, simassisted.StageWritingImage)
		s.Later(func(ctx context.Context) error {
			defer s.World.Assisted.Faults().StageHang(host, "")
			if err := s.awaitStage(ctx, simassisted.StageWritingImage); err != nil {
				return err
			}
			return s.awaitConfig(ctx, "the host is being installed")
		})
	})
}

// hangDeprovisioning concerns the deletion of the cluster, which waits for the host.
func hangDeprovisioning(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		s.World.Metal3.Faults().NeverDeprovision(host)
		var once sync.Once
		s.World.Watch.OnChange(func(object client.Object) {
			victim, ok := object.(*bmov1alpha1.BareMetalHost)
			if !ok || client.ObjectKeyFromObject(victim) != host || victim.Status.Provisioning.State != bmov1alpha1.StateDeprovisioning {
				return
			}
			once.Do(func() {
				s.printf("fault: BareMetalHost %s stays in state deprovisioning", host.Name)
				time.AfterFunc(s.scaled(outage), func() { s.World.Metal3.Faults().Clear(host) })
			})
		})
	})
}

// awaitStage returns when an Agent of the cluster's namespace is in the stage.
func (s *FaultScene) awaitStage(ctx context.Context, stage string) error {
	return s.await(ctx, "an Agent in stage "+stage, func(ctx context.Context) (string, error) {
		agents := &assisted.AgentList{}
		if err := s.World.Watch.List(ctx, agents, client.InNamespace(s.Cluster.Namespace)); err != nil {
			return "", fmt.Errorf("cannot list the Agents: %w", err)
		}
		if slices.ContainsFunc(agents.Items, func(a assisted.Agent) bool { return a.Status.Progress.CurrentStage == stage }) {
			return "", nil
		}
		return "no Agent is", nil
	})
}

// awaitConfig returns when a condition of one of the cluster's configs says the text.
func (s *FaultScene) awaitConfig(ctx context.Context, text string) error {
	return s.await(ctx, "a config to say "+text, func(ctx context.Context) (string, error) {
		configs := &bootstrapv1.OpenshiftAssistedConfigList{}
		if err := s.World.Watch.List(ctx, configs, client.InNamespace(s.Cluster.Namespace)); err != nil {
			return "", fmt.Errorf("cannot list the configs: %w", err)
		}
		for i := range configs.Items {
			for _, condition := range configs.Items[i].Status.Conditions {
				if strings.Contains(condition.Message, text) {
					return "", nil
				}
			}
		}
		return "no config says so", nil
	})
}

// bootTogether lets the hosts boot once the manager knows of two in use that have one serial number: one that boots before is the only
// one that can have registered, and is let in.
func (s *FaultScene) bootTogether(ctx context.Context) error {
	if err := s.awaitConfig(ctx, bothHaveSerial); err != nil {
		return err
	}
	return s.bootHosts(ctx, true)
}

// bootHosts lets the hosts of the cluster's namespace boot, or keeps them from it.
func (s *FaultScene) bootHosts(ctx context.Context, boot bool) error {
	hosts := &bmov1alpha1.BareMetalHostList{}
	if err := s.World.Client.List(ctx, hosts, client.InNamespace(s.Cluster.Namespace)); err != nil {
		return fmt.Errorf("cannot list the BareMetalHosts: %w", err)
	}
	for i := range hosts.Items {
		s.World.Assisted.Faults().HostNeverBoots(client.ObjectKeyFromObject(&hosts.Items[i]), !boot)
	}
	return nil
}
