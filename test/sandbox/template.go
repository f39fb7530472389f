// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capi-openshift/agent-providers/test/sim/upgrade"
)

// Topology is the shape of a cluster.
type Topology string

const (
	// HA is three control-plane hosts and workers.
	HA Topology = "ha"
	// Compact is three control-plane hosts that run workloads too.
	Compact Topology = "compact"
	// SNO is a single-node cluster; workers join after the installation.
	SNO Topology = "sno"
	// Four and Five are as many control-plane hosts, which releases since 4.18 allow, and a worker.
	Four Topology = "four"
	// Five: see Four.
	Five Topology = "five"
	// Arbiter is two control-plane hosts and an arbiter.
	Arbiter Topology = "arbiter"
	// Fencing is two control-plane hosts that power each other off.
	Fencing Topology = "fencing"
)

// Topologies returns every topology.
func Topologies() []Topology { return []Topology{HA, Compact, SNO, Four, Five, Arbiter, Fencing} }

// shape is what the templates do not say themselves.
type shape struct {
	template     string
	controlPlane int
	arbiters     int
	workers      int
	// noWorkers: the template has none.
	noWorkers bool
}

var shapes = map[Topology]shape{
	HA:      {template: "templates/cluster-template.yaml", controlPlane: 3, workers: 2},
	Four:    {template: "templates/cluster-template.yaml", controlPlane: 4, workers: 1},
	Five:    {template: "templates/cluster-template.yaml", controlPlane: 5, workers: 1},
	Compact: {template: "templates/cluster-template-compact.yaml", controlPlane: 3, noWorkers: true},
	SNO:     {template: "templates/cluster-template-sno.yaml", controlPlane: 1},
	Arbiter: {template: "templates/cluster-template-arbiter.yaml", controlPlane: 2, arbiters: 1, noWorkers: true},
	Fencing: {template: "templates/cluster-template-fencing.yaml", controlPlane: 2, noWorkers: true},
}

// ClusterRequest is a cluster that a user asks for.
type ClusterRequest struct {
	// Namespace and Name of the Cluster. The namespace and its inputs must exist; see World.CreateInputs.
	Namespace, Name string
	// Topology decides the template and the number of control-plane hosts.
	Topology Topology
	// Template is another template than the topology's: one of Flavors, or a path, absolute or relative to the repository's root.
	Template string
	// Workers is the number of worker Machines; always 0 where HasWorkers says so.
	Workers int
	// Address is the loopback address of the cluster's API, such as 127.10.1.5. Every cluster needs its own and the one after
	// it, which is that of its ingress. There is only one of IPv6, ::1.
	Address string
	// Release is the one that is installed. Default: OpenShiftVersion.
	Release upgrade.Release
	// KubernetesVersion is the version that the user asks for. Default: that of the release.
	KubernetesVersion string
	// ControlPlane is the number of control-plane hosts after the installation was scaled; zero is that of the topology.
	ControlPlane int
	// HostNetworks gives workers the static network configuration that their BareMetalHosts name, which CreateInputsFor makes.
	HostNetworks bool
	// Variables are further variables of the template.
	Variables map[string]string
}

// Key is the Cluster's.
func (r ClusterRequest) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// InstallKey is that of a Cluster's control plane, ClusterDeployment and AgentClusterInstall, which have one name in all templates.
func InstallKey(cluster types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name + controlPlaneSuffix}
}

// controlPlaneSuffix is how the templates call a cluster's control plane.
const controlPlaneSuffix = "-control-plane"

// ControlPlaneReplicas is the number of control-plane Machines.
func (r ClusterRequest) ControlPlaneReplicas() int {
	return cmp.Or(r.ControlPlane, shapes[r.Topology].controlPlane)
}

// Machines is the number of Machines that the cluster starts with.
func (r ClusterRequest) Machines() int {
	return r.ControlPlaneReplicas() + shapes[r.Topology].arbiters + r.Workers
}

// HasWorkers says whether the template has a MachineDeployment.
func (r ClusterRequest) HasWorkers() bool { return !shapes[r.Topology].noWorkers }

// validate says which settings cannot be combined, or do not exist.
func (r ClusterRequest) validate() error {
	switch {
	case shapes[r.Topology].controlPlane == 0:
		return fmt.Errorf("unknown topology %q: choose one of %v", r.Topology, Topologies())
	case r.Workers < 0:
		return errors.New("the number of workers must not be negative")
	case r.Workers > 0 && !r.HasWorkers():
		return fmt.Errorf("topology %s has no workers: choose topology %s", r.Topology, HA)
	}
	return nil
}

// Render returns the cluster's manifests as clusterctl makes them from the template.
func (w *World) Render(ctx context.Context, r ClusterRequest) ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	path, err := r.templateFile()
	if err != nil {
		return nil, err
	}
	variables, err := w.variables(r)
	if err != nil {
		return nil, err
	}
	manifests, err := w.Management.Run(ctx, "clusterctl", variables, "generate", "cluster", r.Name, "--from", path,
		"--target-namespace", r.Namespace, "--kubernetes-version", cmp.Or(r.KubernetesVersion, r.Release.KubeletVersion, KubernetesVersion),
		"--control-plane-machine-count", strconv.Itoa(r.ControlPlaneReplicas()),
		"--worker-machine-count", strconv.Itoa(r.Workers))
	if err != nil || !r.HostNetworks {
		return manifests, err
	}
	return withHostNetworks(manifests)
}

// ApplyCluster renders the cluster's template and applies it with kubectl, as a user does.
func (w *World) ApplyCluster(ctx context.Context, r ClusterRequest) error {
	manifests, err := w.Render(ctx, r)
	if err != nil {
		return err
	}
	path, err := w.file(r.Namespace + "." + r.Name + ".yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, manifests, 0o600); err != nil {
		return fmt.Errorf("cannot keep the manifests of cluster %s: %w", r.Name, err)
	}
	_, err = w.Kubectl(ctx, "apply", "-f", path)
	return err
}

// Describe returns the output of `clusterctl describe cluster`.
func (w *World) Describe(ctx context.Context, namespace, name string) (string, error) {
	out, err := w.Management.Run(ctx, "clusterctl", nil, "describe", "cluster", name, "--namespace", namespace)
	return string(out), err
}

// Kubectl runs kubectl against the management cluster and returns its output.
func (w *World) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return w.Management.Run(ctx, "kubectl", nil, args...)
}
