// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Durations says how long the simulated operations take. A zero field means its default; see DefaultDurations.
type Durations struct {
	// Register is the time from the first sight of a host until its BMC has answered.
	Register time.Duration
	// Inspect is the time in the state inspecting.
	Inspect time.Duration
	// Prepare is the time in the state preparing.
	Prepare time.Duration
	// Provision is the time in the state provisioning.
	Provision time.Duration
	// Deprovision is the time in the state deprovisioning.
	Deprovision time.Duration
	// ErrorRetry is the time between a host's error and the next attempt, which takes minutes in reality (M3-60, M3-62).
	ErrorRetry time.Duration
	// HostRetry is the time after which a Metal3Machine without a host looks again; 30 s in reality (M3-11).
	HostRetry time.Duration
	// NodePoll is the time between two looks at the workload cluster's Nodes; 30 s in reality (M3-33).
	NodePoll time.Duration
}

// DefaultDurations returns the durations at which a new host is provisioned within about a second. CAPM3's own periods are a hundredth of
// the real ones, as those of the simulated assisted-service are.
func DefaultDurations() Durations {
	return Durations{
		Register:    50 * time.Millisecond,
		Inspect:     200 * time.Millisecond,
		Prepare:     50 * time.Millisecond,
		Provision:   500 * time.Millisecond,
		Deprovision: 300 * time.Millisecond,
		ErrorRetry:  time.Second,
		HostRetry:   300 * time.Millisecond,
		NodePoll:    300 * time.Millisecond,
	}
}

// Options configures a Simulator. The zero value is usable.
type Options struct {
	// Durations overrides single default durations.
	Durations Durations
	// Speed divides every duration: 2 is twice as fast, 0.1 ten times slower. Zero means 1.
	Speed float64
	// Clock tells the time against which durations are measured. Nil means the real clock.
	Clock clock.PassiveClock
	// Hardware returns what inspection finds in a host that brings no hardware details in its annotation (M3-72).
	// Nil means DefaultHardware.
	Hardware func(host *bmov1alpha1.BareMetalHost) *bmov1alpha1.HardwareDetails
	// UserData is told what every host that is provisioned finds on its config drive, nil when it has none. The host boots afterwards.
	UserData func(host client.ObjectKey, data []byte)
	// PowerOff is told of every host whose power is cut, as its BMC is: whoever looks at BareMetalHosts may miss that one was off for a
	// moment.
	PowerOff func(host client.ObjectKey)
	// Deprovisioned is told of every host that was torn down: its power was cut, and its disks were wiped if it was cleaned.
	Deprovisioned func(host client.ObjectKey, cleaned bool)
	// ShuffleSeed, when set, makes the choice among several free hosts a pseudo-random one that depends on the seed and the
	// Metal3Machine's name only. Nil means the first by name.
	ShuffleSeed *int64
	// UserDataRace makes every Metal3Machine take the name of its bootstrap config as the name of its bootstrap Secret, as CAPM3
	// does whenever it runs between the two writes in which CAPI core reports the bootstrap data (M3-4).
	UserDataRace bool
}

// Simulator is a running simulation, set up by SetupWithManager.
type Simulator struct {
	faults *Faults
}

// Faults returns the switchboard of faults, to be used at any time from any goroutine.
func (s *Simulator) Faults() *Faults { return s.faults }

// config is what all controllers of one Simulator share, defaults filled in.
type config struct {
	Options
	client client.Client
	shape  shape
	faults *Faults
}

// SetupWithManager adds the simulated controllers to the manager, whose scheme it extends by the kinds that it needs. The CRDs of
// Cluster API core, CAPM3 and BMO must be installed: the version of CAPM3's API is taken from them. It returns an error that
// says what is missing otherwise.
func SetupWithManager(mgr ctrl.Manager, options Options) (*Simulator, error) {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, bmov1alpha1.AddToScheme} {
		if err := add(mgr.GetScheme()); err != nil {
			return nil, fmt.Errorf("add the Metal3 simulator's kinds to the manager's scheme: %w", err)
		}
	}
	installed, err := installedShape(context.Background(), mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	cfg := &config{
		Options: options.withDefaults(),
		client:  mgr.GetClient(),
		shape:   installed,
		faults:  newFaults(),
	}
	for _, setup := range []func(ctrl.Manager, *config) error{setupClusters, setupMachines, setupHosts} {
		if err := setup(mgr, cfg); err != nil {
			return nil, fmt.Errorf("set up the Metal3 simulator: %w", err)
		}
	}
	return &Simulator{faults: cfg.faults}, nil
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Hardware == nil {
		o.Hardware = DefaultHardware
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	o.Durations = o.Durations.scaled(o.Speed)
	return o
}

func (d Durations) scaled(speed float64) Durations {
	defaults := DefaultDurations()
	for _, field := range []struct{ value, fallback *time.Duration }{
		{&d.Register, &defaults.Register},
		{&d.Inspect, &defaults.Inspect},
		{&d.Prepare, &defaults.Prepare},
		{&d.Provision, &defaults.Provision},
		{&d.Deprovision, &defaults.Deprovision},
		{&d.ErrorRetry, &defaults.ErrorRetry},
		{&d.HostRetry, &defaults.HostRetry},
		{&d.NodePoll, &defaults.NodePoll},
	} {
		if *field.value == 0 {
			*field.value = *field.fallback
		}
		*field.value = time.Duration(float64(*field.value) / speed)
	}
	return d
}
