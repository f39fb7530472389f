// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
)

// clusterSource tells a controller of connections.
type clusterSource struct {
	events chan event.GenericEvent
	// silence are for how long no probe may have succeeded before the controller is told.
	silence []time.Duration
	// sent is when the controller was told last of each cluster.
	sent map[client.ObjectKey]time.Time
}

// GetClusterSource tells a controller of each connection that is opened or closed, and of a cluster that has not answered for as long as
// each clustercache.WatchForProbeFailure says.
func (c *Connections) GetClusterSource(
	_ string, toRequests func(ctx context.Context, cluster client.Object) []ctrl.Request, opts ...clustercache.GetClusterSourceOption,
) source.Source {
	s := &clusterSource{events: make(chan event.GenericEvent), sent: map[client.ObjectKey]time.Time{}}
	for _, o := range opts {
		if silence, ok := o.(clustercache.WatchForProbeFailure); ok {
			s.silence = append(s.silence, time.Duration(silence))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = append(c.sources, s)
	return source.Channel(s.events, handler.TypedEnqueueRequestsFromMapFunc(toRequests))
}

// tell sends the events of a pass.
func (c *Connections) tell(ctx context.Context, cluster *clusterv1.Cluster, done change) {
	key, now := client.ObjectKeyFromObject(cluster), c.now()
	answered := c.GetHealthCheckingState(ctx, key).LastProbeSuccessTime
	c.mu.Lock()
	var events []chan event.GenericEvent
	for _, s := range c.sources {
		if done != noChange || s.silent(key, answered, now) {
			s.sent[key] = now
			events = append(events, s.events)
		}
	}
	c.mu.Unlock()
	for _, to := range events {
		select {
		case to <- event.GenericEvent{Object: cluster}:
		case <-ctx.Done():
		}
	}
}

// silent reports whether a cluster has not answered for so long that the controller is to be told, and has not been.
func (s *clusterSource) silent(key client.ObjectKey, answered, now time.Time) bool {
	for _, silence := range s.silence {
		if due := answered.Add(silence); s.sent[key].Before(due) && due.Before(now) {
			return true
		}
	}
	return false
}
