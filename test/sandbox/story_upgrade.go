// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
	"github.com/capi-openshift/agent-providers/test/sim/workload"
)

// minorChannel is the channel that offers MinorRelease.
const minorChannel = "stable-4.21"

// upgradeSteps bring a cluster to a newer release of its minor version, and to the next minor one. Then the cluster itself is asked for a
// release, as its administrator does with oc adm upgrade, and the user tells Cluster API so. A host that comes now would boot an image of
// the new release.
func (r *run) upgradeSteps() []step {
	var before map[string]server
	return []step{
		{"note the Machines and their Nodes", func(ctx context.Context) (err error) {
			before, err = r.servers(ctx)
			return err
		}},
		{"upgrade to " + PatchRelease.Version, func(ctx context.Context) error {
			if err := r.wantRelease(ctx, PatchRelease); err != nil {
				return err
			}
			return r.awaitRelease(ctx, PatchRelease)
		}},
		{"ask for " + MinorRelease.Version, func(ctx context.Context) error {
			if err := r.patchControlPlane(ctx, fmt.Sprintf(`{"spec":{"upgrade":{"channel":%q}}}`, minorChannel)); err != nil {
				return err
			}
			if err := r.wantRelease(ctx, MinorRelease); err != nil {
				return err
			}
			return r.await(ctx, settleTimeout, "the upgrade to wait for its acknowledgement",
				r.world.Upgrading(r.cluster, controlplanev1.UpgradeNotAcknowledgedReason))
		}},
		{"acknowledge and upgrade to " + MinorRelease.Version, func(ctx context.Context) error {
			if err := r.patchControlPlane(ctx, fmt.Sprintf(`{"spec":{"upgrade":{"acknowledgements":[%q]}}}`, Acknowledgement)); err != nil {
				return err
			}
			return r.awaitRelease(ctx, MinorRelease)
		}},
		{"let the cluster's administrator upgrade to " + LaterRelease.Version, func(ctx context.Context) error {
			if err := r.world.simulators.workload.RequestOutOfBand(ctx, InstallKey(r.cluster), LaterRelease.Version, false); err != nil {
				return err
			}
			return r.await(ctx, installTimeout, "the control plane to tell which versions to set",
				r.world.Outran(r.cluster, LaterRelease))
		}},
		{"set the versions that the cluster has", func(ctx context.Context) error {
			if err := r.wantRelease(ctx, LaterRelease); err != nil {
				return err
			}
			return r.awaitRelease(ctx, LaterRelease)
		}},
		{"ask for a worker, whose host boots the image of " + minorOSImage, r.askForWorker},
		{"verify the upgrades", func(ctx context.Context) error { return r.verifyUpgrades(ctx, before) }},
	}
}

func (r *run) patchControlPlane(ctx context.Context, patch string) error {
	_, err := r.world.Kubectl(ctx, "patch", "openshiftassistedcontrolplane", InstallKey(r.cluster).Name, "-n", r.cluster.Namespace,
		"--type=merge", "-p", patch)
	return err
}

// wantRelease is what a user sets: both versions of the control plane in one edit, and the version of the workers.
func (r *run) wantRelease(ctx context.Context, release upgrade.Release) error {
	err := r.patchControlPlane(ctx, fmt.Sprintf(`{"spec":{"distributionVersion":%q,"version":%q}}`, release.Version, release.KubeletVersion))
	if err != nil || !r.request.HasWorkers() {
		return err
	}
	deployment, err := r.world.machineDeploymentOf(ctx, r.cluster)
	if err != nil {
		return err
	}
	_, err = r.world.Kubectl(ctx, "patch", "machinedeployment", deployment.Name, "-n", r.cluster.Namespace, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, release.KubeletVersion))
	return err
}

// awaitRelease waits until the cluster runs a release, and all its Machines follow.
func (r *run) awaitRelease(ctx context.Context, release upgrade.Release) error {
	timeout := r.slower(installTimeout)
	if err := r.world.AwaitCluster(ctx, r.cluster, timeout, "release "+release.Version, r.world.Runs(r.cluster, release)); err != nil {
		return err
	}
	return r.verifyControlPlane(ctx)
}

// Upgrading checks that the condition Upgrading of a control plane has a reason.
func (w *World) Upgrading(cluster types.NamespacedName, reason string) Check {
	return func(ctx context.Context) (string, error) {
		controlPlane, err := w.controlPlaneOf(ctx, cluster)
		if err != nil || conditions.GetReason(controlPlane, controlplanev1.UpgradingCondition) == reason {
			return "", err
		}
		return conditionText(controlPlane, controlplanev1.UpgradingCondition), nil
	}
}

// Outran checks that a cluster runs a release that its control plane does not ask for, and that the control plane tells its version.
func (w *World) Outran(cluster types.NamespacedName, release upgrade.Release) Check {
	return func(ctx context.Context) (string, error) {
		controlPlane, err := w.controlPlaneOf(ctx, cluster)
		if err != nil {
			return "", err
		}
		match := conditions.Get(controlPlane, controlplanev1.VersionsMatchCondition)
		if controlPlane.Status.DistributionVersion == release.Version && match != nil && match.Status == metav1.ConditionFalse &&
			strings.Contains(match.Message, release.Version) && strings.Contains(match.Message, release.KubeletVersion) {
			return "", nil
		}
		return fmt.Sprintf("the cluster runs %s: %s", controlPlane.Status.DistributionVersion,
			conditionText(controlPlane, controlplanev1.VersionsMatchCondition)), nil
	}
}

// Runs checks that a cluster was brought to a release completely, and that all its Machines have followed and are up to date.
func (w *World) Runs(cluster types.NamespacedName, release upgrade.Release) Check {
	return func(ctx context.Context) (string, error) {
		controlPlane, err := w.controlPlaneOf(ctx, cluster)
		if err != nil {
			return "", err
		}
		var missing []string
		if runs := controlPlane.Status.DistributionVersion; runs != release.Version {
			missing = append(missing, fmt.Sprintf("the cluster runs %s: %s", runs, conditionText(controlPlane, controlplanev1.UpgradingCondition)))
		}
		machines, err := w.Machines(ctx, cluster)
		if err != nil {
			return "", err
		}
		for i := range machines {
			m := &machines[i]
			if m.Spec.Version != release.KubeletVersion {
				missing = append(missing, fmt.Sprintf("Machine %s has version %s", m.Name, m.Spec.Version))
			}
			if why := notTrue(m, clusterv1.MachineUpToDateCondition); why != "" {
				missing = append(missing, fmt.Sprintf("Machine %s: %s", m.Name, why))
			}
		}
		return strings.Join(missing, "\n"), nil
	}
}

// server is what an upgrade leaves as it is: a Machine and the Node of its host.
type server struct {
	machine types.UID
	node    string
}

// servers returns every server of the cluster by the name of its Machine.
func (r *run) servers(ctx context.Context) (map[string]server, error) {
	machines, err := r.world.Machines(ctx, r.cluster)
	if err != nil {
		return nil, err
	}
	servers := make(map[string]server, len(machines))
	for i := range machines {
		servers[machines[i].Name] = server{machine: machines[i].UID, node: machines[i].Status.NodeRef.Name}
	}
	return servers, nil
}

// verifyUpgrades checks that every Machine kept its Node, and what was written to the ClusterVersion.
func (r *run) verifyUpgrades(ctx context.Context, before map[string]server) error {
	after, err := r.servers(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(before, after) {
		return fmt.Errorf("the Machines and Nodes of Cluster %s were %v before the upgrades, and are %v", r.cluster.Name, before, after)
	}
	return r.verifyRequests(PatchRelease.Version, MinorRelease.Version)
}

// versionWrite is an operation of a JSON patch of a ClusterVersion.
type versionWrite struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// tests reports whether an operation compares the version of the object.
func (w versionWrite) tests() bool { return w.Op == "test" && w.Path == "/metadata/resourceVersion" }

// setsChannel reports whether an operation sets the channel that the story asks for.
func (w versionWrite) setsChannel() bool {
	return w.Op == "add" && w.Path == "/spec/channel" && w.Value == minorChannel
}

// asks reports whether an operation asks for a release by version and image, and for nothing else: neither force nor architecture.
func (w versionWrite) asks() bool {
	value, _ := w.Value.(map[string]any)
	return w.Op == "add" && w.Path == "/spec/desiredUpdate" && slices.Equal(slices.Sorted(maps.Keys(value)), []string{"image", "version"})
}

// version is the release that an operation asks for.
func (w versionWrite) version() string {
	value, _ := w.Value.(map[string]any)
	return fmt.Sprint(value["version"])
}

// changesVersion reports whether a request of the control plane provider changes the spec of a ClusterVersion that exists.
func changesVersion(event *auditv1.Event) bool {
	ref := event.ObjectRef
	return ref != nil && ref.Resource == "clusterversions" && ref.Subresource == "" && event.Verb != "create" && event.RequestObject != nil &&
		event.UserAgent != workload.OutOfBand
}

// verifyRequests reads in the audit log of the installed cluster which releases the control plane provider asked it for: these, each once,
// and nothing else was written to the spec of its ClusterVersion.
func (r *run) verifyRequests(wanted ...string) error {
	var asked []string
	var problem error
	err := ReadAudit(r.world.simulators.workload.AuditLog(InstallKey(r.cluster)), func(event *auditv1.Event) {
		if !changesVersion(event) {
			return
		}
		var writes []versionWrite
		err := json.Unmarshal(event.RequestObject.Raw, &writes)
		known := err == nil && slices.ContainsFunc(writes, versionWrite.tests)
		for _, write := range writes {
			known = known && (write.tests() || write.setsChannel() || write.asks())
			if write.asks() {
				asked = append(asked, write.version())
			}
		}
		if !known {
			problem = fmt.Errorf("%s writes to the ClusterVersion by %s %s", event.User.Username, event.Verb, event.RequestObject.Raw)
		}
	})
	switch {
	case err != nil:
		return err
	case problem != nil:
		return problem
	case !slices.Equal(asked, wanted):
		return fmt.Errorf("the cluster was asked for the releases %v, and once for each of %v was wanted", asked, wanted)
	}
	return nil
}

// watchAPI begins to watch that the API of a cluster answers. Its workers restart in an upgrade, so that the Cluster is not Available for
// moments, and its control plane is all the time.
func (r *run) watchAPI(context.Context) error {
	r.guard = &guard{}
	r.world.Watch.OnChange(func(object client.Object) {
		controlPlane, ok := object.(*controlplanev1.OpenshiftAssistedControlPlane)
		if ok && client.ObjectKeyFromObject(controlPlane) == InstallKey(r.cluster) && controlPlane.DeletionTimestamp.IsZero() &&
			!conditions.IsTrue(controlPlane, controlplanev1.AvailableCondition) {
			r.guard.breaks(conditionText(controlPlane, controlplanev1.AvailableCondition))
		}
	})
	return nil
}
