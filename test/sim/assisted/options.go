// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Durations are all times of the simulation. None is a minimum of the real service: they keep its order of events and
// shorten the rest.
type Durations struct {
	// Tick is how often anything can happen at all: the resolution of every other duration.
	Tick time.Duration
	// Monitor is the period of the service's host and cluster monitors (8 s and 10 s in reality).
	Monitor time.Duration
	// AgentPoll is the period in which a host asks for instructions (60 s in reality).
	AgentPoll time.Duration
	// Discovery is the time from power-on with the ISO to the registration (5 to 15 min).
	Discovery time.Duration
	// Inventory is the time from a registration to the hardware report.
	Inventory time.Duration
	// Validation is the time from the hardware report until time and connectivity checks pass.
	Validation time.Duration
	// Prepare is the time that hosts spend in preparing-for-installation (1 to 6 min).
	Prepare time.Duration
	// Stage is the time of each installation stage before the host reboots.
	Stage time.Duration
	// Reboot is the time from the stage Rebooting until the kubelet starts.
	Reboot time.Duration
	// Finalize is the time of the state finalizing (10 to 40 min).
	Finalize time.Duration
	// Heartbeat is the silence after which a host counts as disconnected (3 min).
	Heartbeat time.Duration
	// RebootTimeout is the time in Rebooting after which a host needs a person (40 min).
	RebootTimeout time.Duration
	// StageTimeout is the time after which most stages of a host's installation have failed; the others follow from it. It is as long as in
	// reality, whatever the speed: a stage ends when an API server runs, which takes as long as this machine needs for it.
	StageTimeout time.Duration
	// BackendRetry is the pause before the service repeats a request that failed for reasons of its own (10 s).
	BackendRetry time.Duration
	// Churn is the period of status rewrites that change nothing but probe times. Zero turns them off.
	Churn time.Duration
	// Flap is for how long a cluster without hosts is at least in each of its two states. A higher speed does not shorten it: each change is
	// a write that wakes the managers, and neither they nor the API server get faster. Zero: each look of the monitor changes the state, as
	// in the recordings.
	Flap time.Duration
}

// DefaultDurations let three control-plane hosts and two workers install in about 15 seconds. Agents poll as much more seldom than the
// monitors look as in reality: a hundredth of 60 s and of 10 s.
func DefaultDurations() Durations {
	return Durations{
		Tick:          50 * time.Millisecond,
		Monitor:       100 * time.Millisecond,
		AgentPoll:     600 * time.Millisecond,
		Discovery:     time.Second,
		Inventory:     200 * time.Millisecond,
		Validation:    600 * time.Millisecond,
		Prepare:       600 * time.Millisecond,
		Stage:         400 * time.Millisecond,
		Reboot:        600 * time.Millisecond,
		Finalize:      1500 * time.Millisecond,
		Heartbeat:     5 * time.Second,
		RebootTimeout: 30 * time.Second,
		StageTimeout:  time.Hour,
		BackendRetry:  time.Second,
		Churn:         5 * time.Second,
		Flap:          500 * time.Millisecond,
	}
}

// Scale returns the durations divided by speed: 2 is twice as fast, 0.1 ten times slower. Tick stays as it is, being a
// resolution, and so do StageTimeout and Flap. A speed of zero or less leaves everything unchanged.
func (d Durations) Scale(speed float64) Durations {
	if speed <= 0 {
		return d
	}
	for _, field := range []*time.Duration{
		&d.Monitor, &d.AgentPoll, &d.Discovery, &d.Inventory, &d.Validation, &d.Prepare, &d.Stage, &d.Reboot,
		&d.Finalize, &d.Heartbeat, &d.RebootTimeout, &d.BackendRetry, &d.Churn,
	} {
		*field = time.Duration(float64(*field) / speed)
	}
	return d
}

// Options configure a Simulator. The zero value of every field is usable.
type Options struct {
	// Durations default to DefaultDurations.
	Durations Durations
	// Clock defaults to the real one.
	Clock clock.WithTicker
	// Seed decides every identifier and jitter.
	Seed int64
	// Metal is the data centre. By default the simulator has one of its own.
	Metal *Metal
	// Workload runs the installed clusters. The default pretends: nodes join and are ready at once.
	Workload Workload
	// Hardware returns what a host really is, which its agent will report. The default derives it from the
	// BareMetalHost. A test that wants a wrong MAC or a duplicate serial number answers differently. It is called while the
	// simulation stands still and must not call the Simulator.
	Hardware func(*bmov1alpha1.BareMetalHost) HostHardware
	// ImageBaseURL is the image service's address, by default http://assisted-image-service.sim.
	ImageBaseURL string
	// ImageTokenLength is the length of the token in ISO URLs, by default 180 bytes as that of a real one.
	ImageTokenLength int
	// OSImages are the operating systems that the service makes images of; see SetOSImages. Empty: all of them.
	OSImages []OSImage
	// CalmState turns off the flapping between insufficient and pending-for-input of a cluster without hosts
	// (ASSISTED fact 5).
	CalmState bool
	// ShowEveryState stops the simulation's time while a change is not yet written to its Agent or AgentClusterInstall, so that
	// a watch sees every state even on a loaded machine. The real service writes late and skips some.
	ShowEveryState bool
	// NoHostsFromAPI turns off the discovery of hosts through BareMetalHosts: only BootHost starts hosts.
	NoHostsFromAPI bool
	// Workers is how many objects each controller reconciles at a time. The service's controllers reconcile one. The default is 4: a test
	// plays an hour in seconds, and one worker would write a state after the next one has begun. With many clusters at nearly a real pace,
	// set it to 1: four workers would change four clusters in one moment.
	Workers int
}

// HostHardware is the truth about one machine.
type HostHardware struct {
	Hostname     string
	NICs         []NIC
	Serial       string
	SystemUUID   string
	Disks        []Disk
	Manufacturer string
	ProductName  string
	// Architecture defaults to that of the image that the machine has booted: it can boot no other.
	Architecture string
	// CPUs and MemoryBytes default to 16 and 64 GiB.
	CPUs        int64
	MemoryBytes int64
}

// NIC is a network card. IPs are in CIDR form.
type NIC struct {
	Name string
	MAC  string
	IPs  []string
}

// Disk is a drive, by its kernel name (sda) and size in bytes. The rest may be empty.
type Disk struct {
	Name      string
	SizeBytes int64
	// Type is SSD, the default, or another type.
	Type                       string
	ByPath, HCTL               string
	Vendor, Model, Serial, WWN string
	// NotEligible says why nothing may be installed on it.
	NotEligible []string
}

func (o Options) withDefaults() Options {
	if o.Durations == (Durations{}) {
		o.Durations = DefaultDurations()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Metal == nil {
		o.Metal = NewMetal()
	}
	if o.Workload == nil {
		o.Workload = newInstantWorkload()
	}
	if o.Hardware == nil {
		o.Hardware = HardwareOf
	}
	if o.ImageBaseURL == "" {
		o.ImageBaseURL = "http://assisted-image-service.sim"
	}
	if o.ImageTokenLength == 0 {
		o.ImageTokenLength = 180
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	return o
}

// HostKey identifies a machine: namespace and name of its BareMetalHost, or what BootHost was told.
type HostKey = types.NamespacedName
