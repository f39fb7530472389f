// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
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
	// known has, by address or name, the names of the Machines that the infrastructure provider says have it. The address of a Node is what
	// its kubelet says, and a kubelet that somebody has taken over may say that of another host.
	known map[string][]string
	// nodes are the Nodes of Machines that have sent a request; one that does not exist is missing.
	nodes map[string]*corev1.Node
}

// observe reads no more than the cached requests while none is pending.
func (r *Reconciler) observe(
	ctx context.Context, cluster *clusterv1.Cluster, cp *controlplanev1.OpenshiftAssistedControlPlane,
) (*scope, error) {
	s := &scope{cluster: cluster, controlPlane: cp, now: r.now(), machines: map[string]string{}, nodes: map[string]*corev1.Node{}}
	s.known = map[string][]string{}
	key := client.ObjectKeyFromObject(cluster)
	subscriber := workload.Subscriber{Controller: r.controller, Request: ctrl.Request{NamespacedName: key}}
	requests, err := r.Certificates.ServingRequests(ctx, key, subscriber)
	if err != nil {
		return nil, err
	}
	for i := range requests {
		if isPending(&requests[i]) {
			s.pending = append(s.pending, requests[i])
		}
	}
	if len(s.pending) == 0 {
		return s, nil
	}
	if err := r.observeMachines(ctx, s); err != nil {
		return nil, err
	}
	for i := range s.pending {
		name := nodeName(&s.pending[i])
		if _, ours := s.machines[name]; !ours || s.nodes[name] != nil {
			continue
		}
		node, err := r.Certificates.Node(ctx, key, name)
		if err != nil {
			return nil, err
		}
		if node != nil {
			s.nodes[name] = node
		}
	}
	return s, nil
}

func (r *Reconciler) observeMachines(ctx context.Context, s *scope) error {
	list := &clusterv1.MachineList{}
	err := r.Client.List(ctx, list, client.InNamespace(s.cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name})
	if err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.ClusterName != s.cluster.Name {
			continue
		}
		if m.Status.NodeRef.Name != "" {
			s.machines[m.Status.NodeRef.Name] = m.Name
		}
		for _, address := range m.Status.Addresses {
			key := canonical(address.Address)
			s.known[key] = append(s.known[key], m.Name)
		}
	}
	return nil
}
