// SPDX-License-Identifier: Apache-2.0

// Package agent deletes Agents, and watches over those that belong to no Machine: Agents of vanished Machines are deleted, and Agents in
// which no host is recognised are told so (DESIGN D6, D19).
package agent

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// Delete deletes an Agent without assisted-service's cleanup of the installed cluster, which would wait for a cluster that may be dead
// (ASSISTED 8.5c). Only the very Agent that was read is deleted, as it was read: a host that registers anew gets another object of the same
// name, and one that somebody has vouched for may be claimed for another Machine by now.
func Delete(ctx context.Context, c client.Client, agent *assisted.Agent, reason string) error {
	if _, ok := agent.Annotations[assisted.SkipSpokeCleanupAnnotation]; !ok {
		prepared, err := kube.Rewrite(ctx, c, agent, func(a *assisted.Agent) {
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, assisted.SkipSpokeCleanupAnnotation, "true")
		})
		if err != nil {
			return client.IgnoreNotFound(fmt.Errorf("prepare Agent %s for deletion: %w", agent.Name, err))
		}
		agent = prepared
	}
	return kube.DeleteUnchanged(ctx, c, agent, reason)
}
