// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// scope is all that one pass knows.
type scope struct {
	// cluster and controlPlane are the Cluster and its control plane.
	cluster      *clusterv1.Cluster
	controlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// now is the time of the pass.
	now time.Time
	// pending are the requests that nobody has decided on yet.
	pending []certificatesv1.CertificateSigningRequest
	// machines has, by the name of the Node, the name of the Machine of each Node of the Cluster.
	machines map[string]string
	// known has, by address or name, the Machines that are recorded with it: by the infrastructure provider, or by assisted-service when it
	// discovered the host. The address of a Node is what its kubelet says, and a kubelet that somebody has taken over may say that of another
	// host.
	known map[string][]owner
	// nodes are the Nodes of Machines that have sent a request, and those of their rivals; one that does not exist is missing.
	nodes map[string]*corev1.Node
}

// owner is a Machine that is recorded with an address, and the name of its Node, which is empty while there is none.
type owner struct{ machine, node string }

// observe reads no more than the cached requests while none is pending.
func (r *Reconciler) observe(
	ctx context.Context, cluster *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane,
) (*scope, error) {
	s := &scope{cluster: cluster, controlPlane: cp, now: r.now(), machines: map[string]string{}, nodes: map[string]*corev1.Node{}}
	s.known = map[string][]owner{}
	waits := !view.Settled(cp)
	err := r.observePending(ctx, s, waits)
	if err == nil && len(s.pending) > 0 && !waits {
		err = r.observePending(ctx, s, true) // More may follow, and what was read may be a minute old.
	}
	if err != nil || len(s.pending) == 0 {
		return s, err
	}
	if err := r.observeMachines(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeSenders(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observeRivals(ctx, s)
}

// observePending reads the requests that nobody has decided on. waits keeps the watch of them open: more requests are to be expected.
func (r *Reconciler) observePending(ctx context.Context, s *scope, waits bool) error {
	key := client.ObjectKeyFromObject(s.cluster)
	requests, err := r.Certificates.ServingRequests(ctx, key, workload.Subscriber{
		Controller: r.controller, Request: ctrl.Request{NamespacedName: key}, Waits: waits,
	})
	if err != nil {
		return err
	}
	s.pending = slices.DeleteFunc(requests, func(request certificatesv1.CertificateSigningRequest) bool { return !isPending(&request) })
	return nil
}

// observeSenders reads the Nodes of Machines that have sent a request.
func (r *Reconciler) observeSenders(ctx context.Context, s *scope) error {
	for i := range s.pending {
		name := nodeName(&s.pending[i])
		if _, ours := s.machines[name]; !ours {
			continue
		}
		if err := r.observeNode(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// observeNode reads a Node, once in a pass.
func (r *Reconciler) observeNode(ctx context.Context, s *scope, name string) error {
	if s.nodes[name] != nil {
		return nil
	}
	node, err := r.Certificates.Node(ctx, client.ObjectKeyFromObject(s.cluster), name)
	if node != nil {
		s.nodes[name] = node
	}
	return err
}

// maxRivals bounds the Nodes that are read in a pass: a kubelet that somebody has taken over may say that its Node has all addresses of the
// cluster.
const maxRivals = 16

// observeRivals reads the Nodes of Machines that are recorded with an address of a Node that has sent a request, and of which that Node's
// Machine has no record: hosts with DHCP may have changed their addresses since. A Machine whose Node is not read keeps what
// is recorded, as it does when more than maxRivals are in question.
func (r *Reconciler) observeRivals(ctx context.Context, s *scope) error {
	rivals := sets.New[string]()
	for name, node := range s.nodes {
		for _, address := range node.Status.Addresses {
			owners := s.known[canonical(address.Address)]
			if s.confirms(owners, name) {
				continue
			}
			for _, o := range owners {
				rivals.Insert(o.node)
			}
		}
	}
	names := sets.List(rivals.Delete(""))
	for _, name := range names[:min(len(names), maxRivals)] {
		if err := r.observeNode(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// observeMachines finds the Machines of the Cluster, with what is recorded of their addresses. Nothing of them is changed, nor of their
// Agents: the cache makes no copies.
func (r *Reconciler) observeMachines(ctx context.Context, s *scope) error {
	list := &clusterv1.MachineList{}
	ofCluster := append(index.OfCluster(client.ObjectKeyFromObject(s.cluster)), client.UnsafeDisableDeepCopy)
	if err := r.Client.List(ctx, list, ofCluster...); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	claims := map[string]owner{}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.ClusterName != s.cluster.Name {
			continue
		}
		o := owner{machine: m.Name, node: m.Status.NodeRef.Name}
		claims[assisted.Claim(m)] = o
		if o.node != "" {
			s.machines[o.node] = o.machine
			s.record(o.node, o) // Metal3 reports the name with which a host was inspected, which is another one.
		}
		for _, address := range m.Status.Addresses {
			s.record(address.Address, o)
		}
	}
	return r.observeAgents(ctx, s, claims)
}

// observeAgents records the addresses with which the hosts of Machines were discovered; claims has the Machines by what their Agents are
// annotated with. There are no Agents of a Cluster that was moved here.
func (r *Reconciler) observeAgents(ctx context.Context, s *scope, claims map[string]owner) error {
	if len(r.Gate.Missing(assisted.CRDAgents)) > 0 {
		return nil
	}
	list := &assisted.AgentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Agents: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b assisted.Agent) int { return strings.Compare(a.Name, b.Name) })
	for i := range list.Items {
		a := &list.Items[i]
		o, ours := claims[a.Annotations[bootstrapv1.ClaimAnnotation]]
		if !ours {
			continue
		}
		for _, address := range a.Addresses() {
			s.record(address, o)
		}
	}
	return nil
}

// record adds an owner to an address or a name.
func (s *scope) record(address string, o owner) {
	key := canonical(address)
	if !slices.Contains(s.known[key], o) {
		s.known[key] = append(s.known[key], o)
	}
}
