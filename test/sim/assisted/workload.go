// SPDX-License-Identifier: Apache-2.0

package assisted

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Workload runs the installed clusters for the service: their API and their Nodes. All methods but Accepts and RemoveNode return at
// once; a cluster is known by the namespace and name of its ClusterDeployment.
type Workload interface {
	// Apply creates the cluster or brings it to what spec says.
	Apply(spec ClusterSpec)
	// Status returns what was last observed. The zero value stands for a cluster that has not started.
	Status(cluster types.NamespacedName) ClusterStatus
	// Kubeconfig returns the administrator's kubeconfig, whose server is the public name of the cluster's API. The data
	// differs once the installation is complete. ok is false while there is none yet.
	Kubeconfig(cluster types.NamespacedName, complete bool) (data []byte, ok bool)
	// Accepts says whether the API of a cluster answers whoever comes with a kubeconfig.
	Accepts(ctx context.Context, cluster types.NamespacedName, kubeconfig []byte) bool
	// RemoveNode deletes a Node. It fails when the API does not answer; a Node that is not there is no error.
	RemoveNode(ctx context.Context, cluster types.NamespacedName, node string) error
	// Delete stops the cluster and forgets its data.
	Delete(cluster types.NamespacedName)
}

// ClusterSpec is what an installed cluster should look like.
type ClusterSpec struct {
	// Key is the ClusterDeployment; Name and BaseDomain make api.<Name>.<BaseDomain>.
	Key        types.NamespacedName
	Name       string
	BaseDomain string
	// APIVIPs are empty for a single-node cluster without VIPs.
	APIVIPs []string
	// ClusterID is the UUID in ClusterVersion.spec.clusterID.
	ClusterID string
	// ReleaseImage is what the ClusterImageSet names.
	ReleaseImage string
	// Installing is set from the state installing on: the API may come up. Complete when the installation is done.
	Installing bool
	Complete   bool
	// Pivoting is set while the bootstrap host, on which the API has run so far, reboots: the API does not answer.
	Pivoting bool
	// MachineAPI is set when the cluster's own Machine API gives the Nodes provider IDs.
	MachineAPI bool
	// Nodes are the hosts that have rebooted into the installed system.
	Nodes []NodeSpec
}

// NodeSpec is one host of an installed cluster.
type NodeSpec struct {
	Name string
	// Role is master, arbiter or worker.
	Role string
	// Addresses are the internal IPs, without prefix length.
	Addresses []string
	// Architecture is that of the processor, in the spelling of the Assisted Installer.
	Architecture string
	// Labels are applied after the Node joined; for a day-2 host once it is Ready (ASSISTED 4).
	Labels map[string]string
	Day2   bool
	// Served is set while the service looks after a day-2 host in the cluster. Without it nobody approves the first certificate of the
	// host's kubelet, so that it does not join, and nobody applies its labels (ASSISTED 2.3).
	Served bool
	// Disk differs between two installations of one host: what the host had before is gone.
	Disk string
	// Running is false when the machine lost power: its Node goes NotReady.
	Running bool
}

// ClusterStatus is the observed state of an installed cluster.
type ClusterStatus struct {
	APIUp bool
	Nodes map[string]NodeStatus
}

// NodeStatus says how far a Node is.
type NodeStatus struct {
	Joined bool
	Ready  bool
}

// instantWorkload pretends: its API is up from installing on and every Node is ready as soon as it is asked for.
type instantWorkload struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]ClusterSpec
	// admitted are the disks of day-2 hosts whose kubelets have a certificate.
	admitted map[string]bool
}

func newInstantWorkload() *instantWorkload {
	return &instantWorkload{clusters: map[types.NamespacedName]ClusterSpec{}, admitted: map[string]bool{}}
}

func (w *instantWorkload) Apply(spec ClusterSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clusters[spec.Key] = spec
	for _, node := range spec.Nodes {
		if node.Served {
			w.admitted[node.Disk] = true
		}
	}
}

func (w *instantWorkload) Status(cluster types.NamespacedName) ClusterStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	spec := w.clusters[cluster]
	status := ClusterStatus{APIUp: spec.Installing && !spec.Pivoting, Nodes: map[string]NodeStatus{}}
	for _, node := range spec.Nodes {
		joined := !node.Day2 || w.admitted[node.Disk]
		status.Nodes[node.Name] = NodeStatus{Joined: joined, Ready: joined && node.Running}
	}
	return status
}

func (w *instantWorkload) Kubeconfig(cluster types.NamespacedName, complete bool) ([]byte, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	spec, ok := w.clusters[cluster]
	if !ok {
		return nil, false
	}
	phase := "installing"
	if complete {
		phase = "complete"
	}
	const format = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api.%s.%s:6443"}}]
users: [{name: admin, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: admin}}]
current-context: c
# %s
`
	return fmt.Appendf(nil, format, spec.Name, spec.BaseDomain, phase), true
}

func (w *instantWorkload) Accepts(_ context.Context, _ types.NamespacedName, kubeconfig []byte) bool {
	return len(kubeconfig) > 0
}

func (w *instantWorkload) RemoveNode(context.Context, types.NamespacedName, string) error { return nil }

func (w *instantWorkload) Delete(cluster types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.clusters, cluster)
}
