// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

func (r *run) startWorld(ctx context.Context) error {
	if r.world == nil {
		var err error
		if r.world, err = NewWorld(ctx, r.worldOptions()); err != nil {
			return err
		}
	}
	if err := errors.Join(r.linkTools(ctx), r.writeKubeconfig()); err != nil {
		return err
	}
	r.world.Watch.OnChange(r.narrator.observe)
	r.world.Watch.OnChange(r.remember)
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
	r.scene = &FaultScene{World: r.world, Cluster: r.cluster, Speed: r.opts.Speed, ctx: ctx, printf: r.narrator.printf}
	if r.story != nil && r.story.prepare != nil {
		r.story.prepare(r.scene)
	}
	if r.fault != nil {
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

func (r *run) install(ctx context.Context) (err error) {
	if err := r.awaitMachines(ctx); err != nil {
		return err
	}
	// A fault may begin when the cluster is installed already: who looks at the cluster before it has ended looks at the fault.
	if r.fault != nil {
		if err := r.scene.finish(); err != nil {
			return err
		}
		if err := r.awaitMachines(ctx); err != nil {
			return err
		}
	}
	r.installedMachines = r.request.Machines()
	r.installed, err = r.world.managersWrites()
	return err
}

// awaitMachines waits until the cluster is Available with all its Machines Ready.
func (r *run) awaitMachines(ctx context.Context) error {
	return r.await(ctx, installTimeout, "the cluster", r.world.Running(r.cluster, r.request.Machines()))
}

// verify checks everything about the cluster that a user may rely on.
func (r *run) verify(ctx context.Context) error {
	machines := r.request.Machines()
	settled := All(r.world.controlPlaneSettled(r.cluster, r.request.ControlPlaneReplicas()), r.world.configsSettled(r.cluster, machines))
	if err := r.await(ctx, settleTimeout, "the conditions to settle", settled); err != nil {
		return err
	}
	if r.world.LostQuorum(r.cluster) {
		return fmt.Errorf("etcd of Cluster %s has lost its quorum", r.cluster.Name)
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
	kubeconfig := r.clusterKubeconfig()
	if err := r.world.WriteKubeconfig(ctx, r.cluster, kubeconfig); err != nil {
		return nil, err
	}
	if err := r.world.VerifyNodes(ctx, r.cluster, kubeconfig); err != nil {
		return nil, err
	}
	r.narrator.printf("asking for serving certificates of foreign names: events %s are about them",
		controlplanev1.EventServingCertificateNotApproved)
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
	if err := r.awaitMachines(ctx); err != nil {
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
// it: workers are outdated and are replaced when they are deleted, control-plane Machines stay and are not outdated: they were discovered
// long ago.
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
	outdated := r.world.WorkersOutdated(r.cluster, machines)
	if err := r.await(ctx, settleTimeout, "the workers to be outdated", outdated); err != nil {
		return err
	}
	r.narrator.printf("deleting the workers: those in their places are made with the changed variable")
	if err := r.world.DeleteWorkers(ctx, r.cluster); err != nil {
		return err
	}
	count := r.request.Machines()
	replaced := All(
		r.world.WorkersReplaced(r.cluster, machines), r.world.ControlPlaneKept(r.cluster, machines, ""),
		r.world.Running(r.cluster, count), r.world.configsSettled(r.cluster, count), r.world.workersUse(r.cluster, changedNTPSource),
	)
	if err := r.await(ctx, installTimeout, "the workers to be replaced", replaced); err != nil {
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
	if err := r.await(ctx, deleteTimeout, "the deletion of the cluster", gone); err != nil {
		return err
	}
	if !r.request.Managed() {
		return nil
	}
	return r.world.DeleteClass(ctx, r.cluster.Namespace)
}

// compare waits until the garbage collector has caught up, and fails with what is left.
func (r *run) compare(ctx context.Context) error {
	return r.await(ctx, settleTimeout, "nothing to be left", func(ctx context.Context) (string, error) {
		after, err := r.snapshot(ctx)
		if err != nil {
			return "", err
		}
		return text(r.before.Compare(after)), nil
	})
}

// reportFault waits until clusterctl shows what the fault's texts say.
func (r *run) reportFault(ctx context.Context) error {
	err := r.awaitDescription(ctx, "the fault to be reported", func() []string { return r.fault.Report(r.scene) })
	if err != nil || r.fault.Verify == nil {
		return err
	}
	return r.fault.Verify(ctx, r.scene)
}

// awaitDescription waits until clusterctl shows all the texts.
func (r *run) awaitDescription(ctx context.Context, what string, texts func() []string) error {
	return r.await(ctx, reportTimeout, what, func(ctx context.Context) (string, error) {
		description, err := r.world.Describe(ctx, r.cluster.Namespace, r.cluster.Name)
		if err != nil {
			return "", err
		}
		description = unwrap(description)
		var missing []string
		for _, text := range texts() {
			if !strings.Contains(description, text) {
				missing = append(missing, fmt.Sprintf("clusterctl describe cluster does not show %q", text))
			}
		}
		return strings.Join(missing, "\n"), nil
	})
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

// verifyRecovery checks that the fault, which has ended, has done no harm.
func (r *run) verifyRecovery(ctx context.Context) error {
	if r.fault.Verify == nil {
		return nil
	}
	return r.fault.Verify(ctx, r.scene)
}

// holdBroken shows a cluster that reports a fault, and leaves it as it is.
func (r *run) holdBroken(ctx context.Context) error {
	if err := r.showCluster(ctx); err != nil {
		return err
	}
	r.narrator.printf("%s is reported as it should be", r.fault.Name)
	if err := r.writeReport(ctx); err != nil {
		return err
	}
	return r.hold(ctx)
}

func (r *run) hold(ctx context.Context) error {
	r.narrator.printf("everything stays until you press Ctrl-C")
	<-ctx.Done()
	return nil
}
