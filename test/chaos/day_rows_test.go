// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	v1beta1conditions "sigs.k8s.io/cluster-api/util/conditions/deprecated/v1beta1"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/golden"
	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// silentMetal3 is how the message ends of what Metal3's webhook would have to admit.
const silentMetal3 = "now: admission webhook validation.metal3machine.infrastructure.cluster.x-k8s.io does not answer"

// apiOutage is how long the API server is away: less than the managers' Leases are valid.
const apiOutage = 5 * time.Second

// configsSay checks that this many configs have a condition with this reason, and this in its message.
func (d *day) configsSay(condition, reason, message string, count int) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		list, said := &bootstrapv1.OpenshiftAssistedConfigList{}, 0
		if err := d.world.Client.List(ctx, list, client.InNamespace(d.request.Namespace)); err != nil {
			return "", err
		}
		for i := range list.Items {
			found := conditions.Get(&list.Items[i], condition)
			if found != nil && found.Reason == reason && strings.Contains(found.Message, message) {
				said++
			}
		}
		return missing("configs say "+condition+" "+reason, said, count), nil
	}
}

// goneBeforeImage applies the cluster while assisted-service is away.
func (d *day) goneBeforeImage() {
	d.world.Assisted.Faults().ServiceDown(time.Hour)
	d.Expect(d.world.ApplyCluster(d.ctx, d.request)).To(Succeed())
	d.await("the configs to wait for their images",
		d.configsSay(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.InfraEnvPendingReason, "", d.request.Machines()))
	d.passHour(20)
}

// goneBeforeHosts takes Metal3 away, and brings assisted-service back, so that there are images which no machine can be given.
func (d *day) goneBeforeHosts() {
	metal3 := d.world.Metal3.Faults()
	metal3.Away(true)
	defer metal3.Away(false)
	d.world.Assisted.Faults().ServiceUp()
	d.await("the configs to say that Metal3 does not answer", d.configsSay(
		bootstrapv1.DataSecretAvailableCondition, bootstrapv1.WaitingForDiscoveryImageReason, silentMetal3, d.request.Machines(),
	))
	d.passHour(80) // Each pass of a config begins with what Metal3 does not take, later each time.
}

// goneWhileRegistering takes assisted-service away when the first host has registered.
func (d *day) goneWhileRegistering() {
	d.await("a host to register", func(ctx context.Context) (string, error) {
		agents := &assisted.AgentList{}
		err := d.world.Client.List(ctx, agents, client.InNamespace(d.request.Namespace))
		return missing("Agents", len(agents.Items), 1), err
	})
	d.loseService(30)
}

// goneWhileInstalling takes assisted-service away when hosts are installed. None of them is ready before that is over.
func (d *day) goneWhileInstalling() {
	d.hang(simassisted.StageWritingImage)
	d.awaitInstalled("the installation", controlplanev1.InstallingReason)
	d.loseService(30)
	// Its hosts were not heard of for too long.
	controlPlane := d.awaitInstalled("the failure", controlplanev1.InstallationFailedReason)
	d.hang("")
	d.Expect(d.world.Change(d.ctx, controlPlane, func() {
		metav1.SetMetaDataAnnotation(&controlPlane.ObjectMeta, controlplanev1.RetryInstallationAnnotation, "true")
	})).To(Succeed())
	d.awaitInstalled("the next attempt", controlplanev1.InstallingReason)
}

// hang keeps all hosts in a stage of their installation.
func (d *day) hang(stage string) {
	for i := range hosts {
		d.world.Assisted.Faults().StageHang(types.NamespacedName{Namespace: d.request.Namespace, Name: fmt.Sprintf("host-%d", i)}, stage)
	}
}

// awaitInstalled waits until the control plane's condition Installed has a reason, and returns the control plane.
func (d *day) awaitInstalled(what, reason string) *controlplanev1.OpenshiftAssistedControlPlane {
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	d.await(what, func(ctx context.Context) (string, error) {
		if err := d.world.Client.Get(ctx, sandbox.InstallKey(d.request.Key()), controlPlane); err != nil {
			return "", err
		}
		if found := conditions.GetReason(controlPlane, controlplanev1.InstalledCondition); found != reason {
			return fmt.Sprintf("Installed: %s, %s", found, conditions.GetMessage(controlPlane, controlplanev1.InstalledCondition)), nil
		}
		return "", nil
	})
	return controlPlane
}

// loseService takes assisted-service away for an hour.
func (d *day) loseService(writes int) {
	d.world.Assisted.Faults().ServiceDown(time.Hour)
	d.passHour(writes)
	d.world.Assisted.Faults().ServiceUp()
}

// killAPIServer takes the API server away for some seconds.
func (d *day) killAPIServer() {
	managers := []*localcontrolplane.Manager{d.world.Bootstrap, d.world.ControlPlane}
	before := []int{managers[0].PID(), managers[1].PID()}
	server, err := d.world.Management.Process("kube-apiserver")
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(server.Kill9()).To(Succeed())
	pause(d.ctx, apiOutage)
	d.Expect(server.Start(d.ctx)).To(Succeed())
	d.Expect([]int{managers[0].PID(), managers[1].PID()}).To(Equal(before), "an outage that is shorter than a Lease ends no manager")
}

// slowEtcd goes on with the installation, to its end, on an etcd that is slow.
func (d *day) slowEtcd() {
	etcd, err := d.world.Management.Process("etcd")
	d.Expect(err).NotTo(HaveOccurred())
	restore := SlowDown(etcd)
	defer func() { d.Expect(restore()).To(Succeed()) }()
	d.running()
	d.Expect(restore()).To(Succeed())
	golden.Compare(d.t, "objects.txt", strings.Join(objects(d.ctx, d.WithT, d.world.Client, d.request.Namespace), "\n")+"\n")
}

// loseWebhooks asks for a worker, and for another control plane, while nobody answers for the managers' kinds.
func (d *day) loseWebhooks() {
	managers := []*localcontrolplane.Manager{d.world.Bootstrap, d.world.ControlPlane}
	for _, manager := range managers {
		d.Expect(manager.Kill9()).To(Succeed())
	}
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	d.Expect(d.world.Client.Get(d.ctx, sandbox.InstallKey(d.request.Key()), controlPlane)).To(Succeed())
	other := &controlplanev1.OpenshiftAssistedControlPlane{Spec: controlPlane.Spec}
	other.Namespace, other.Name = d.request.Namespace, "other"
	err := d.world.Client.Create(d.ctx, other)
	d.Expect(apierrors.IsInternalError(err)).To(BeTrue(), "%v", err)
	d.Expect(err).To(MatchError(MatchRegexp(`failed calling webhook ".*openshiftassistedcontrolplane.*": .*: connection refused`)))

	d.Expect(d.world.AddWorker(d.ctx, d.request.Key())).To(Succeed())
	d.request.Workers++
	d.await("Cluster API to be refused", func(ctx context.Context) (string, error) {
		sets := &clusterv1.MachineSetList{}
		if err := d.world.Client.List(ctx, sets, client.InNamespace(d.request.Namespace)); err != nil {
			return "", err
		}
		for i := range sets.Items {
			if reason := v1beta1conditions.GetReason(&sets.Items[i], clusterv1.MachinesCreatedV1Beta1Condition); reason != "" {
				return "", nil
			}
		}
		return "no MachineSet says that no Machine can be made", nil
	})
	for _, manager := range managers {
		d.Expect(manager.DropLease(d.ctx, d.world.Client)).To(Succeed())
		d.Expect(manager.Start(d.ctx)).To(Succeed())
	}
	d.running()
}

// goneWhileFreeing takes Metal3 away and deletes a worker.
func (d *day) goneWhileFreeing() {
	machines, err := d.world.Machines(d.ctx, d.request.Key())
	d.Expect(err).NotTo(HaveOccurred())
	worker := &machines[len(machines)-1]
	metal3 := d.world.Metal3.Faults()
	metal3.Away(true)
	defer metal3.Away(false)
	d.Expect(d.world.Client.Delete(d.ctx, worker)).To(Succeed())
	d.await("the Machine to wait for its host", func(ctx context.Context) (string, error) {
		machine := &clusterv1.Machine{}
		if err := d.world.Client.Get(ctx, client.ObjectKeyFromObject(worker), machine); err != nil {
			return "", err
		}
		reason := conditions.GetReason(machine, clusterv1.MachineDeletingCondition)
		if reason == clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason {
			return "", nil
		}
		return "Deleting: " + reason, nil
	})
	d.passHour(20)
	metal3.Away(false)
	d.await("the Machine to be gone", d.gone(worker.UID))
}

// gone checks that there is no Machine with this UID.
func (d *day) gone(uid types.UID) sandbox.Check {
	return func(ctx context.Context) (string, error) {
		machines, err := d.world.MachineUIDs(ctx, d.request.Key())
		for name, found := range machines {
			if found == uid {
				return "Machine " + name + " exists", err
			}
		}
		return "", err
	}
}

// hearLate goes on with managers that hear of everything an hour late.
func (d *day) hearLate() {
	for _, victim := range d.victims {
		victim.HearsNothing(true)
	}
	d.passHour(60)
	for _, victim := range d.victims {
		victim.HearsNothing(false)
	}
	d.running()
}
