// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// proxy forwards connections from a cluster's API address to its kube-apiserver, or lets a front answer there. Shutting it is what a dead
// API looks like from outside, without the cost of a restart.
type proxy struct {
	mu          sync.Mutex
	listener    net.Listener
	front       *http.Server
	connections map[net.Conn]bool
}

func (p *proxy) open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener != nil
}

// listen opens the address, which must be a loopback one. Without a front, connections are forwarded to target.
func (p *proxy) listen(host string, port int, target string, front *http.Server) error {
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not a loopback address: use one in 127.0.0.0/8 as the API VIP", host)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("cannot listen on %s port %d: %w", host, port, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.connections, p.front = listener, map[net.Conn]bool{}, front
	if front != nil {
		go func() { _ = front.ServeTLS(listener, "", "") }() // Its error is that it was closed.
		return nil
	}
	go p.accept(listener, target)
	return nil
}

// acceptPause is how long nothing is accepted after an error, such as that this process has as many files open as it may.
const acceptPause = 10 * time.Millisecond

// accept ends when the listener is closed. Another error passes: a listener that nobody listens to any more would keep clients waiting.
func (p *proxy) accept(listener net.Listener, target string) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			<-time.After(acceptPause)
		default:
			go p.forward(conn, target)
		}
	}
}

// forwardBuffer is how many bytes are forwarded at a time.
const forwardBuffer = 4 << 10

// onlyWriter and onlyReader hide that a connection is one: the kernel would forward by itself then, by a pipe in each direction, and a
// connection would take six open files of this process instead of two.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

func (p *proxy) forward(conn net.Conn, target string) {
	upstream, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		closeAll(conn)
		return
	}
	if !p.track(conn, upstream) {
		closeAll(conn, upstream)
		return
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{conn, upstream}, {upstream, conn}} {
		go func() {
			// An error here is the end of the connection, of which there is nobody to tell.
			_, _ = io.CopyBuffer(onlyWriter{pair[0]}, onlyReader{pair[1]}, make([]byte, forwardBuffer))
			done <- struct{}{}
		}()
	}
	<-done
	closeAll(conn, upstream)
	<-done
	p.forget(conn, upstream)
}

func (p *proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return false
	}
	for _, conn := range conns {
		p.connections[conn] = true
	}
	return true
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.connections, conn)
	}
}

// shut closes the address and every connection.
func (p *proxy) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	// A listener or connection that does not close is closed already.
	_ = p.listener.Close()
	if p.front != nil {
		_ = p.front.Close()
	}
	p.listener, p.front = nil, nil
	for conn := range p.connections {
		closeAll(conn)
	}
	p.connections = nil
}

func closeAll(conns ...net.Conn) {
	for _, conn := range conns {
		_ = conn.Close()
	}
}
