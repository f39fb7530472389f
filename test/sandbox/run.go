// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/capi-openshift/agent-providers/internal/report"
)

const (
	runNamespace = "demo"
	runAddress   = "127.10.1.5"

	// The files and folders in Options.Out.
	managementKubeconfig = "kubeconfig-management"
	timelineText         = "timeline.txt"
	timelineChart        = "timeline.svg"
	logFolder            = "logs"
	tools                = "bin"

	// The time-outs are for times at speed 1 on a loaded machine with two cores, and are longer when time runs slower.
	installTimeout = 4 * time.Minute
	settleTimeout  = time.Minute
	deleteTimeout  = 2 * time.Minute
	reportTimeout  = 2 * time.Minute
	// changedNTPSource is the value that a run gives a variable of the ClusterClass.
	changedNTPSource = "ntp.sandbox.example.com"
	// describeTimeout bounds the last look at a cluster, after a step has failed or was interrupted.
	describeTimeout = 20 * time.Second
)

// Options are the settings of a Run.
type Options struct {
	// Topology of the cluster. Default: the template's, else HA.
	Topology Topology
	// Workers is the number of worker Machines. Default: the template's, else that of the topology.
	Workers *int
	// Hold leaves everything running after the cluster was verified, until ctx ends, instead of deleting the cluster.
	Hold bool
	// Fault names what goes wrong; see Faults. Retry asks for another attempt after a reported failure of the installation.
	Fault string
	Retry bool
	// Release is the one that is installed, one of Releases. Default: OpenShiftVersion.
	Release string
	// Story names what happens to the cluster once it is installed; see Stories.
	Story string
	// Speed divides all simulated times: 2 is twice as fast. Zero means 1.
	Speed float64
	// Seed decides which host a Machine gets; see WorldOptions.Seed.
	Seed int64
	// Template is another template than the topology's: one of Flavors, or a path.
	Template string
	// Metal3 is the newest version of Cluster API Provider Metal3's API; see WorldOptions.Metal3.
	Metal3 string
	// Boot is how the hosts boot, one of BootModes; empty is the template's own way.
	Boot string
	// Address is the loopback address of the cluster's API. Default: 127.10.1.5, and ::1 for template ipv6. Runs at the same
	// time need different ones.
	Address string
	// World is one that runs already and that several runs share, each in another Namespace. It has to outlive the run. Default: a World of
	// the run's own.
	World *World
	// Namespace of the cluster, and its name too. Cluster API core hands a change of a Node to the Machine with a Node of that name, whatever
	// its cluster, and Nodes are named after their clusters. Default: demo.
	Namespace string
	// Out is the folder that gets the timeline and the kubeconfigs. It is made when missing.
	Out string
	// Output gets the progress and the report.
	Output io.Writer
}

// run is one Run.
type run struct {
	opts     Options
	request  ClusterRequest
	cluster  types.NamespacedName
	hosts    int
	fault    *Fault
	scene    *FaultScene
	story    *Story
	guard    *guard
	probe    *probe
	world    *World
	narrator *narrator
	timeline *Timeline
	recorder *report.Recorder
	before   *Snapshot
	// installed is what the managers had written when the cluster with its first Machines was installed.
	installed         []managerWrites
	installedMachines int
}

// Run brings up a World, takes a cluster from nothing to Available, adds a worker, reports, and deletes the cluster until
// nothing is left. It returns nil when every step was verified, and otherwise an error that says what was not.
func Run(ctx context.Context, opts Options) (err error) {
	r, err := newRun(opts)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(opts.Out, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for the results: %w", err)
	}
	if err := r.clear(); err != nil {
		return fmt.Errorf("cannot remove the results of an earlier run: %w", err)
	}
	defer r.narrator.end()
	defer func() {
		if r.world != nil && opts.World == nil {
			err = errors.Join(err, r.world.Stop())
		}
	}()
	for _, step := range r.steps() {
		r.narrator.printf("== %s", step.name)
		if err := r.timeline.step(step.name, func() error { return step.do(ctx) }); err != nil {
			r.explain(ctx)
			if errors.Is(err, ErrReported) {
				return err
			}
			return fmt.Errorf("step %q failed: %w", step.name, err)
		}
	}
	r.narrator.printf("== every step was verified")
	return nil
}

func newRun(opts Options) (*run, error) {
	if opts.Boot != "" {
		if !slices.Contains(BootModes(), opts.Boot) || (opts.Template != "" && opts.Template != opts.Boot) {
			return nil, fmt.Errorf(
				"hosts cannot boot as %q with template %q: choose one of %v and no template", opts.Boot, opts.Template, BootModes(),
			)
		}
		opts.Template = opts.Boot
	}
	opts.Speed = cmp.Or(max(opts.Speed, 0), 1)
	flavor := flavors[opts.Template]
	opts.Topology = cmp.Or(opts.Topology, TopologyOf(opts.Template))
	opts.Output = &lockedWriter{out: opts.Output}
	name := cmp.Or(opts.Namespace, runNamespace)
	r := &run{
		opts: opts, cluster: types.NamespacedName{Namespace: name, Name: name},
		timeline: newTimeline(), recorder: report.NewRecorder(), world: opts.World,
	}
	r.narrator = newNarrator(opts.Output, r.timeline, r.cluster.Namespace)
	r.request = ClusterRequest{
		Namespace: name, Name: name, Topology: opts.Topology, Template: opts.Template,
		Workers: ptr.Deref(opts.Workers, cmp.Or(flavor.workers, shapes[opts.Topology].workers)),
		Address: cmp.Or(opts.Address, flavor.address, runAddress),
		// All workers of a single-node cluster join on day 2.
		HostNetworks: opts.Topology == SNO && slices.Contains([]string{"", string(SNO)}, opts.Template),
	}
	if err := r.request.validate(); err != nil {
		return nil, err
	}
	r.hosts = r.request.Machines()
	if r.scales() {
		r.hosts++
	}
	return r, errors.Join(r.chooseRelease(), r.chooseFault(), r.chooseStory())
}

// chooseRelease sets the release that the options name, if they name one.
func (r *run) chooseRelease() error {
	switch r.opts.Release {
	case "", OpenShiftVersion:
		return nil
	case FiveRelease.Version:
		r.request.Release = FiveRelease
		return nil
	default:
		return fmt.Errorf("unknown release %q: choose one of %v", r.opts.Release, Releases())
	}
}

// chooseStory sets the story that the options name, if they name one.
func (r *run) chooseStory() (err error) {
	if r.opts.Story == "" {
		return nil
	}
	if r.story, err = storyNamed(r.opts.Story); err != nil {
		return err
	}
	if r.opts.Fault != "" || r.request.Managed() || !slices.Contains([]Topology{HA, Compact}, r.opts.Topology) {
		return fmt.Errorf("story %s needs topology %s or %s, no ClusterClass and no fault", r.story.Name, HA, Compact)
	}
	if (r.story.TokenLifetime > 0 || r.story.GracePeriod > 0) && r.opts.World != nil {
		return fmt.Errorf("story %s changes all clusters of a World: it needs one of its own", r.story.Name)
	}
	if r.story.Upgrades && r.request.Release.Version != "" {
		return fmt.Errorf("story %s begins with release %s", r.story.Name, OpenShiftVersion)
	}
	r.hosts += r.story.Hosts
	return nil
}

// chooseFault sets the fault that the options name, if they name one, and says when it cannot happen to the cluster.
func (r *run) chooseFault() error {
	if r.opts.Fault == "" {
		return nil
	}
	fault, err := faultNamed(r.opts.Fault)
	if err != nil {
		return err
	}
	r.fault, r.request.Variables = fault, fault.Variables
	switch {
	case fault.NeedsPeers && r.opts.Topology == SNO:
		return fmt.Errorf("fault %s needs several control-plane hosts: choose topology %s or %s", fault.Name, Compact, HA)
	case fault.WholeWorld && r.opts.World != nil:
		return fmt.Errorf("fault %s happens to all clusters of a World: it needs one of its own", fault.Name)
	case fault.NeedsWorker && r.request.Workers == 0:
		return fmt.Errorf("fault %s needs a worker: choose another topology or more workers", fault.Name)
	default:
		return nil
	}
}

// scales says whether a worker is added after the installation. A single-node cluster's workers are all added so, and a story is about
// other hosts.
func (r *run) scales() bool {
	return r.opts.Topology != SNO && r.request.HasWorkers() && r.opts.Story == ""
}

// step is a part of a Run that is verified when do returns nil.
type step struct {
	name string
	do   func(context.Context) error
}

func (r *run) steps() []step {
	steps := []step{
		{"management cluster", r.startWorld},
		{"snapshot", r.takeSnapshot},
		{"apply the template", r.apply},
	}
	if r.fault != nil && r.fault.Report != nil {
		steps = append(steps, step{"report of " + r.fault.Name, r.reportFault})
		if !r.opts.Retry {
			if r.opts.Hold {
				steps = append(steps, step{"hold", r.holdBroken})
			}
			return append(steps, step{"end", func(context.Context) error { return ErrReported }})
		}
		steps = append(steps, step{"retry", r.retry})
	}
	if r.story != nil && r.story.before != nil {
		steps = append(steps, r.story.before(r)...)
	}
	steps = append(steps,
		step{"install", r.install},
		step{"verify", r.verify},
	)
	if r.fault != nil {
		steps = append(steps, step{"recovery from " + r.fault.Name, r.verifyRecovery})
	}
	if r.story != nil {
		watch := r.watchAvailable
		if r.story.watch != nil {
			watch = func(ctx context.Context) error { return r.story.watch(r, ctx) }
		}
		steps = append(steps, step{"story " + r.story.Name, watch})
		steps = append(append(steps, r.story.steps(r)...), step{"verify the story", r.verifyStory})
	}
	if r.scales() {
		steps = append(steps, step{"add a worker", r.scaleUp})
	}
	if r.request.Managed() && r.fault == nil {
		steps = append(steps, step{"change a variable", r.changeVariable})
	}
	steps = append(steps, step{"report", r.report})
	if r.opts.Hold {
		return append(steps, step{"hold", r.hold})
	}
	return append(steps, step{"delete", r.delete}, step{"compare with the snapshot", r.compare})
}

func (r *run) slower(d time.Duration) time.Duration {
	return max(d, scaled(d, r.opts.Speed))
}

// await is Watch.AwaitIn for what happens to the cluster. A run that is slower than speed 1 waits longer than timeout, in proportion.
func (r *run) await(ctx context.Context, timeout time.Duration, what string, check Check) error {
	return r.world.Watch.AwaitIn(ctx, r.cluster.Namespace, r.slower(timeout), what, check)
}

func (r *run) worldOptions() WorldOptions {
	opts := WorldOptions{Progress: lineWriter{r.narrator}, Speed: r.opts.Speed, Seed: r.opts.Seed, Metal3: r.opts.Metal3}
	if r.fault != nil {
		opts.Inspect = r.fault.Inspect
	}
	if r.story != nil {
		opts.TokenLifetime, opts.GracePeriod = r.story.TokenLifetime, r.story.GracePeriod
	}
	return opts
}

func (r *run) outFile(name string) string { return filepath.Join(r.opts.Out, name) }
