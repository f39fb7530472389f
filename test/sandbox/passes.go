// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/monitoring/scraped"
)

const (
	// passesTimeout is how long the passes of a manager may take in all.
	passesTimeout = 3 * time.Minute
	// probing is the controller of Cluster API that looks at connections again and again, whatever happens.
	probing = "clustercache"
)

// Passes are what a manager has to do, and how far it is.
type Passes struct {
	// Controller is the name of one that has objects, and Objects is how many.
	Controller string
	Objects    int
}

// BootstrapPasses are those over the configs of so many Machines, ControlPlanePasses those over so many control planes.
func BootstrapPasses(configs int) Passes { return Passes{"openshiftassistedconfig", configs} }

// ControlPlanePasses see BootstrapPasses.
func ControlPlanePasses(controlPlanes int) Passes {
	return Passes{"openshiftassistedcontrolplane", controlPlanes}
}

// AwaitPasses waits until a manager has made a pass over each object of a controller since its process began, and has nothing to do any
// more. By that a test knows, however slow the machine is, that what it has seen is all that the manager wanted to do about things as they
// were.
func (w *World) AwaitPasses(ctx context.Context, manager *localcontrolplane.Manager, passes Passes) error {
	token, remove, err := w.scraper(ctx)
	if err != nil {
		return err
	}
	defer remove()
	return pollUntil(ctx, passesTimeout, "the passes of "+manager.Name(), func(ctx context.Context) (string, error) {
		_, metrics, err := w.scrape(ctx, manager, token)
		if err != nil {
			return "", err
		}
		return passes.left(metrics), nil
	})
}

// left says what a manager has still to do. All objects that there are wait from the beginning, so that each was looked at when as many
// passes are over as there are objects, and none waits.
func (p Passes) left(metrics scraped.Metrics) string {
	if over := metrics.Values("controller_runtime_reconcile_total", "controller")[p.Controller]; over < float64(p.Objects) {
		return fmt.Sprintf("%.0f passes of %s are over, of %d", over, p.Controller, p.Objects)
	}
	for _, gauge := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
		for controller, value := range metrics.Values(gauge, "controller") {
			if controller != probing {
				return fmt.Sprintf("%s of %s is %.0f", gauge, controller, value)
			}
		}
	}
	return ""
}
