// SPDX-License-Identifier: Apache-2.0

package workloadtest

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

var (
	_ workload.Etcd              = &Etcd{}
	_ workload.ControlPlaneNodes = &ControlPlaneNodes{}
)

// Etcd is the etcd of an installed cluster.
type Etcd struct {
	// Report is what its operator reports; nil while there is no connection. ReportErr is why that cannot be read.
	Report    *workload.EtcdReport
	ReportErr error
	// Listed are its members. A member that is removed is taken out, and a leader that is moved is another one.
	Listed []workload.Member
	// Err is why the members cannot be listed, RemoveErr why none is removed, and MoveErr why the leader stays.
	Err, RemoveErr, MoveErr error
	// Lost says that a change is made although its error says that the outcome is unknown.
	Lost bool

	// Asked counts the lists of members, and Avoided has the Node that was avoided by each call that runs etcdctl.
	Asked   int
	Avoided []string
	// Removed and Moved are the members that were to be removed, and to lead.
	Removed, Moved []uint64
}

// EtcdOperator returns Report and ReportErr.
func (f *Etcd) EtcdOperator(context.Context, client.ObjectKey, workload.Subscriber) (*workload.EtcdReport, error) {
	return f.Report, f.ReportErr
}

// Members returns a copy of Listed, or Err.
func (f *Etcd) Members(_ context.Context, _ client.ObjectKey, avoid string) ([]workload.Member, error) {
	f.Asked++
	f.Avoided = append(f.Avoided, avoid)
	if f.Err != nil {
		return nil, f.Err
	}
	return slices.Clone(f.Listed), nil
}

// RemoveMember returns RemoveErr, and takes the member out of Listed without one, or with Lost.
func (f *Etcd) RemoveMember(_ context.Context, _ client.ObjectKey, avoid string, id uint64) error {
	f.Avoided, f.Removed = append(f.Avoided, avoid), append(f.Removed, id)
	if f.RemoveErr == nil || f.Lost {
		f.Listed = slices.DeleteFunc(slices.Clone(f.Listed), func(m workload.Member) bool { return m.ID == id })
	}
	return f.RemoveErr
}

// MoveLeader returns MoveErr, and makes the member the leader without one, or with Lost.
func (f *Etcd) MoveLeader(_ context.Context, _ client.ObjectKey, avoid string, to uint64) error {
	f.Avoided, f.Moved = append(f.Avoided, avoid), append(f.Moved, to)
	if f.MoveErr == nil || f.Lost {
		for i := range f.Listed {
			f.Listed[i].Leader = f.Listed[i].ID == to
		}
	}
	return f.MoveErr
}

// ControlPlaneNodes are the Nodes of the control plane of an installed cluster.
type ControlPlaneNodes struct {
	// Nodes are all there are. A Node that is deleted is taken out.
	Nodes []workload.ControlPlaneNode
	// MachineAPIRuns: the cluster has a Machine API that works.
	MachineAPIRuns bool
	// Err is why they cannot be listed, and DeleteErr why none can be deleted.
	Err, DeleteErr error

	// Deleted are the names of the Nodes that were deleted.
	Deleted []string
}

// ControlPlaneNodes returns a copy of Nodes, or Err.
func (f *ControlPlaneNodes) ControlPlaneNodes(context.Context, client.ObjectKey) ([]workload.ControlPlaneNode, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	return slices.Clone(f.Nodes), nil
}

// DeleteNode takes a Node of this name and UID out of Nodes, or returns DeleteErr.
func (f *ControlPlaneNodes) DeleteNode(_ context.Context, _ client.ObjectKey, name string, uid types.UID) (bool, error) {
	if f.DeleteErr != nil {
		return false, f.DeleteErr
	}
	before := len(f.Nodes)
	f.Nodes = slices.DeleteFunc(slices.Clone(f.Nodes), func(n workload.ControlPlaneNode) bool { return n.Name == name && n.UID == uid })
	if len(f.Nodes) == before {
		return false, nil
	}
	f.Deleted = append(f.Deleted, name)
	return true, nil
}

// MachineAPI returns MachineAPIRuns.
func (f *ControlPlaneNodes) MachineAPI(context.Context, client.ObjectKey) (bool, error) {
	return f.MachineAPIRuns, nil
}
