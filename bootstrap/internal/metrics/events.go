// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metrics"
)

// Gate tells which CRDs are not served.
type Gate interface {
	Missing(crds ...string) []string
}

// Days finds out on which day hosts join.
type Days struct {
	// Client is the manager's cached client.
	Client client.Reader
	// Gate knows whether AgentClusterInstalls are served.
	Gate Gate
}

// Of is the day of a Machine's host.
func (d Days) Of(ctx context.Context, config *bootstrapv1.OpenshiftAssistedConfig, cluster *clusterv1.Cluster, clusterName string) string {
	if len(d.Gate.Missing(assisted.CRDAgentClusterInstalls)) > 0 {
		return Day("", config.CreationTimestamp, cluster, nil)
	}
	installs, err := index.Finder{Reader: d.Client, Namespace: config.Namespace}.Installs(ctx, clusterName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Counting without the AgentClusterInstall")
	}
	return Day(config.Annotations[bootstrapv1.AgentAnnotation], config.CreationTimestamp, cluster, installs)
}

// Machines counts the phases of Machines that Cluster API writes, beside what a handler does with their events.
func (d Days) Machines(h handler.EventHandler) handler.EventHandler {
	return metrics.Changes{EventHandler: h, Changed: func(ctx context.Context, before, after client.Object) {
		was, ok := before.(*clusterv1.Machine)
		is, same := after.(*clusterv1.Machine)
		if ok && same {
			d.count(ctx, was, is, time.Now())
		}
	}, Gone: func(_ context.Context, last client.Object) { unready.Delete(last.GetUID()) }}
}

// unready are the UIDs of Machines that got their Nodes while this manager acted, and were not ready since. Of others nobody knows whether
// they were ready before: Machines keep no record of it.
var unready sync.Map

func (d Days) count(ctx context.Context, before, after *clusterv1.Machine, now time.Time) {
	phases := MachinePhases(before, after)
	name := index.ConfigOf(after)
	if len(phases) == 0 || name == "" {
		return
	}
	key := types.NamespacedName{Namespace: after.Namespace, Name: name}
	config, err := kube.GetOrNil[bootstrapv1.OpenshiftAssistedConfig](ctx, d.Client, key, client.UnsafeDisableDeepCopy)
	if err != nil || config == nil || !metrics.JoinedHere(config) {
		return
	}
	cluster, err := mapping.Cluster(ctx, d.Client, after.Namespace, after.Spec.ClusterName)
	if err != nil {
		return
	}
	phases = slices.DeleteFunc(phases, func(phase string) bool {
		if phase == metrics.PhaseNode {
			unready.Store(after.UID, true)
			return false
		}
		_, first := unready.LoadAndDelete(after.UID)
		return !first
	})
	observe(after, d.Of(ctx, config, cluster, after.Spec.ClusterName), now, phases...)
}

// MachinePhases are the phases that a Machine has reached by a change of it. It becomes ready again and again: its Node comes and goes.
func MachinePhases(before, after *clusterv1.Machine) []string {
	if !after.DeletionTimestamp.IsZero() || !after.Status.NodeRef.IsDefined() {
		return nil
	}
	var phases []string
	if !before.Status.NodeRef.IsDefined() {
		phases = append(phases, metrics.PhaseNode)
	}
	// Cluster API writes the condition, and the Node in another request after it.
	wasReady := before.Status.NodeRef.IsDefined() && conditions.IsTrue(before, clusterv1.ReadyCondition)
	if !wasReady && conditions.IsTrue(after, clusterv1.ReadyCondition) {
		phases = append(phases, metrics.PhaseReady)
	}
	return phases
}

// Agents counts the Agents in which no host is recognised, beside what a handler does with their events.
func Agents(h handler.EventHandler) handler.EventHandler {
	return metrics.Changes{EventHandler: h, Changed: func(_ context.Context, before, after client.Object) {
		if NoteAdded(before, after) {
			agentsRefused.WithLabelValues(metrics.RefusedNotRecognised).Inc()
		}
	}}
}

// NoteAdded reports whether an Agent has got the note that no host is recognised in it. Other words in the note are no news.
func NoteAdded(before, after client.Object) bool {
	return before.GetAnnotations()[bootstrapv1.RecognitionAnnotation] == "" && after.GetAnnotations()[bootstrapv1.RecognitionAnnotation] != ""
}
