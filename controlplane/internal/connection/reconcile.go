// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/tracing"
)

// controllerName is the controller's name in logs and metrics; that of Cluster API's ClusterCache.
const controllerName = "clustercache"

const (
	// probeInterval is the time between two probes, and failureThreshold how many in a row fail before a connection is closed; those of
	// Cluster API's ClusterCache.
	probeInterval    = 10 * time.Second
	failureThreshold = 5
)

// Reconcile opens the connection to a cluster that has none, and probes it again and again. One whose credential is refused is opened anew
// at once: the kubeconfig may hold another one by now.
func (c *Connections) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	wanted, err := kube.GetOrNil[clusterv1.Cluster](ctx, c.reader, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wanted == nil || !c.options.Wanted(wanted) {
		c.forget(ctx, request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if !ptr.Deref(wanted.Status.Initialization.InfrastructureProvisioned, false) {
		return ctrl.Result{}, nil // Nobody knows the cluster's address yet; the change triggers a pass.
	}
	known := c.known(request.NamespacedName)
	change, next := c.step(ctx, request.NamespacedName, known)
	c.tell(ctx, wanted, change)
	return ctrl.Result{RequeueAfter: next}, nil
}

// change is what a pass did with a connection.
type change string

const (
	noChange change = ""
	opened   change = "connect"
	closed   change = "disconnect"
)

// step opens or probes one connection, and says when the next step is due.
func (c *Connections) step(ctx context.Context, key client.ObjectKey, known *cluster) (change, time.Duration) {
	known.mu.RLock()
	made, failed, health := known.connection, known.refused, known.health
	known.mu.RUnlock()
	wait := c.left(health.LastProbeTime, probeInterval)
	if made == nil {
		wait = c.left(failed, c.options.RetryInterval)
	}
	if wait > 0 {
		return noChange, wait
	}
	if made == nil {
		if c.connect(ctx, key, known) {
			return opened, probeInterval
		}
		return noChange, c.options.RetryInterval
	}
	return c.look(ctx, key, known, made)
}

// look probes a connection. One whose kubeconfig leads to another server by now is opened anew: the server that it is open to may well
// answer, and is not the cluster's.
func (c *Connections) look(ctx context.Context, key client.ObjectKey, known *cluster, made *connection) (change, time.Duration) {
	if c.ledElsewhere(ctx, key, made) {
		ctrl.LoggerFrom(ctx).Info("The kubeconfig leads to another server than before, or verifies it otherwise")
		if c.connect(ctx, key, known) {
			return opened, probeInterval
		}
		return closed, c.options.RetryInterval
	}
	err := made.probe(ctx)
	c.note(key, known, err)
	switch {
	case refused(err):
		disconnect(ctx, key, known)
		return closed, time.Millisecond
	case known.failures() >= failureThreshold:
		disconnect(ctx, key, known)
		return closed, c.options.RetryInterval
	}
	return noChange, probeInterval
}

// refused reports whether a cluster has answered that it does not know the credential, or that the credential may do nothing any more: its
// account or the rights of that are gone. In both cases the kubeconfig may hold a better one by now.
func refused(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// left is how much of an interval is left since a time that may be zero.
func (c *Connections) left(since time.Time, interval time.Duration) time.Duration {
	if since.IsZero() {
		return 0
	}
	return interval - c.now().Sub(since)
}

// connect opens a connection in the place of the one that there may be. No lock is held meanwhile: others learn at once that there is none,
// or go on with that one.
func (c *Connections) connect(ctx context.Context, key client.ObjectKey, known *cluster) bool {
	log, from := ctrl.LoggerFrom(ctx), c.now()
	made, err := c.open(ctx, key)
	now := c.now()
	known.mu.Lock()
	defer known.mu.Unlock()
	known.health.LastProbeTime = now
	known.close()
	if err != nil {
		tracing.Fail(ctx, err)
		log.Error(err, "Connect failed", "duration", now.Sub(from))
		known.refused = now
		known.health.ConsecutiveFailures++
		connectionUp.WithLabelValues(key.Name, key.Namespace).Set(0)
		return false
	}
	log.Info("Connected", "duration", now.Sub(from))
	known.connection, known.refused = made, time.Time{}
	known.health = clustercache.HealthCheckingState{LastProbeTime: now, LastProbeSuccessTime: now}
	connectionUp.WithLabelValues(key.Name, key.Namespace).Set(1)
	return true
}

// note remembers how a probe went.
func (c *Connections) note(key client.ObjectKey, known *cluster, err error) {
	known.mu.Lock()
	defer known.mu.Unlock()
	known.health.LastProbeTime = c.now()
	if err != nil {
		known.health.ConsecutiveFailures++
		healthCheck.WithLabelValues(key.Name, key.Namespace).Set(0)
		healthChecks.WithLabelValues(key.Name, key.Namespace, "error").Inc()
		return
	}
	known.health.ConsecutiveFailures, known.health.LastProbeSuccessTime = 0, known.health.LastProbeTime
	healthCheck.WithLabelValues(key.Name, key.Namespace).Set(1)
	healthChecks.WithLabelValues(key.Name, key.Namespace, "success").Inc()
}

func (k *cluster) failures() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.health.ConsecutiveFailures
}

// disconnect closes the connection, and ends its watches.
func disconnect(ctx context.Context, key client.ObjectKey, known *cluster) {
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.close() {
		connectionUp.WithLabelValues(key.Name, key.Namespace).Set(0)
		ctrl.LoggerFrom(ctx).Info("Disconnected")
	}
}

// close closes the connection, if there is one. The caller holds the lock.
func (k *cluster) close() bool {
	if k.connection == nil {
		return false
	}
	k.connection.close()
	k.connection = nil
	return true
}

// known is what is known of a cluster, which is nothing the first time.
func (c *Connections) known(key client.ObjectKey) *cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clusters[key] == nil {
		c.clusters[key] = &cluster{}
	}
	return c.clusters[key]
}

// forget closes the connection to a cluster that is gone.
func (c *Connections) forget(ctx context.Context, key client.ObjectKey) {
	c.mu.Lock()
	known := c.clusters[key]
	delete(c.clusters, key)
	for _, s := range c.sources {
		delete(s.sent, key)
	}
	c.mu.Unlock()
	if known == nil {
		return
	}
	disconnect(ctx, key, known)
	forgetMetrics(key)
}
