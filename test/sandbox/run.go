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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

const (
	runNamespace = "demo"
	runCluster   = "demo"
	runAddress   = "127.10.1.5"

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
	// Speed divides all simulated times: 2 is twice as fast. Zero means 1.
	Speed float64
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
	// Namespace of the cluster. Default: demo.
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
	world    *World
	narrator *narrator
	timeline *Timeline
	before   *Snapshot
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
	r := &run{
		opts: opts, cluster: types.NamespacedName{Namespace: cmp.Or(opts.Namespace, runNamespace), Name: runCluster},
		timeline: newTimeline(), world: opts.World,
	}
	r.narrator = newNarrator(opts.Output, r.timeline, r.cluster.Namespace)
	r.request = ClusterRequest{
		Namespace: r.cluster.Namespace, Name: runCluster, Topology: opts.Topology, Template: opts.Template,
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
	return r, r.chooseFault()
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

// scales says whether a worker is added after the installation. A single-node cluster's workers are all added so.
func (r *run) scales() bool { return r.opts.Topology != SNO && r.request.HasWorkers() }

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
			return append(steps, step{"end", func(context.Context) error { return ErrReported }})
		}
		steps = append(steps, step{"retry", r.retry})
	}
	steps = append(steps,
		step{"install", r.install},
		step{"verify", r.verify},
	)
	if r.fault != nil {
		steps = append(steps, step{"recovery from " + r.fault.Name, r.verifyRecovery})
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

func (r *run) worldOptions() WorldOptions {
	opts := WorldOptions{Progress: lineWriter{r.narrator}, Speed: r.opts.Speed, Metal3: r.opts.Metal3}
	if r.fault != nil {
		opts.Inspect = r.fault.Inspect
	}
	return opts
}

func (r *run) startWorld(ctx context.Context) error {
	if r.world == nil {
		var err error
		if r.world, err = NewWorld(ctx, r.worldOptions()); err != nil {
			return err
		}
	}
	r.world.Watch.OnChange(r.narrator.observe)
	return r.world.CreateInputsFor(ctx, r.request, r.hosts)
}

func (r *run) takeSnapshot(ctx context.Context) error {
	var err error
	r.before, err = r.snapshot(ctx)
	return err
}

// snapshot is of the whole management cluster, or of what belongs to the run in a World that it shares.
func (r *run) snapshot(ctx context.Context) (*Snapshot, error) {
	if r.opts.World == nil {
		return TakeSnapshot(ctx, r.world.Management.Admin())
	}
	return TakeSnapshotOf(ctx, r.world.Management.Admin(), r.cluster.Namespace)
}

func (r *run) apply(ctx context.Context) error {
	if r.fault != nil {
		r.scene = &FaultScene{World: r.world, Cluster: r.cluster, Speed: r.opts.Speed, ctx: ctx, printf: r.narrator.printf}
		if r.fault.Prepare != nil {
			if err := r.fault.Prepare(ctx, r.scene); err != nil {
				return err
			}
		}
		r.fault.Inject(r.scene)
	}
	if r.request.Managed() {
		if err := r.world.ApplyClass(ctx, r.cluster.Namespace); err != nil {
			return err
		}
	}
	return r.world.ApplyCluster(ctx, r.request)
}

func (r *run) install(ctx context.Context) error {
	return r.world.Watch.Await(ctx, r.slower(installTimeout), "the cluster", r.world.Running(r.cluster, r.request.Machines()))
}

// verify checks everything about the cluster that a user may rely on.
func (r *run) verify(ctx context.Context) error {
	machines := r.request.Machines()
	settled := All(
		r.world.controlPlaneSettled(r.cluster, r.request.ControlPlaneReplicas()), r.world.configsSettled(r.cluster, machines),
	)
	if err := r.world.Watch.Await(ctx, r.slower(settleTimeout), "the conditions to settle", settled); err != nil {
		return err
	}
	agents, err := r.verifyHosts(ctx)
	if err != nil || r.opts.Topology != SNO {
		return err
	}
	return r.verifyWorkersDayTwo(ctx, agents)
}

// verifyHosts checks which host is which Machine and which Node, and what becomes of the Nodes' certificates. It returns the Agents' names
// by Machine.
func (r *run) verifyHosts(ctx context.Context) (map[string]string, error) {
	agents, err := r.world.VerifyHosts(ctx, r.cluster)
	if err != nil {
		return nil, err
	}
	kubeconfig := r.outFile("kubeconfig-" + runCluster)
	if err := r.world.WriteKubeconfig(ctx, r.cluster, kubeconfig); err != nil {
		return nil, err
	}
	if err := r.world.VerifyNodes(ctx, r.cluster, kubeconfig); err != nil {
		return nil, err
	}
	return agents, r.world.VerifyServingCertificates(ctx, r.cluster, r.slower(settleTimeout))
}

// verifyWorkersDayTwo checks that all workers of a single-node cluster joined after its installation.
func (r *run) verifyWorkersDayTwo(ctx context.Context, agents map[string]string) error {
	machines, err := r.world.Machines(ctx, r.cluster)
	if err != nil {
		return err
	}
	var errs []error
	for i := range machines {
		if _, controlPlane := machines[i].Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			errs = append(errs, r.world.VerifyDayTwo(ctx, r.cluster, agents[machines[i].Name]))
		}
	}
	return errors.Join(errs...)
}

// scaleUp adds a worker and checks that it joins as day 2.
func (r *run) scaleUp(ctx context.Context) error {
	before, err := r.world.VerifyHosts(ctx, r.cluster)
	if err != nil {
		return err
	}
	if err := r.world.AddWorker(ctx, r.cluster); err != nil {
		return err
	}
	r.request.Workers++
	if err := r.install(ctx); err != nil {
		return err
	}
	if err := r.verify(ctx); err != nil {
		return err
	}
	after, err := r.world.VerifyHosts(ctx, r.cluster)
	if err != nil {
		return err
	}
	return r.verifyJoined(ctx, before, after, r.world.VerifyDayTwo)
}

// verifyJoined checks the Agent of every Machine that was not there before. Both maps have Agents by Machine.
func (r *run) verifyJoined(
	ctx context.Context, before, after map[string]string, verify func(context.Context, types.NamespacedName, string) error,
) error {
	for machine, agent := range after {
		if before[machine] != "" {
			continue
		}
		if err := verify(ctx, r.cluster, agent); err != nil {
			return err
		}
		r.narrator.printf("Machine %s joined as day 2", machine)
	}
	return nil
}

// changeVariable changes what the discovery of every host depends on, and checks what docs/guides/clusterclass.md says of
// it: workers are replaced one after the other, control-plane Machines stay and say that they are outdated.
func (r *run) changeVariable(ctx context.Context) error {
	before, err := r.world.VerifyHosts(ctx, r.cluster)
	if err != nil {
		return err
	}
	machines, err := r.world.MachineUIDs(ctx, r.cluster)
	if err != nil {
		return err
	}
	if err := r.world.SetVariable(ctx, r.cluster, "additionalNTPSources", []string{changedNTPSource}); err != nil {
		return err
	}
	count := r.request.Machines()
	replaced := All(
		r.world.WorkersReplaced(r.cluster, machines), r.world.ControlPlaneKept(r.cluster, machines, ConfigOutdated),
		r.world.Running(r.cluster, count), r.world.configsSettled(r.cluster, count), r.world.workersUse(r.cluster, changedNTPSource),
	)
	if err := r.world.Watch.Await(ctx, r.slower(installTimeout), "the workers to be replaced", replaced); err != nil {
		return err
	}
	after, err := r.verifyHosts(ctx)
	if err != nil {
		return err
	}
	return r.verifyJoined(ctx, before, after, r.world.VerifyAdded)
}

func (r *run) delete(ctx context.Context) error {
	r.timeline.enterPhase("")
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = r.cluster.Namespace, r.cluster.Name
	if err := r.world.Client.Delete(ctx, cluster); err != nil {
		return fmt.Errorf("cannot delete Cluster %s: %w", r.cluster, err)
	}
	gone := All(r.world.Gone(r.cluster), r.world.HostsAvailable(r.cluster.Namespace, r.hosts))
	if err := r.world.Watch.Await(ctx, r.slower(deleteTimeout), "the deletion of the cluster", gone); err != nil {
		return err
	}
	if !r.request.Managed() {
		return nil
	}
	return r.world.DeleteClass(ctx, r.cluster.Namespace)
}

// compare waits until the garbage collector has caught up, and fails with what is left.
func (r *run) compare(ctx context.Context) error {
	return r.world.Watch.Await(ctx, settleTimeout, "nothing to be left", func(ctx context.Context) (string, error) {
		after, err := r.snapshot(ctx)
		if err != nil {
			return "", err
		}
		return text(r.before.Compare(after)), nil
	})
}

// reportFault waits until clusterctl shows what the fault's texts say.
func (r *run) reportFault(ctx context.Context) error {
	err := r.world.Watch.Await(ctx, r.slower(reportTimeout), "the fault to be reported", func(ctx context.Context) (string, error) {
		description, err := r.world.Describe(ctx, r.cluster.Namespace, runCluster)
		if err != nil {
			return "", err
		}
		description = unwrap(description)
		var missing []string
		for _, text := range r.fault.Report(r.scene) {
			if !strings.Contains(description, text) {
				missing = append(missing, fmt.Sprintf("clusterctl describe cluster does not show %q", text))
			}
		}
		return strings.Join(missing, "\n"), nil
	})
	if err != nil || r.fault.Verify == nil {
		return err
	}
	return r.fault.Verify(ctx, r.scene)
}

// unwrap undoes the line breaks and the branches that clusterctl puts into long messages.
func unwrap(description string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(description, "│", " ")), " ")
}

// retry asks for another attempt of the installation.
func (r *run) retry(ctx context.Context) error {
	_, err := r.world.Kubectl(ctx, "annotate", "openshiftassistedcontrolplane", r.scene.Install().Name, "-n", r.cluster.Namespace,
		controlplanev1.RetryInstallationAnnotation+"=")
	return err
}

// verifyRecovery checks that the fault has happened and done no harm.
func (r *run) verifyRecovery(ctx context.Context) error {
	if err := r.scene.finish(); err != nil {
		return err
	}
	if r.fault.Verify == nil {
		return nil
	}
	return r.fault.Verify(ctx, r.scene)
}

func (r *run) hold(ctx context.Context) error {
	r.narrator.printf("everything stays until you press Ctrl-C")
	<-ctx.Done()
	return nil
}

func (r *run) outFile(name string) string { return filepath.Join(r.opts.Out, name) }
