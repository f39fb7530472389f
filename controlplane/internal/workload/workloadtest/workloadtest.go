// SPDX-License-Identifier: Apache-2.0

// Package workloadtest has a fake of each interface of package workload: it answers what it is told, and records what it was asked to do.
// Only tests use it.
package workloadtest

import (
	"context"
	"maps"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

var (
	_ workload.Identity     = &Identity{}
	_ workload.Health       = &Health{}
	_ workload.Upgrades     = &Upgrades{}
	_ workload.Certificates = &Certificates{}
	_ workload.Nodes        = &Nodes{}
)

// Identity is the identity of an installed cluster.
type Identity struct {
	// ID is the cluster's ID; empty while there is no connection.
	ID string
	// Asked counts the calls.
	Asked int
}

// ClusterID returns ID.
func (f *Identity) ClusterID(context.Context, client.ObjectKey) (string, error) {
	f.Asked++
	return f.ID, nil
}

// Health is the health of an installed cluster.
type Health struct {
	// Last is when it last answered.
	Last time.Time
	// Reported are its operators.
	Reported map[string]workload.Operator
	// Err is why the operators cannot be read now.
	Err error
	// Changes are what it says of changes that restart its hosts; nil is that there are none.
	Changes *workload.Updates

	// remembered are the operators that were read last.
	remembered map[string]workload.Operator
}

// LastAnswer returns Last.
func (f *Health) LastAnswer(context.Context, client.ObjectKey) time.Time { return f.Last }

// Operators returns Reported and Err.
func (f *Health) Operators(context.Context, client.ObjectKey, workload.Subscriber) (map[string]workload.Operator, error) {
	if f.Err == nil {
		f.remembered = maps.Clone(f.Reported)
	}
	return f.Reported, f.Err
}

// LastOperators returns what Operators has returned last without an error.
func (f *Health) LastOperators(client.ObjectKey) map[string]workload.Operator { return f.remembered }

// Updates returns Changes and Err.
func (f *Health) Updates(context.Context, client.ObjectKey, workload.Subscriber) (*workload.Updates, error) {
	if f.Changes != nil {
		return f.Changes, f.Err
	}
	no := workload.OperatorCondition{Status: "False"}
	return &workload.Updates{PoolUpdating: no, PoolDegraded: no}, f.Err
}

// Upgrades is the version operator of an installed cluster, which does nothing.
type Upgrades struct {
	// Reported is what it says; nil while there is no connection.
	Reported *workload.ClusterVersion
	// Demands are the gates that it has.
	Demands []workload.Gate
	// Err is why nothing can be read or written.
	Err error

	// Changes are what was written, and Acknowledged the keys that were last.
	Changes      []workload.VersionChange
	Acknowledged []string
}

// Version returns Reported and Err.
func (f *Upgrades) Version(context.Context, client.ObjectKey, workload.Subscriber) (*workload.ClusterVersion, error) {
	return f.Reported, f.Err
}

// ChangeVersion returns Err, and records the change without one.
func (f *Upgrades) ChangeVersion(_ context.Context, _ client.ObjectKey, _ string, change workload.VersionChange) (bool, error) {
	if f.Err == nil {
		f.Changes = append(f.Changes, change)
	}
	return f.Err == nil, f.Err
}

// Gates returns Demands and Err.
func (f *Upgrades) Gates(context.Context, client.ObjectKey) ([]workload.Gate, error) {
	return f.Demands, f.Err
}

// Acknowledge returns Err, and records the keys without one.
func (f *Upgrades) Acknowledge(_ context.Context, _ client.ObjectKey, keys []string) error {
	if f.Err == nil {
		f.Acknowledged = keys
	}
	return f.Err
}

// Certificates are the requests of kubelets of an installed cluster.
type Certificates struct {
	// Requests are all there are.
	Requests []certificatesv1.CertificateSigningRequest
	// Nodes are all that the cluster has.
	Nodes []*corev1.Node
	// Err is why no request can be approved.
	Err error

	// Asked counts the reads of the requests, and Read has the names of the Nodes that were read.
	Asked int
	Read  []string
	// Approved are the names of the requests that were approved.
	Approved []string
}

// ServingRequests returns Requests.
func (f *Certificates) ServingRequests(
	context.Context, client.ObjectKey, workload.Subscriber,
) ([]certificatesv1.CertificateSigningRequest, error) {
	f.Asked++
	return f.Requests, nil
}

// Node returns one of Nodes.
func (f *Certificates) Node(_ context.Context, _ client.ObjectKey, name string) (*corev1.Node, error) {
	f.Read = append(f.Read, name)
	return named(f.Nodes, name), nil
}

// Approve returns Err, and records the request's name without one.
func (f *Certificates) Approve(
	_ context.Context, _ client.ObjectKey, request *certificatesv1.CertificateSigningRequest, _, _ string,
) error {
	if f.Err == nil {
		f.Approved = append(f.Approved, request.Name)
	}
	return f.Err
}

// Nodes are those of an installed cluster.
type Nodes struct {
	// Nodes are all that the cluster has.
	Nodes []*corev1.Node
	// Err is why no provider ID can be set.
	Err error

	// Asked counts the reads of Nodes.
	Asked int
	// Set is the provider ID that was set last.
	Set string
}

// Named returns one of Nodes.
func (f *Nodes) Named(_ context.Context, _ client.ObjectKey, name string, _ workload.Controller) (*corev1.Node, error) {
	f.Asked++
	return named(f.Nodes, name), nil
}

// SetProviderID returns Err, and records the provider ID without one.
func (f *Nodes) SetProviderID(_ context.Context, _ client.ObjectKey, _ *corev1.Node, id string) error {
	if f.Err == nil {
		f.Set = id
	}
	return f.Err
}

// named is the Node of this name; nil when there is none.
func named(nodes []*corev1.Node, name string) *corev1.Node {
	i := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return nodes[i]
}
