// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// acceptTimeout is how long an API may take to answer whoever asks for its Nodes.
const acceptTimeout = 5 * time.Second

// admits asks the cluster's API for its Nodes, at its address, with the credential and the authorities of a kubeconfig.
func (c *cluster) admits(ctx context.Context, kubeconfig []byte) (err error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	host, port, err := c.endpoint(ctx)
	if err != nil {
		return err
	}
	// The name in the kubeconfig exists in the cluster's own network only.
	config.Timeout = acceptTimeout
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	remote, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	defer remote.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/nodes?limit=1", nil)
	if err != nil {
		return fmt.Errorf("cannot ask for the Nodes: %w", err)
	}
	answer, err := remote.Do(request)
	if err != nil {
		return fmt.Errorf("cannot list the Nodes: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot list the Nodes: %s", answer.Status)
	}
	return nil
}
