// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	spdytransport "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/capi-openshift/agent-providers/controlplane/internal/connection"
)

// pingPeriod is how often a connection shows that it is alive, as kubectl's do: load balancers close those that are silent.
const pingPeriod = 5 * time.Second

// executor runs a command in the container, over WebSockets, or over SPDY where something on the way does not let WebSockets through. Both
// use the credentials, the certificates, the proxy and the user agent of the ClusterCache's connection. It is for one command.
//
// The second protocol is tried only when the first was refused before it began. If a load balancer says so although the command runs,
// etcdctl runs twice; the four commands that it is run with change nothing the second time.
func (p *etcdPod) executor(ctx context.Context, command []string) (remotecommand.Executor, error) {
	address, err := p.address(command)
	if err != nil {
		return nil, err
	}
	websockets, err := remotecommand.NewWebSocketExecutor(p.config, http.MethodGet, address.String())
	if err != nil {
		return nil, fmt.Errorf("prepare a connection over WebSockets: %w", err)
	}
	old, err := spdyExecutor(ctx, p.config, address)
	if err != nil {
		return nil, fmt.Errorf("prepare a connection over SPDY: %w", err)
	}
	return remotecommand.NewFallbackExecutor(websockets, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// address is the URL of the command.
func (p *etcdPod) address(command []string) (*url.URL, error) {
	core := rest.CopyConfig(p.config) // It is the ClusterCache's own.
	core.APIPath, core.GroupVersion = "/api", &corev1.SchemeGroupVersion
	base, path, err := rest.DefaultServerUrlFor(core)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	options := &corev1.PodExecOptions{Container: etcdContainer, Command: command, Stdout: true, Stderr: true}
	query, err := clientgoscheme.ParameterCodec.EncodeParameters(options, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("encode the command: %w", err)
	}
	address := base.JoinPath(path, "namespaces", etcdNamespace, "pods", p.name, "exec")
	address.RawQuery = query.Encode()
	return address, nil
}

// spdyExecutor is remotecommand.NewSPDYExecutor with a dialer whose connections end with the context. client-go's wait for the answer to
// the upgrade for as long as the server likes.
func spdyExecutor(ctx context.Context, config *rest.Config, address *url.URL) (remotecommand.Executor, error) {
	certificates, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	upgrader, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{
		TLS: certificates, Proxier: config.Proxy, PingPeriod: pingPeriod,
	})
	if err != nil {
		return nil, err
	}
	upgrader.Dialer = &net.Dialer{Control: func(_, _ string, socket syscall.RawConn) error {
		context.AfterFunc(ctx, func() {
			// It fails where the connection is closed, which is just as well.
			_ = socket.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		})
		return nil
	}}
	// The upgrader reads what a server answers instead of an upgrade as a whole.
	wrapped, err := rest.HTTPWrappersForConfig(config, connection.Bounded(upgrader))
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForTransports(wrapped, spdytransport.NewUpgraderForStreaming(upgrader), http.MethodPost, address)
}
