// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// StatusVersions counts the versions of Machines, older ones first and plain versions before those with build metadata; Cluster API refuses
// any other order and what is no semantic version (CONTRACT CP-10), which is therefore left out.
func StatusVersions(machines []*clusterv1.Machine) []clusterv1.StatusVersion {
	counts := map[string]int32{}
	parsed := map[string]semver.Version{}
	for _, m := range machines {
		version := view.MachineVersion(m)
		v, err := semver.ParseTolerant(version)
		if err != nil {
			continue
		}
		counts[version]++
		parsed[version] = v
	}
	if len(counts) == 0 {
		return nil
	}
	versions := make([]clusterv1.StatusVersion, 0, len(counts))
	for version, n := range counts {
		versions = append(versions, clusterv1.StatusVersion{Version: version, Replicas: n})
	}
	sort.Slice(versions, func(i, j int) bool {
		a, b := versions[i].Version, versions[j].Version
		return cmp.Or(parsed[a].Compare(parsed[b]), slices.CompareFunc(parsed[a].Build, parsed[b].Build, compareBuild), cmp.Compare(a, b)) < 0
	})
	return versions
}

// VersionCheck compares the versions that a user asks for with the release and with what the Nodes run (DESIGN D9).
type VersionCheck struct {
	// Version and Release are spec.version and spec.distributionVersion of the control plane.
	Version, Release string
	// Topology is the name of the Cluster when Cluster API sets all versions from its topology, and empty when users set them.
	Topology string
	// Resolved is what the registry said of the release image; empty while that is not known.
	Resolved controlplanev1.ReleaseStatus
	// Running is the release that the cluster runs, when somebody has brought it to a newer one than Release; else empty.
	Running string
	// Upgrading: the Nodes are about to get the version of the release.
	Upgrading bool
	// ControlPlane are the Machines of the control plane, the oldest first, and Workers all others, in no order.
	ControlPlane, Workers []*clusterv1.Machine
}

// Problem says what does not match, and the value to set. Without a problem, known tells whether a Node has confirmed the version.
func (c VersionCheck) Problem() (problem string, known bool) {
	switch {
	case c.Running != "":
		return c.followProblem(), true
	case c.Upgrading:
		return c.releaseProblem(), true
	}
	index := slices.IndexFunc(c.ControlPlane, func(m *clusterv1.Machine) bool { return view.KubeletVersion(m) != "" })
	if index < 0 {
		return c.releaseProblem(), false
	}
	first := c.ControlPlane[index]
	if kubelet := view.KubeletVersion(first); kubelet != c.Version {
		return fmt.Sprintf("The Node of Machine %s runs %s: %s", first.Name, kubelet, c.remedy(kubelet)), true
	}
	if worker := c.differentWorker(); worker != nil {
		return fmt.Sprintf("The Node of worker Machine %s runs %s and its version is %q, so that Cluster API takes it for upgrading: %s",
			worker.Name, view.KubeletVersion(worker), worker.Spec.Version, c.workerRemedy(worker)), true
	}
	return "", true
}

// followProblem says how the control plane follows a cluster that somebody else has upgraded (DESIGN D30).
func (c VersionCheck) followProblem() string {
	newest := c.Version
	if versions := StatusVersions(c.ControlPlane); len(versions) > 0 {
		newest = versions[len(versions)-1].Version
	}
	where := fmt.Sprintf("spec.distributionVersion to %s and spec.version to %s", c.Running, newest)
	if c.Topology != "" {
		where = fmt.Sprintf(
			"spec.topology.version of Cluster %s to %s and its variable of the release to %s; while workers have another version, "+
				"Cluster API takes that only with annotation %s on the Cluster",
			c.Topology,
			newest,
			c.Running,
			clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation,
		)
	}
	return fmt.Sprintf("The cluster runs release %s, and spec.distributionVersion is %s: set %s",
		c.Running, c.Release, where)
}

// remedy says where the version of all Machines is set. Cluster API takes a worker whose Node differs from its MachineDeployment for
// upgrading and changes no version of the topology until it has ended, which it never does (CONTRACT CP-72).
func (c VersionCheck) remedy(version string) string {
	switch {
	case c.Topology == "":
		return fmt.Sprintf("set spec.version, and the version of MachineDeployments, to %s", version)
	case c.differentWorker() == nil:
		return fmt.Sprintf("set spec.topology.version of Cluster %s to %s", c.Topology, version)
	default:
		return fmt.Sprintf("scale the workers to 0, set spec.topology.version of Cluster %s to %s, and scale them up again", c.Topology, version)
	}
}

// workerRemedy says how a worker comes to the version of its Node. In a topology, Cluster API gives the version to the MachineDeployment
// when the control plane has it.
func (c VersionCheck) workerRemedy(worker *clusterv1.Machine) string {
	switch kubelet := view.KubeletVersion(worker); {
	case c.Topology == "":
		return "set the version of its MachineDeployment to " + kubelet
	case kubelet == c.Version:
		return fmt.Sprintf("nothing is to be set; condition TopologyReconciled of Cluster %s says when its MachineDeployment gets that version",
			c.Topology)
	default:
		return fmt.Sprintf("update its Node to %s", c.Version)
	}
}

// differentWorker is the oldest worker whose Node runs another version than its Machine has; nil when there is none. Only those are sorted:
// a cluster may have thousands of workers, and mostly none of them differs.
func (c VersionCheck) differentWorker() *clusterv1.Machine {
	var different []*clusterv1.Machine
	for _, m := range c.Workers {
		if kubelet := view.KubeletVersion(m); kubelet != "" && kubelet != m.Spec.Version {
			different = append(different, m)
		}
	}
	return collections.FromMachines(different...).Oldest()
}

// releaseProblem compares with what the registry said of the release. While that is not known it compares minor versions, where the
// release's own tells that of its Kubernetes; versions that cannot be parsed are not judged.
func (c VersionCheck) releaseProblem() string {
	if c.Resolved.KubernetesVersion != "" {
		return c.resolvedProblem()
	}
	minor, known := kubernetesMinor(c.Release)
	version, err := semver.ParseTolerant(c.Version)
	if !known || err != nil || version.Minor == minor {
		return ""
	}
	where := "spec.version"
	if c.Topology != "" {
		where = "spec.topology.version of Cluster " + c.Topology
	}
	return fmt.Sprintf("Release %s has Kubernetes 1.%d, not %s: set %s to the version of its kubelets, which begins with v1.%d.",
		c.Release, minor, c.Version, where, minor)
}

// resolvedProblem compares with the release image. Kubelets may add build metadata to the version, which an image does not tell.
func (c VersionCheck) resolvedProblem() string {
	if c.Resolved.Version != c.Release {
		return fmt.Sprintf(
			"Image %s is release %s, but spec.distributionVersion is %s: they must be the same release", c.Resolved.Image, c.Resolved.Version,
			c.Release,
		)
	}
	version, _, _ := strings.Cut(c.Version, "+")
	if version == c.Resolved.KubernetesVersion {
		return ""
	}
	return fmt.Sprintf(
		"Release %s has Kubernetes %s, not %s: %s", c.Release, c.Resolved.KubernetesVersion, c.Version, c.remedy(c.Resolved.KubernetesVersion),
	)
}

// compareBuild orders two identifiers of build metadata as Cluster API does: numbers by value, and before everything else. Others have no
// order there; any that is always the same will do.
func compareBuild(a, b string) int {
	numberA, errA := strconv.ParseUint(a, 10, 64)
	numberB, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(numberA, numberB)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	default:
		return cmp.Compare(a, b)
	}
}
