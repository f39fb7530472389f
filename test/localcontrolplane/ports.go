// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	localhost = "127.0.0.1"
	// Ports are taken from below the range that Linux gives to outgoing connections (32768 and up): between finding a port
	// and a child's use of it, no connection can take it.
	firstPort    = 20000
	lastPort     = 32000
	portAttempts = 100
)

var handedOut = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePort returns a TCP port of 127.0.0.1 that is free now and that this process never handed out before.
func freePort() (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if handedOut.ports[port] {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address(localhost, port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("cannot release port %d: %w", port, err)
		}
		handedOut.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port on %s between %d and %d in %d tries", localhost, firstPort, lastPort, portAttempts)
}

func address(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}
