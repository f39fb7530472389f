// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// FaultScene is what a fault has to work with.
type FaultScene struct {
	// World is where it happens.
	World *World
	// Cluster that will be applied right after Inject.
	Cluster types.NamespacedName
	// Hosts is the number of BareMetalHosts.
	Hosts int
	// Speed divides simulated times.
	Speed  float64
	printf func(format string, args ...any)
}

// Fault is something that goes wrong in a run.
type Fault struct {
	// Name by which it is chosen.
	Name string
	// Summary is a line for the command's help.
	Summary string
	// NeedsWorker is set when it happens to a worker.
	NeedsWorker bool
	// Variables of the template that the fault needs.
	Variables map[string]string
	// Inject sets it up before the cluster is applied. What waits for a moment of the run does so in the background, until
	// ctx ends.
	Inject func(ctx context.Context, scene *FaultScene)
	// Report is set for a fault from which a cluster does not recover by itself: all these texts must appear in the output of
	// clusterctl describe cluster.
	Report []string
}

// Faults returns every fault, the ones that a cluster recovers from first.
func Faults() []Fault { return nil }

func faultNamed(name string) (*Fault, error) {
	var names []string
	for _, fault := range Faults() {
		if fault.Name == name {
			return &fault, nil
		}
		names = append(names, fault.Name)
	}
	return nil, fmt.Errorf("unknown fault %q: choose one of %s", name, strings.Join(names, ", "))
}

func (r *run) reportFault(ctx context.Context) error { return nil }
func (r *run) retry(ctx context.Context) error       { return nil }
