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
	// reservations is the loopback address where a port is held from its choice to the end of this process. Control planes of
	// other processes on this machine choose from the same range, and a child uses its port seconds after the choice: without
	// this, two of them sometimes got one port and the later did not start.
	reservations = "127.255.255.254"
)

// reserved holds the listeners that keep chosen ports from other processes. The system closes them when this process ends,
// however it ends.
var reserved struct {
	sync.Mutex
	listeners []net.Listener
}

// freePort returns a TCP port of 127.0.0.1 that is free now and that no process's freePort returns again while this one runs.
func freePort() (int, error) {
	reserved.Lock()
	defer reserved.Unlock()
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort)
		reservation, err := listen(reservations, port)
		if err != nil {
			continue
		}
		reserved.listeners = append(reserved.listeners, reservation)
		probe, err := listen(localhost, port)
		if err != nil {
			continue
		}
		if err := probe.Close(); err != nil {
			return 0, fmt.Errorf("cannot release port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port on %s between %d and %d in %d tries", localhost, firstPort, lastPort, portAttempts)
}

func listen(host string, port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", address(host, port))
}

func address(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}
