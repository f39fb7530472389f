// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// hangProvisioning ends once the host's config says what it waits for.
func hangProvisioning(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		s.World.Metal3.Faults().NeverProvision(host)
		s.Later(func(ctx context.Context) error {
			defer s.World.Metal3.Faults().Clear(host)
			return s.awaitConfig(ctx, fmt.Sprintf("BareMetalHost %s is in state provisioning", host.Name))
		})
	})
}

// hangStage ends once the host's config names the stage.
func hangStage(s *FaultScene) {
	s.OnFirstHost(true, func(host types.NamespacedName) {
		s.World.Assisted.Faults().StageHang(host, simassisted.StageWritingImage)
		s.Later(func(ctx context.Context) error {
			defer s.World.Assisted.Faults().StageHang(host, "")
			return s.awaitConfig(ctx, simassisted.StageWritingImage)
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
