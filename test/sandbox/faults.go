// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// ErrReported is returned by Run when a fault from which a cluster does not recover by itself was reported as it should be.
var ErrReported = errors.New("the cluster reports the fault as it should, and is not installed: docs/troubleshooting.md says what to do")

// Fault is something that goes wrong in a run.
type Fault struct {
	// Name by which it is chosen.
	Name string
	// Summary is a line for the command's help.
	Summary string
	// NeedsWorker is set when it happens to a worker, NeedsPeers when it takes more than one control-plane host.
	NeedsWorker, NeedsPeers bool
	// WholeWorld is set when it happens to all clusters of a World.
	WholeWorld bool
	// Variables of the template that the fault needs.
	Variables map[string]string
	// Inspect changes what the inspection of a host finds, before there is any cluster. Who makes a World for several runs has to put it into
	// WorldOptions.Inspect, for the hosts of this run.
	Inspect func(host *bmov1alpha1.BareMetalHost, hardware *bmov1alpha1.HardwareDetails)
	// Prepare changes what the user has brought, before Inject.
	Prepare func(ctx context.Context, scene *FaultScene) error
	// Inject sets the fault up before the cluster is applied. What has to wait for a moment of the run is left to
	// FaultScene.Later.
	Inject func(scene *FaultScene)
	// Verify checks that the fault has done no harm: on an installed cluster, or once it is reported.
	Verify func(ctx context.Context, scene *FaultScene) error
	// Report is set for a fault from which a cluster does not recover by itself: all the texts that it returns must appear
	// in the output of clusterctl describe cluster.
	Report func(scene *FaultScene) []string
}

// Faults returns every fault, the ones that a cluster recovers from first.
func Faults() []Fault { return slices.Concat(recoveringFaults(), reportedFaults()) }

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

// FaultScene is what a fault has to work with.
type FaultScene struct {
	// World is where it happens.
	World *World
	// Cluster that will be applied right after Inject.
	Cluster types.NamespacedName
	// Speed divides simulated times.
	Speed float64

	ctx    context.Context
	printf func(format string, args ...any)
	later  sync.WaitGroup

	mu     sync.Mutex
	errs   []error
	victim types.NamespacedName
}

// Install is the name of the cluster's ClusterDeployment and AgentClusterInstall, which is that of its control plane.
func (s *FaultScene) Install() types.NamespacedName { return InstallKey(s.Cluster) }

// Later does something in the background; its error fails the run.
func (s *FaultScene) Later(do func(ctx context.Context) error) {
	s.later.Go(func() {
		if err := do(s.ctx); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, err)
		}
	})
}

// finish waits for everything that was left for later.
func (s *FaultScene) finish() error {
	s.later.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// Victim is the BareMetalHost that the fault has hit.
func (s *FaultScene) Victim() types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.victim
}

// isOf says whether a host is consumed by a control-plane Machine, or by a worker.
func (s *FaultScene) isOf(host *bmov1alpha1.BareMetalHost, controlPlane bool) bool {
	ref := host.Spec.ConsumerRef
	return ref != nil && host.Namespace == s.Cluster.Namespace && strings.HasPrefix(ref.Name, s.Cluster.Name+"-") &&
		strings.HasPrefix(ref.Name, s.Cluster.Name+controlPlaneSuffix) == controlPlane
}

// hit makes a host the victim if there is none yet, and says whether it is the victim.
func (s *FaultScene) hit(host *bmov1alpha1.BareMetalHost) (victim, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(host)
	first = s.victim == types.NamespacedName{}
	if first {
		s.victim = key
	}
	return s.victim == key, first
}

// OnFirstHost calls do for the first host that a control-plane Machine, or a worker, consumes: before it is provisioned.
func (s *FaultScene) OnFirstHost(controlPlane bool, do func(host types.NamespacedName)) {
	s.World.Watch.OnChange(func(object client.Object) {
		host, ok := object.(*bmov1alpha1.BareMetalHost)
		if !ok || !s.isOf(host, controlPlane) {
			return
		}
		if _, first := s.hit(host); first {
			s.printf("fault: BareMetalHost %s is chosen", host.Name)
			do(client.ObjectKeyFromObject(host))
		}
	})
}

// awaitPhase returns when the installation is in one of the phases.
func (s *FaultScene) awaitPhase(ctx context.Context, phases ...string) error {
	return s.await(ctx, "the installation to be "+strings.Join(phases, " or "), func(ctx context.Context) (string, error) {
		controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
		if err := s.World.Watch.Get(ctx, s.Install(), controlPlane); err != nil {
			return "there is no control plane", client.IgnoreNotFound(err)
		}
		if slices.Contains(phases, controlPlane.Status.Install.Phase) {
			return "", nil
		}
		return "it is " + controlPlane.Status.Install.Phase, nil
	})
}

func (s *FaultScene) await(ctx context.Context, what string, check Check) error {
	return s.World.Watch.AwaitIn(ctx, s.Cluster.Namespace, max(installTimeout, scaled(installTimeout, s.Speed)), what, check)
}

// infraEnv returns an InfraEnv that machines can boot from.
func (s *FaultScene) infraEnv(ctx context.Context) (types.NamespacedName, error) {
	list := &assisted.InfraEnvList{}
	if err := s.World.Client.List(ctx, list, client.InNamespace(s.Cluster.Namespace)); err != nil {
		return types.NamespacedName{}, fmt.Errorf("cannot list the InfraEnvs: %w", err)
	}
	if len(list.Items) == 0 {
		return types.NamespacedName{}, errors.New("there is no InfraEnv yet")
	}
	return client.ObjectKeyFromObject(&list.Items[0]), nil
}

// scaled is a simulated time in real time.
func (s *FaultScene) scaled(d time.Duration) time.Duration { return scaled(d, s.Speed) }
