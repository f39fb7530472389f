// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// connectionSettle is how long the control plane provider waits after the API of a cluster has begun to answer before it replaces a host
// that a health check gave up. It is the same at every speed.
const connectionSettle = 2 * time.Minute

// Story is what a user does with a cluster, most often with one that is installed, or what happens to it.
type Story struct {
	// Name by which it is chosen.
	Name string
	// Summary is a line for the command's help.
	Summary string
	// Hosts is how many hosts it needs besides those of the cluster.
	Hosts int
	// Upgrades says that it brings the cluster to releases that follow OpenShiftVersion.
	Upgrades bool
	// TokenLifetime is how long the tokens live at most that the cluster grants; zero is as long as was asked for.
	TokenLifetime time.Duration
	// GracePeriod is how long the control plane provider waits for a cluster to answer; zero is its default.
	GracePeriod time.Duration

	// prepare sets up what goes wrong, before the cluster is applied, and before are steps between that and the end of the installation.
	prepare func(*FaultScene)
	before  func(r *run) []step
	// steps are those after the installation.
	steps func(r *run) []step
	// watch begins to watch what has to stay as it is; nil watches that the Cluster stays Available.
	watch func(r *run, ctx context.Context) error
}

// Stories returns every story.
func Stories() []Story {
	return []Story{
		{
			Name: "scale", Summary: "the control plane grows from 3 to 5 hosts, and shrinks to 4 and to 3", Hosts: 2,
			steps: func(r *run) []step {
				return []step{r.scaleControlPlane(5), r.scaleControlPlane(4), r.scaleControlPlane(3)} //nolint:mnd // what the summary says
			},
		},
		{
			Name: "replace", Summary: "a control-plane Machine that is well is deleted with kubectl, and another takes its place", Hosts: 1,
			steps: func(r *run) []step { return []step{{"replace a control-plane host", r.replaceHost}} },
		},
		{
			Name: "remediate", Summary: "a control-plane host loses power for ever, its health check marks it, a spare host takes over", Hosts: 1,
			steps: func(r *run) []step { return []step{{"lose a control-plane host", r.loseHost}} },
		},
		{
			Name: "rollout", Summary: "all control-plane hosts are replaced, one after the other: first without a spare host, then with one",
			Hosts: 1, steps: func(r *run) []step { return []step{r.rollOut(0), r.rollOut(1)} },
		},
		{
			Name: "upgrade", Summary: "the cluster is upgraded to a newer release, to the next minor version, and once by its own administrator",
			steps: (*run).upgradeSteps, watch: (*run).watchAPI, Upgrades: true,
		},
		{
			Name:          "rotate",
			Summary:       "the credential of the cluster is renewed three times, its authority is rotated, and its ServiceAccount is deleted",
			TokenLifetime: rotatedLifetime, steps: (*run).rotateSteps, watch: (*run).watchCredential,
		},
		{
			Name: "retry",
			Summary: "a host does not register, the installation fails twice and is retried; then somebody deletes the AgentClusterInstall of " +
				"another one, again and again",
			GracePeriod: retryGrace, prepare: breakFirstHost, before: (*run).retrySteps, steps: (*run).lossSteps, watch: (*run).watchNothing,
		},
	}
}

func storyNamed(name string) (*Story, error) {
	var names []string
	for _, story := range Stories() {
		if story.Name == name {
			return &story, nil
		}
		names = append(names, story.Name)
	}
	return nil, fmt.Errorf("unknown story %q: choose one of %s", name, strings.Join(names, ", "))
}

// guard watches that a cluster stays as it is.
type guard struct {
	mu     sync.Mutex
	broken string
	// excused is until when something may be broken.
	excused time.Time
}

func (g *guard) breaks(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().After(g.excused) {
		g.broken = why
	}
}

// excuse lets things be broken from now on until it is called with zero.
func (g *guard) excuse(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.excused = time.Time{}
	if d > 0 {
		g.excused = time.Now().Add(d)
	}
}

// watchAvailable begins to watch a Cluster that is Available.
func (r *run) watchAvailable(context.Context) error {
	r.guard = &guard{}
	r.world.Watch.OnChange(func(object client.Object) {
		cluster, ok := object.(*clusterv1.Cluster)
		if !ok || client.ObjectKeyFromObject(cluster) != r.cluster || !cluster.DeletionTimestamp.IsZero() {
			return
		}
		if !conditions.IsTrue(cluster, clusterv1.ClusterAvailableCondition) {
			r.guard.breaks(conditionText(cluster, clusterv1.ClusterAvailableCondition))
		}
	})
	return nil
}

// watchNothing is for a cluster that is not installed for long.
func (r *run) watchNothing(context.Context) error {
	r.guard = &guard{}
	return nil
}

// verifyStory checks what has to be so whatever the story is: the cluster was Available all the time.
func (r *run) verifyStory(context.Context) error {
	r.guard.mu.Lock()
	defer r.guard.mu.Unlock()
	if r.guard.broken != "" {
		return fmt.Errorf("Cluster %s was not Available all the time: %s", r.cluster.Name, r.guard.broken)
	}
	return nil
}

// scaleControlPlane is the step that changes the number of control-plane hosts.
func (r *run) scaleControlPlane(hosts int) step {
	return step{fmt.Sprintf("scale to %d control-plane hosts", hosts), func(ctx context.Context) error {
		_, err := r.world.Kubectl(ctx, "scale", "openshiftassistedcontrolplane", InstallKey(r.cluster).Name, "-n", r.cluster.Namespace,
			fmt.Sprintf("--replicas=%d", hosts))
		if err != nil {
			return err
		}
		r.request.ControlPlane = hosts
		return r.verifyControlPlane(ctx)
	}}
}

// replaceHost deletes a Machine that is well.
func (r *run) replaceHost(ctx context.Context) error {
	machine := InstallKey(r.cluster).Name + "-1"
	before, err := r.world.MachineUIDs(ctx, r.cluster)
	if err != nil {
		return err
	}
	if _, err := r.world.Kubectl(ctx, "delete", "machine", machine, "-n", r.cluster.Namespace, "--wait=false"); err != nil {
		return err
	}
	if err := r.awaitReplaced(ctx, installTimeout, before[machine]); err != nil {
		return err
	}
	return r.verifyControlPlane(ctx)
}

// loseHost cuts the power of a host for ever, and waits until another has taken its place.
func (r *run) loseHost(ctx context.Context) error {
	machine := InstallKey(r.cluster).Name + "-1"
	before, err := r.world.MachineUIDs(ctx, r.cluster)
	if err != nil {
		return err
	}
	host, err := r.world.hostOf(ctx, r.cluster, machine)
	if err != nil {
		return err
	}
	// The template's 30 minutes are for servers that reboot.
	if _, err := r.world.Kubectl(ctx, "patch", "machinehealthcheck", InstallKey(r.cluster).Name, "-n", r.cluster.Namespace, "--type=merge",
		"-p", hurriedHealthCheck); err != nil {
		return err
	}
	r.narrator.printf("BareMetalHost %s of Machine %s loses its power for ever", host.Name, machine)
	r.world.Assisted.Faults().HostDies(host)
	// Metal3 takes no host that its administrator has marked, so that the dead one is not chosen again.
	if _, err := r.world.Kubectl(ctx, "annotate", "baremetalhost", host.Name, "-n", host.Namespace, "capm3.metal3.io/unhealthy="); err != nil {
		return err
	}
	if err := r.awaitReplaced(ctx, installTimeout+connectionSettle, before[machine]); err != nil {
		return err
	}
	if err := r.verifyControlPlane(ctx); err != nil {
		return err
	}
	_, err = r.world.Kubectl(ctx, "annotate", "baremetalhost", host.Name, "-n", host.Namespace, "capm3.metal3.io/unhealthy-")
	return err
}

// hurriedHealthCheck gives up a Machine whose Node has not been ready for some seconds.
const hurriedHealthCheck = `{"spec":{"checks":{"unhealthyNodeConditions":[{"type":"Ready","status":"Unknown","timeoutSeconds":5},` +
	`{"type":"Ready","status":"False","timeoutSeconds":5}]}}}`

// rollOut is the step that changes the Nodes' labels, and with them all control-plane hosts.
func (r *run) rollOut(maxSurge int) step {
	return step{fmt.Sprintf("replace all control-plane hosts, maxSurge %d", maxSurge), func(ctx context.Context) error {
		before, err := r.world.MachineUIDs(ctx, r.cluster)
		if err != nil {
			return err
		}
		change := fmt.Sprintf(`{"spec":{"rollout":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":%d}}},`+
			`"openshiftAssistedConfigSpec":{"nodeRegistration":{"labels":[{"key":"example.com/rollout","value":"surge-%[1]d"}]}}}}`, maxSurge)
		if _, err := r.world.Kubectl(ctx, "patch", "openshiftassistedcontrolplane", InstallKey(r.cluster).Name, "-n", r.cluster.Namespace,
			"--type=merge", "-p", change); err != nil {
			return err
		}
		var replaced []types.UID
		for name, uid := range before {
			if strings.HasPrefix(name, InstallKey(r.cluster).Name+"-") {
				replaced = append(replaced, uid)
			}
		}
		if err := r.awaitReplaced(ctx, time.Duration(len(replaced))*installTimeout, replaced...); err != nil {
			return err
		}
		return r.verifyControlPlane(ctx)
	}}
}

// hostOf is the BareMetalHost of a Machine.
func (w *World) hostOf(ctx context.Context, cluster types.NamespacedName, machine string) (types.NamespacedName, error) {
	chains, err := w.chains(ctx, cluster)
	if err != nil {
		return types.NamespacedName{}, err
	}
	for _, c := range chains {
		if c.machine.Name == machine {
			return client.ObjectKeyFromObject(c.host), nil
		}
	}
	return types.NamespacedName{}, fmt.Errorf("Cluster %s has no Machine %s", cluster, machine)
}

// awaitReplaced waits until Machines are gone.
func (r *run) awaitReplaced(ctx context.Context, timeout time.Duration, gone ...types.UID) error {
	return r.await(ctx, timeout, "the Machines to be gone", func(ctx context.Context) (string, error) {
		machines, err := r.world.MachineUIDs(ctx, r.cluster)
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(machines)) {
			if slices.Contains(gone, machines[name]) {
				return "Machine " + name + " exists", nil
			}
		}
		return "", nil
	})
}

// verifyControlPlane waits until the control plane has its hosts, each of which is a member of etcd that votes.
func (r *run) verifyControlPlane(ctx context.Context) error {
	if err := r.awaitMachines(ctx); err != nil {
		return err
	}
	voters := r.world.Voters(r.cluster, r.request.ControlPlaneReplicas())
	if err := r.await(ctx, settleTimeout, "the members of etcd", voters); err != nil {
		return err
	}
	return r.verify(ctx)
}

// LostQuorum reports whether the etcd of a Cluster was ever without a quorum since it was installed.
func (w *World) LostQuorum(cluster types.NamespacedName) bool {
	return w.simulators.workload.LostQuorum(InstallKey(cluster))
}

// Voters checks that as many members of etcd vote and serve as there are control-plane hosts, and that there are no others.
func (w *World) Voters(cluster types.NamespacedName, hosts int) Check {
	return func(context.Context) (string, error) {
		members := w.simulators.workload.Members(InstallKey(cluster))
		serving := slices.DeleteFunc(slices.Clone(members), func(m etcd.Member) bool { return m.Learner || !m.Healthy })
		if len(members) == hosts && len(serving) == hosts {
			return "", nil
		}
		return fmt.Sprintf("etcd has %d members, %d of them vote and serve, and there are %d control-plane hosts", len(members), len(serving),
			hosts), nil
	}
}
