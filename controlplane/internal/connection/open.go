// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeconfigs "github.com/capi-openshift/agent-providers/controlplane/internal/kubeconfig"
)

// open connects to a cluster with the kubeconfig of its Secret. It fails when the cluster does not answer.
func (c *Connections) open(ctx context.Context, cluster client.ObjectKey) (*connection, error) {
	config, from, err := c.configOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	made, err := c.reach(ctx, config)
	if err != nil {
		return nil, err
	}
	made.origin = from
	return made, nil
}

// reach connects to a cluster from where the manager runs.
func (c *Connections) reach(ctx context.Context, config *rest.Config) (*connection, error) {
	made, err := c.newConnection(ctx, config)
	if err != nil {
		return nil, err
	}
	own, err := c.runsThere(ctx, made)
	if err == nil && !own {
		return made, nil
	}
	made.close()
	if err != nil {
		return nil, err
	}
	// The manager runs in this very cluster: it uses the API server's address there, which no load balancer is needed for.
	inside, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster that the manager runs in: %w", err)
	}
	config.CAData, config.CAFile, config.Host = inside.CAData, inside.CAFile, inside.Host
	return c.newConnection(ctx, config)
}

// configOf is the configuration of a kubeconfig that holds its credential: no program is run and no file read for it.
func (c *Connections) configOf(ctx context.Context, cluster client.ObjectKey) (*rest.Config, origin, error) {
	holder, data, err := c.kubeconfig(ctx, cluster)
	if err != nil {
		return nil, origin{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	parsed, err := kubeconfigs.Parse(data)
	if err != nil {
		return nil, origin{}, err
	}
	config, err := kubeconfigs.ConfigOf(parsed)
	if err != nil {
		return nil, origin{}, err
	}
	config.UserAgent, config.Timeout = c.options.UserAgent, requestTimeout
	config.QPS, config.Burst = c.options.QPS, c.options.Burst
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst) // One of all clients of the connection.
	return config, origin{version: holder.ResourceVersion, leads: destinationOf(parsed)}, nil
}

// newConnection makes a connection to a cluster that answers.
func (c *Connections) newConnection(ctx context.Context, config *rest.Config) (*connection, error) {
	transport, err := transportOf(config, restingUnused)
	if err != nil {
		return nil, err
	}
	made := &connection{
		kinds: c.kinds, serializer: c.codecs.WithoutConversion(), config: config, stores: map[*kind]*store{}, watches: map[string]bool{},
	}
	if made.rest, err = made.restBy(transport); err != nil {
		return nil, err
	}
	err = made.probe(ctx)
	if err != nil {
		utilnet.CloseIdleConnectionsFor(transport)
	}
	if refused(err) {
		return nil, fmt.Errorf("the cluster refuses the credential: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster does not answer: %w", err)
	}
	made.ends, made.close = context.WithCancel(c.ends)
	return made, nil
}

// client is a client of the cluster's API server. It is made for each use: uses are rare, and a client is large.
func (c *Connections) client(made *connection) (client.Client, error) {
	asks, err := made.asksBy()
	if err != nil {
		return nil, err
	}
	return client.New(made.config, client.Options{
		HTTPClient: &http.Client{Transport: asks, Timeout: made.config.Timeout}, Scheme: c.scheme, Mapper: c.options.Mapper,
	})
}

// runsThere reports whether the manager runs in the cluster that it is connected to.
func (c *Connections) runsThere(ctx context.Context, made *connection) (bool, error) {
	key := types.NamespacedName{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")}
	uid := types.UID(os.Getenv("POD_UID"))
	if key.Namespace == "" || key.Name == "" || uid == "" {
		return false, nil
	}
	remote, err := c.client(made)
	if err != nil {
		return false, err
	}
	pod := &corev1.Pod{}
	if err := remote.Get(ctx, key, pod); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for the manager's own Pod: %w", err)
	}
	return pod.UID == uid, nil
}
