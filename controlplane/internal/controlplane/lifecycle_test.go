// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/golden"
)

// maxSteps is far more than any lifecycle needs.
const maxSteps = 60

// run lets the controllers act one after the other until reached, and returns the story: what changed in which step.
func (w *world) run(order *rand.Rand, reached func() bool) string {
	w.t.Helper()
	controllers := []func(){func() { w.reconcile() }, w.machineSet, w.bootstrap, w.service, w.workload, w.core, w.departures, w.etcd}
	var story strings.Builder
	last := ""
	for step := 1; !reached(); step++ {
		if step > maxSteps {
			w.t.Fatalf("not reached after %d steps; the story so far:\n%s", maxSteps, story.String())
		}
		if order != nil {
			order.Shuffle(len(controllers), func(i, j int) { controllers[i], controllers[j] = controllers[j], controllers[i] })
		}
		for _, act := range controllers {
			act()
			w.checkInvariants()
		}
		w.now = w.now.Add(time.Minute)
		if s := w.summary(); s != last {
			fmt.Fprintf(&story, "step %d: %s\n", step, s)
			last = s
		}
	}
	return story.String()
}

// checkInvariants fails when the world is in a state that must never be.
func (w *world) checkInvariants() {
	w.t.Helper()
	cp := w.controlPlane()
	masters := 0
	for _, m := range w.machines() {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok && m.DeletionTimestamp.IsZero() {
			masters++
		}
	}
	if cp.Spec.Replicas != nil && masters > int(*cp.Spec.Replicas) {
		w.t.Fatalf("%d control-plane Machines for %d replicas", masters, *cp.Spec.Replicas)
	}
	if install := w.install(); install != nil && !install.Spec.HoldInstallation {
		if _, closed := assisted.DayOneAgents(install); !closed {
			w.t.Fatal("the installation is not held while day 1 is open")
		}
	}
}

func (w *world) available() bool {
	return conditions.IsTrue(w.controlPlane(), controlplanev1.AvailableCondition)
}

func (w *world) reason(condition string) string {
	return conditions.GetReason(w.controlPlane(), condition)
}

func compareStory(t *testing.T, story string) {
	t.Helper()
	golden.Compare(t, strings.ReplaceAll(t.Name(), "/", "_")+".golden", story)
}

func TestLifecycle(t *testing.T) {
	for name, size := range map[string]struct {
		replicas int32
		workers  int
	}{
		"single": {1, 1}, "compact": {3, 0}, "ha": {3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, size.replicas, size.workers)
			story := w.run(nil, w.available)
			compareStory(t, story)
			checkAvailable(t, w, int(size.replicas))
		})
		for seed := range int64(5) {
			t.Run(fmt.Sprintf("%s in random order %d", name, seed), func(t *testing.T) {
				w := newWorld(t, size.replicas, size.workers)
				w.run(rand.New(rand.NewSource(seed)), w.available)
				checkAvailable(t, w, int(size.replicas))
			})
		}
	}
}

// checkAvailable checks what an available control plane has to show.
func checkAvailable(t *testing.T, w *world, replicas int) {
	t.Helper()
	cp := w.controlPlane()
	for condition, reason := range map[string]string{
		controlplanev1.InstalledCondition:           controlplanev1.InstalledReason,
		controlplanev1.InitializedCondition:         controlplanev1.InitializedReason,
		controlplanev1.KubeconfigAvailableCondition: controlplanev1.KubeconfigAvailableReason,
		controlplanev1.VersionsMatchCondition:       controlplanev1.VersionsMatchReason,
		controlplanev1.RollingOutCondition:          controlplanev1.NotRollingOutReason,
		controlplanev1.ScalingUpCondition:           controlplanev1.NotScalingUpReason,
		controlplanev1.DeletingCondition:            controlplanev1.NotDeletingReason,
		controlplanev1.EtcdClusterHealthyCondition:  controlplanev1.EtcdClusterHealthyReason,
		controlplanev1.RemediatingCondition:         controlplanev1.NotRemediatingReason,

		controlplanev1.ControlPlaneComponentsHealthyCondition: controlplanev1.ControlPlaneComponentsHealthyReason,
	} {
		if got := conditions.GetReason(cp, condition); got != reason {
			t.Errorf("condition %s is %s, want %s: %s", condition, got, reason, conditions.GetMessage(cp, condition))
		}
	}
	want := []clusterv1.StatusVersion{{Version: kubelet, Replicas: int32(replicas)}}
	if diff := cmp.Diff(want, cp.Status.Versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	secret := &corev1.Secret{}
	if err := w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "c-kubeconfig"}, secret); err != nil {
		t.Error(err)
	}
}

func TestSteadyStateWritesNothing(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.run(nil, w.available)
	w.reconcile()
	before := w.versions()
	w.reconcile()
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("a pass without a reason wrote (-before +after):\n%s", diff)
	}
}

// versions are the resource versions of all that the reconciler writes to.
func (w *world) versions() map[string]string {
	cp, install := w.controlPlane(), w.install()
	versions := map[string]string{"cp": cp.ResourceVersion, "install": install.ResourceVersion}
	for _, m := range w.machines() {
		versions[m.Name] = m.ResourceVersion
	}
	for _, a := range w.agents() {
		versions[a.Name] = a.ResourceVersion
	}
	return versions
}

func TestWorkerThatNeverBoots(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.unbootable["worker-1"] = true
	compareStory(t, w.run(nil, w.available))
}

func testDeletion(t *testing.T) {
	for _, stage := range []int{0, 1, 2, 3, 4} {
		t.Run(fmt.Sprintf("at stage %d", stage), func(t *testing.T) {
			w := newWorld(t, 3, 2)
			w.run(nil, func() bool { return w.stage >= stage && w.install() != nil })
			w.must(w.client.Delete(context.Background(), w.controlPlane()))
			w.reconcile()
			if got := w.reason(controlplanev1.DeletingCondition); got != controlplanev1.WaitingForWorkersDeletionReason {
				t.Errorf("Deleting is %s while workers exist", got)
			}
			for _, m := range w.machines() {
				if strings.HasPrefix(m.Name, "worker") {
					w.must(client.IgnoreNotFound(w.client.Delete(context.Background(), &m)))
				}
			}
			cluster := &clusterv1.Cluster{}
			w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: clusterName}, cluster))
			w.must(w.client.Delete(context.Background(), cluster))
			for range 6 {
				w.reconcile()
			}
			sets := &hivev1.ClusterImageSetList{}
			w.must(w.client.List(context.Background(), sets))
			if cp := w.controlPlane(); cp.Name != "" || len(w.machines()) > 0 || w.install() != nil || len(sets.Items) > 0 {
				t.Errorf(
					"left: control plane %q, %d Machines, AgentClusterInstall %v, %d ClusterImageSets", cp.Name, len(w.machines()), w.install() != nil,
					len(sets.Items),
				)
			}
		})
	}
}

func TestRetry(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.failAt = 3
	story := w.run(nil, func() bool {
		return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationFailedReason
	})
	cp := w.controlPlane()
	cp.Annotations = map[string]string{controlplanev1.RetryInstallationAnnotation: ""}
	w.must(w.client.Update(context.Background(), cp))
	w.failAt = 0
	w.reconcile()
	story += "retry asked: " + w.summary() + "\n"
	w.reconcile()
	story += "cleaned up: " + w.summary() + "\n"
	w.service() // It has seen that the cluster is gone.
	// The hosts are power-cycled.
	w.must(w.client.DeleteAllOf(context.Background(), &assisted.Agent{}, client.InNamespace(namespace)))
	story += w.run(nil, w.available)
	compareStory(t, story)
	if got := w.controlPlane().Annotations; got[controlplanev1.InstallAttemptAnnotation] != "2" {
		t.Errorf("annotations are %v", got)
	}
}

func TestWaitsForCRDs(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.gate.missing = []string{assisted.CRDAgents, metal3.CRDMachines}
	for range 3 {
		w.reconcile()
	}
	message := conditions.GetMessage(w.controlPlane(), controlplanev1.InstalledCondition)
	if w.reason(controlplanev1.InstalledCondition) != controlplanev1.WaitingForCRDsReason ||
		!strings.Contains(message, metal3.CRDMachines+", "+assisted.CRDAgents) {
		t.Errorf("message is %q", message)
	}
	if len(w.machines()) > 0 {
		t.Error("Machines were created")
	}
	w.gate.missing = nil
	w.run(nil, w.available)
}

// TestInfrastructureCRDIsGone: nothing fails on each pass because the kind of infrastructure machines is not served any more.
func TestInfrastructureCRDIsGone(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	w.must(w.client.Delete(context.Background(), crd("metal3machines")))
	w.reconcile()
	w.gate.missing = []string{metal3.CRDMachines}
	w.reconcile()
	if !w.available() {
		t.Error("a running cluster is not available any more")
	}
}

func TestNameConflict(t *testing.T) {
	w := newWorld(t, 3, 0)
	foreign := &hivev1.ClusterDeployment{}
	foreign.Namespace, foreign.Name = namespace, "cp"
	w.must(w.client.Create(context.Background(), foreign))
	for range 3 {
		w.reconcile()
	}
	if got := w.reason(controlplanev1.InstalledCondition); got != controlplanev1.NameConflictReason {
		t.Errorf("Installed is %s", got)
	}
	w.must(w.client.Delete(context.Background(), foreign))
	w.run(nil, w.available)
}

func testPaused(t *testing.T) {
	w := newWorld(t, 3, 0)
	pause := func(paused bool) {
		cp := w.controlPlane()
		delete(cp.Annotations, clusterv1.PausedAnnotation)
		if paused {
			cp.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}
		w.must(w.client.Update(context.Background(), cp))
		for range 3 {
			w.reconcile()
		}
	}
	pause(true)
	if w.install() != nil || len(w.machines()) > 0 {
		t.Error("a paused control plane was reconciled")
	}
	pause(false)
	w.run(nil, func() bool { return len(w.machines()) == 3 })
	pause(true)
	if got := w.reason(clusterv1.PausedCondition); got != clusterv1.PausedReason {
		t.Errorf("Paused is %s", got)
	}
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	before := w.versions()
	for range 3 {
		w.reconcile()
	}
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("the deletion of a paused control plane went on (-before +after):\n%s", diff)
	}
}
