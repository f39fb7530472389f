// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload/workloadtest"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// The releases of the world: the one that is installed, newer ones of the same minor version, and what follows them until OpenShift 5.
var (
	releaseInstalled = upgrade.Release{
		Version: "4.20.4", Image: digestImage("4"), KubeletVersion: kubelet, OSImage: "CoreOS 420.4", Signed: true,
		Gates: map[string]string{"ack-4.20-removals-in-4.21": "APIs are gone in 4.21"},
	}
	releasePatch = upgrade.Release{
		Version: "4.20.8", Image: digestImage("8"), KubeletVersion: "v1.33.6", OSImage: "CoreOS 420.8", Signed: true,
		Gates: releaseInstalled.Gates,
	}
	releaseMinor = upgrade.Release{
		Version: "4.21.2", Image: digestImage("2"), KubeletVersion: "v1.34.3", OSImage: "CoreOS 421.2", Signed: true,
	}
	releaseLast = upgrade.Release{
		Version: "4.22.3", Image: digestImage("3"), KubeletVersion: "v1.35.2", OSImage: "CoreOS 422.3", Signed: true,
		Gates: map[string]string{"ack-4.22-removals-in-5.0": "APIs are gone in 5.0"},
	}
	releaseFive = upgrade.Release{
		Version: "5.0.1", Image: digestImage("5"), KubeletVersion: "v1.36.3", OSImage: "CoreOS 500.1", Signed: true,
	}
	releaseUnsigned = upgrade.Release{
		Version: "4.20.9", Image: digestImage("9"), KubeletVersion: "v1.33.7", OSImage: "CoreOS 420.9",
	}
	releaseRisky = upgrade.Release{
		Version: "4.20.7", Image: digestImage("7"), KubeletVersion: "v1.33.5", OSImage: "CoreOS 420.7", Signed: true,
	}
)

func digestImage(digit string) string {
	return "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat(digit, 64)
}

func worldCatalogue() upgrade.Catalogue {
	return upgrade.Catalogue{
		Releases: []upgrade.Release{
			releaseInstalled, releasePatch, releaseMinor, releaseLast, releaseFive, releaseUnsigned, releaseRisky,
		},
		Edges: []upgrade.Edge{
			{From: "4.20.4", To: "4.20.8"}, {From: "4.20.4", To: "4.21.2"}, {From: "4.20.8", To: "4.21.2"},
			{From: "4.21.2", To: "4.22.3"}, {From: "4.22.3", To: "5.0.1"},
			{From: "4.20.4", To: "4.20.7", Risks: []upgrade.Risk{
				{Name: "DisksAreEaten", Message: "disks are eaten", URL: "https://example.com/disks", Recommended: metav1.ConditionFalse},
			}},
		},
	}
}

// worldReleases are the version operator and the machine-config operator of the installed cluster.
type worldReleases struct {
	// Health is what the operators say beside their release.
	*workloadtest.Health

	w     *world
	model *upgrade.Cluster
	// version is the ClusterVersion; acks are what is acknowledged, paused the pools that are.
	version configv1.ClusterVersion
	acks    map[string]string
	paused  map[string]bool
	// unread is why gates cannot be read; nil when they can.
	unread error
	// writes counts what the manager has written that was not there already, to the ClusterVersion and to what is acknowledged.
	writes   int
	cordoned map[string]bool
	// away are the hosts that restart.
	away map[string]bool
}

var _ workload.Upgrades = &worldReleases{}

// upgradable is a world with an available cluster of three hosts whose operators upgrade it.
func upgradable(t *testing.T) *world {
	t.Helper()
	w := livingWorld(t, 3)
	started := metav1.NewTime(w.now.Add(-time.Hour)).Rfc3339Copy()
	w.releases = &worldReleases{
		Health: &w.api.Health, w: w, acks: map[string]string{}, paused: map[string]bool{}, cordoned: map[string]bool{}, away: map[string]bool{},
		model: upgrade.New(worldCatalogue(), upgrade.Options{Restart: 3 * time.Minute}, releaseInstalled, []configv1.UpdateHistory{{
			State: configv1.CompletedUpdate, StartedTime: started, CompletionTime: &started, Version: releaseInstalled.Version,
			Image: releaseInstalled.Image, Verified: true,
		}}, append(workload.OperatorNames(), "network", "machine-config")),
	}
	w.installed.cordoned = w.releases.cordoned
	w.releases.version.Name = "version"
	w.releases.version.Spec = configv1.ClusterVersionSpec{ClusterID: clusterID, Channel: "stable-4.21"}
	w.releases.version.Generation = 1
	w.r.Upgrades, w.r.Health = w.releases, w.releases
	w.releases.tick()
	w.live(nil)
	return w
}

// Version is that of the model, unless nothing is heard of the cluster.
func (u *worldReleases) Version(context.Context, client.ObjectKey, workload.Subscriber) (*workload.ClusterVersion, error) {
	if u.w.installed.unreachable {
		return nil, nil
	}
	return workload.VersionOf(&u.version), nil
}

// Updates is what the model says of the pool of the control plane.
func (u *worldReleases) Updates(context.Context, client.ObjectKey, workload.Subscriber) (*workload.Updates, error) {
	for _, p := range u.model.Pools() {
		if p.Name != upgrade.Master {
			continue
		}
		pool := &machineconfigv1.MachineConfigPool{}
		pool.Spec.Paused, pool.Spec.Configuration.Name, pool.Status.Configuration.Name = u.paused[p.Name], p.Target, p.Current
		pool.Status.MachineCount, pool.Status.UpdatedMachineCount = int32(p.Machines), int32(p.Updated)
		pool.Status.UnavailableMachineCount = int32(p.Unavailable)
		condition := func(kind machineconfigv1.MachineConfigPoolConditionType, is bool, message string) {
			pool.Status.Conditions = append(pool.Status.Conditions, machineconfigv1.MachineConfigPoolCondition{
				Type: kind, Status: corev1.ConditionStatus(conditions.BoolToStatus(is)), Message: message,
			})
		}
		condition(machineconfigv1.MachineConfigPoolUpdating, p.IsUpdating, p.UpdatingMessage)
		condition(machineconfigv1.MachineConfigPoolDegraded, p.Failure != "", p.Failure)
		return workload.UpdatesOf(pool), nil
	}
	return nil, nil
}

// ChangeVersion lets an API server apply the JSON patch that the manager sends.
func (u *worldReleases) ChangeVersion(
	ctx context.Context, cluster client.ObjectKey, resourceVersion string, change workload.VersionChange,
) (written bool, err error) {
	err = u.w.installed.call("change the release", func() error {
		if resourceVersion != u.version.ResourceVersion {
			return nil
		}
		scheme := runtime.NewScheme()
		u.w.must(configv1.Install(scheme))
		remote := fake.NewClientBuilder().WithScheme(scheme).WithObjects(u.version.DeepCopy()).Build()
		api := workload.Cached{Cache: clustercache.NewFakeClusterCache(remote, cluster)}
		if written, err = api.ChangeVersion(ctx, cluster, resourceVersion, change); err != nil {
			return err
		}
		after := &configv1.ClusterVersion{}
		u.w.must(remote.Get(ctx, client.ObjectKeyFromObject(&u.version), after))
		if !equality.Semantic.DeepEqual(after.Spec, u.version.Spec) {
			u.writes++
			u.version.Spec = after.Spec
			u.changed()
		}
		return nil
	})
	return written, err
}

// withdraw is somebody's oc adm upgrade --clear.
func (u *worldReleases) withdraw() {
	u.version.Spec.DesiredUpdate = nil
	u.changed()
}

// requestOutOfBand is somebody else's oc adm upgrade.
func (u *worldReleases) requestOutOfBand(r upgrade.Release) {
	u.version.Spec.DesiredUpdate = &configv1.Update{Version: r.Version, Image: r.Image}
	u.changed()
}

// changed is what an API server does with a spec that has changed.
func (u *worldReleases) changed() {
	u.version.Generation++
	u.renewed()
}

func (u *worldReleases) renewed() {
	number, _ := strconv.Atoi(u.version.ResourceVersion)
	u.version.ResourceVersion = strconv.Itoa(number + 1)
}

// Gates are those of the model's release.
func (u *worldReleases) Gates(context.Context, client.ObjectKey) ([]workload.Gate, error) {
	if u.unread != nil {
		return nil, u.unread
	}
	var gates []workload.Gate
	for key, text := range u.model.Gates() {
		gates = append(gates, workload.Gate{Key: key, Text: text, Acknowledged: u.acks[key] == "true"})
	}
	return gates, nil
}

// Acknowledge answers gates.
func (u *worldReleases) Acknowledge(_ context.Context, _ client.ObjectKey, keys []string) error {
	return u.w.installed.call("acknowledge", func() error {
		before := len(u.acks)
		for _, key := range keys {
			u.acks[key] = "true"
		}
		if len(u.acks) > before {
			u.writes++
		}
		return nil
	})
}

// tick lets the operators look at the cluster, and its hosts do what they are told.
func (u *worldReleases) tick() {
	w := u.w
	in := upgrade.Input{
		API: !w.installed.unreachable && w.installed.model.Quorum(), Spec: u.version.Spec, Generation: u.version.Generation,
		Acks: maps.Clone(u.acks), Paused: u.paused, Busy: map[string]bool{},
	}
	report, err := w.installed.EtcdOperator(context.Background(), client.ObjectKey{}, workload.Subscriber{})
	w.must(err)
	in.Busy[workload.OperatorEtcd] = report != nil && !report.Stable()
	for _, host := range w.installed.list() {
		in.Hosts = append(in.Hosts, upgrade.Host{
			Name: host.Name, Role: upgrade.Master, Disk: host.Disk, Running: host.Running || u.away[host.Name], Node: host.Node,
			Ready: host.Ready && host.Running, Cordoned: u.cordoned[host.Name], Drained: u.cordoned[host.Name],
			Held: in.Busy[workload.OperatorEtcd],
		})
	}
	u.model.Tick(w.now, in)
	u.restartHosts()
	u.tellNodes()
	u.tellOperators()
	if status := u.model.Status(); !equality.Semantic.DeepEqual(u.version.Status, status) {
		u.version.Status = status
		u.renewed()
	}
}

// restartHosts cordons the hosts that get another release, stops them, and starts them again.
func (u *worldReleases) restartHosts() {
	for name, host := range u.w.installed.hosts {
		told := u.model.Machine(name)
		if told.Drains {
			u.cordoned[name] = true
		}
		if told.Uncordons {
			delete(u.cordoned, name)
		}
		switch {
		case told.Away && host.Running:
			host.Running, host.Ready, u.away[name] = false, false, true
		case !told.Away && u.away[name]:
			host.Running, host.Ready = true, host.Node
			delete(u.away, name)
		}
	}
}

// tellNodes makes Cluster API core tell the Machines which kubelets run.
func (u *worldReleases) tellNodes() {
	for _, m := range u.w.machines() {
		host := u.w.installed.hosts[m.Name]
		if !m.Status.NodeRef.IsDefined() || m.Status.NodeInfo == nil || host == nil {
			continue
		}
		runs := u.model.Boot(m.Name, upgrade.Master, host.Disk).KubeletVersion
		if m.Status.NodeInfo.KubeletVersion == runs {
			continue
		}
		m.Status.NodeInfo.KubeletVersion = runs
		u.w.must(u.w.client.Status().Update(context.Background(), &m))
	}
}

// tellOperators makes the operators of the control plane say what they do.
func (u *worldReleases) tellOperators() {
	if u.w.api.Reported == nil {
		return
	}
	for _, told := range u.model.Operators() {
		if operator, ok := u.w.api.Reported[told.Name]; ok {
			operator.Progressing.Status, operator.Progressing.Message = configv1.ConditionFalse, told.Progressing
			if told.Progressing != "" {
				operator.Progressing.Status = configv1.ConditionTrue
			}
			operator.Degraded.Status, operator.Degraded.Message = configv1.ConditionFalse, told.Degraded
			if told.Degraded != "" {
				operator.Degraded.Status = configv1.ConditionTrue
			}
			u.w.api.Reported[told.Name] = operator
		}
	}
}

// wantRelease is what a user sets.
func (w *world) wantRelease(r upgrade.Release) {
	w.t.Helper()
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.DistributionVersion, s.Version = r.Version, r.KubeletVersion
	})
}

// upgraded reports whether the cluster runs a release, and every Machine is up to date.
func (w *world) upgraded(r upgrade.Release) func() bool {
	return func() bool {
		cp := w.controlPlane()
		if cp.Status.DistributionVersion != r.Version || !w.whole() || conditions.IsTrue(cp, controlplanev1.UpgradingCondition) {
			return false
		}
		for _, m := range w.machines() {
			if m.Spec.Version != cp.Spec.Version || !conditions.IsTrue(&m, clusterv1.MachineUpToDateCondition) {
				return false
			}
		}
		return conditions.IsFalse(cp, controlplanev1.RollingOutCondition)
	}
}

// upgradeSummary is one line of the story of an upgrade. A host that is cordoned has brackets, one that restarts parentheses.
func (w *world) upgradeSummary() string {
	cp := w.controlPlane()
	upgrading := conditions.Get(cp, controlplanev1.UpgradingCondition)
	if upgrading == nil {
		return "nothing is known"
	}
	s := fmt.Sprintf("%s %s: %s\n  release %s, %s", upgrading.Status, upgrading.Reason, strings.ReplaceAll(upgrading.Message, "\n", "\n    "),
		cp.Status.DistributionVersion, conditions.GetReason(cp, controlplanev1.VersionsMatchCondition))
	if progress := cp.Status.Upgrade; progress.Version != "" {
		s += " (to " + progress.Version
		if progress.ProgressPercentage != nil {
			s += fmt.Sprintf(", %d%%", *progress.ProgressPercentage)
		}
		s += ")"
	}
	var hosts []string
	for _, m := range w.machines() {
		name := m.Name
		switch {
		case w.releases.away[name]:
			name = "(" + name + ")"
		case w.releases.cordoned[name]:
			name = "[" + name + "]"
		}
		if m.Status.NodeInfo != nil {
			hosts = append(hosts, fmt.Sprintf("%s %s of %s, %s", name, m.Status.NodeInfo.KubeletVersion, m.Spec.Version,
				conditions.GetReason(&m, clusterv1.MachineUpToDateCondition)))
		}
	}
	return s + "\n  " + strings.Join(hosts, "; ")
}
