// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// Victim is a manager that is killed (-9) whenever its Choose says so, and started again at once.
type Victim struct {
	// Choose is asked after every write that the manager has made and not heard of; true kills it.
	Choose func(Write) bool
	// SlowWatches are resources that the manager hears of late, so that its cache does not show what it has just made.
	SlowWatches []string

	client  client.Client
	dir     string
	proxy   *Proxy
	kills   chan struct{}
	done    chan struct{}
	mu      sync.Mutex
	points  []Write
	problem error
}

// NewVictim makes a victim whose files go to dir.
func NewVictim(c client.Client, dir string, choose func(Write) bool) *Victim {
	return &Victim{Choose: choose, client: c, dir: dir, kills: make(chan struct{}, 1), done: make(chan struct{})}
}

// Adjust makes the manager of a spec reach the API server through the victim's proxy.
func (v *Victim) Adjust(cp *localcontrolplane.ControlPlane, spec *localcontrolplane.ManagerSpec) {
	name := spec.Name
	spec.Credentials = func(user string, groups []string) (string, error) {
		own, err := cp.Kubeconfig(user, groups...)
		if err != nil {
			return "", err
		}
		config, err := clientcmd.BuildConfigFromFlags("", own)
		if err != nil {
			return "", fmt.Errorf("read the kubeconfig of %s: %w", name, err)
		}
		proxy, err := NewProxy(config, v.SlowWatches, v.onWrite)
		if err != nil {
			return "", err
		}
		v.proxy = proxy
		path := filepath.Join(v.dir, name+"-chaos.kubeconfig")
		return path, proxy.WriteKubeconfig(path)
	}
}

// onWrite notes the point of a kill and asks for it, unless the manager is dying already.
func (v *Victim) onWrite(write Write, dying bool) bool {
	if !v.Choose(write) {
		return false
	}
	v.mu.Lock()
	v.points = append(v.points, write)
	v.mu.Unlock()
	if !dying {
		v.kills <- struct{}{}
	}
	return true
}

// Supervise kills and restarts the manager until ctx ends, as a kubelet would, but without its back-off.
func (v *Victim) Supervise(ctx context.Context, manager *localcontrolplane.Manager) {
	defer close(v.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.kills:
		}
		if err := v.restart(ctx, manager); err != nil && ctx.Err() == nil {
			v.mu.Lock()
			v.problem = errors.Join(v.problem, err)
			v.mu.Unlock()
		}
	}
}

func (v *Victim) restart(ctx context.Context, manager *localcontrolplane.Manager) error {
	if err := manager.Kill9(); err != nil && !errors.Is(err, localcontrolplane.ErrNotRunning) {
		return fmt.Errorf("kill %s: %w", manager.Name(), err)
	}
	if err := manager.DropLease(ctx, v.client); err != nil {
		return err
	}
	v.proxy.Mend()
	err := manager.Start(ctx)
	if err != nil && len(v.kills) > 0 {
		return nil // It was killed again before it was ready.
	}
	return err
}

// HearsNothing keeps the manager's watch events back while on.
func (v *Victim) HearsNothing(on bool) {
	if on {
		v.proxy.Hold()
		return
	}
	v.proxy.Release()
}

// Points are the writes after which the manager was killed, in order.
func (v *Victim) Points() []Write {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]Write(nil), v.points...)
}

// Close ends the proxy after Supervise has returned, and tells what went wrong with kills.
func (v *Victim) Close() error {
	<-v.done
	v.mu.Lock()
	defer v.mu.Unlock()
	return errors.Join(v.problem, v.proxy.Close(), os.RemoveAll(v.dir))
}
