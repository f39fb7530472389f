// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/sim/assisted/aiv1"
)

// fencingKeys are the keys of a Secret with which the hosts of a two-node cluster power each other off.
var fencingKeys = []string{"address", "username", "password"}

// arbiters reads how many arbiters an AgentClusterInstall of two control-plane hosts asks for, which its Go type has no field for.
func (s *Simulator) arbiters(ctx context.Context, aci *hiveext.AgentClusterInstall) (int, error) {
	if aci.Spec.ProvisionRequirements.ControlPlaneAgents != 2 {
		return 0, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(hiveext.GroupVersion.WithKind("AgentClusterInstall"))
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(aci), object); err != nil {
		return 0, fmt.Errorf("cannot read the arbiters of AgentClusterInstall %s: %w", aci.Name, err)
	}
	arbiters, _, err := unstructured.NestedInt64(object.Object, "spec", "provisionRequirements", "arbiterAgents")
	if err != nil {
		return 0, fmt.Errorf("cannot read the arbiters of AgentClusterInstall %s: %w", aci.Name, err)
	}
	return int(arbiters), nil
}

// checkTwoNode checks that the platform fits a cluster of two control-plane hosts.
func checkTwoNode(aci *hiveext.AgentClusterInstall, arbiters int) error {
	platform := aci.Spec.PlatformType
	switch {
	case aci.Spec.ProvisionRequirements.ControlPlaneAgents != 2:
		return nil
	case arbiters > 0 && platform != hiveext.BareMetalPlatformType:
		return userError("Two nodes with arbiter clusters are only supported on platform baremetal")
	case arbiters == 0 && platform != hiveext.BareMetalPlatformType && platform != hiveext.NonePlatformType:
		return userError("Two nodes with fencing clusters are only supported on platforms baremetal and none")
	}
	return nil
}

// checkFencing checks the Secret by which a host is powered off.
func (s *Simulator) checkFencing(ctx context.Context, agent *aiv1.Agent) error {
	name := agent.Spec.FencingCredentialsSecretRef
	if name == "" {
		return nil
	}
	secret := &corev1.Secret{}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: agent.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return userError("failed to get fencing credentials secret %s/%s: not found", agent.Namespace, name)
	}
	if err != nil {
		return fmt.Errorf("cannot read fencing credentials Secret %s: %w", name, err)
	}
	for _, key := range fencingKeys {
		if len(secret.Data[key]) == 0 {
			return userError("fencing credentials secret %s/%s has no key %s", agent.Namespace, name, key)
		}
	}
	return nil
}
