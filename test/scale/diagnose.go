// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// logsFolder has what is kept of a run that failed, below Options.Out.
const logsFolder = "scale-logs"

// hubName is what the state of the hub is kept under; that of a fleet has the name of its profile, and its size.
const hubName = "hub"

// quitTimeout bounds what is asked of a manager that may hang.
const quitTimeout = 15 * time.Second

// dropState removes what an earlier run has kept, so that everything there is of this one.
func (m *measurement) dropState() error {
	if m.opts.Out == "" {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(m.opts.Out, logsFolder)); err != nil {
		return fmt.Errorf("remove old logs: %w", err)
	}
	return nil
}

// end stops a hub, and keeps its state under a name before that when the run fails: by err, with which the hub was left, or because
// something that was measured in it must not be.
func (m *measurement) end(ctx context.Context, h *hub, name string, stop func() error, err error) error {
	if err != nil || m.problemIn(name != hubName) != nil {
		err = errors.Join(err, m.keepState(ctx, h, name))
	}
	return errors.Join(err, stop())
}

// problemIn is what must not be of the hub's profiles, or of the installations.
func (m *measurement) problemIn(installs bool) error {
	return newReport(slices.DeleteFunc(slices.Clone(m.results), func(r Result) bool {
		return (r.Profile == profileInstall) != installs
	})).problem()
}

// keepState keeps what tells why a run has failed, and goes with the hub: the metrics of the managers, and the logs of all processes, which
// end with the stacks of all goroutines of the managers. These end with it: pprof is served only where somebody asks for it, and managers
// that serve it would not be the ones that are measured.
func (m *measurement) keepState(ctx context.Context, h *hub, name string) error {
	if m.opts.Out == "" {
		return nil
	}
	target := filepath.Join(m.opts.Out, logsFolder, name)
	if err := os.MkdirAll(target, 0o750); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	ctx = context.WithoutCancel(ctx) // The time of the run may be over.
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(h.replicas)) {
		r := h.replicas[name]
		if !r.Running() {
			continue // Its log tells why.
		}
		errs = append(errs, r.keepMetrics(ctx, filepath.Join(target, name+".metrics")), r.dumpGoroutines(ctx))
	}
	if err := os.CopyFS(target, os.DirFS(filepath.Join(h.cp.Dir(), "logs"))); err != nil {
		errs = append(errs, fmt.Errorf("keep the logs: %w", err))
	}
	return errors.Join(errs...)
}

// keepMetrics writes what the replica has for Prometheus to a file.
func (r *replica) keepMetrics(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, quitTimeout)
	defer cancel()
	return r.metrics(ctx, func(text io.Reader) error {
		data, err := io.ReadAll(text)
		if err != nil {
			return fmt.Errorf("read the metrics of %s: %w", r.Name(), err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("keep the metrics of %s: %w", r.Name(), err)
		}
		return nil
	})
}

// dumpGoroutines ends the replica as Go lets every program end that gets SIGQUIT: with the stacks of all its goroutines in its log.
func (r *replica) dumpGoroutines(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quitTimeout)
	defer cancel()
	if err := r.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, localcontrolplane.ErrNotRunning) {
		return fmt.Errorf("ask %s for its goroutines: %w", r.Name(), err)
	}
	if err := r.Wait(ctx); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("wait for the goroutines of %s: %w", r.Name(), err)
	}
	return nil // It ends with an error, as it has to.
}
