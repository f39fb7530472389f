// SPDX-License-Identifier: Apache-2.0

package etcd

// Faults are what goes wrong, by the names of hosts.
type Faults struct {
	// Sick hosts run, but their etcd does not answer.
	Sick map[string]bool
	// Learner hosts stay learners for ever.
	Learner map[string]bool
	// Exec decides what happens to one etcdctl; nil is nothing.
	Exec func(from string, args []string) ExecFault
}

// ExecFault is what goes wrong with one etcdctl.
type ExecFault string

// The faults of an exec: Hang never answers and has no effect, Refused ends before etcdctl starts, Cut ends after etcdctl took
// effect and before its answer arrived, Garbage answers half of what etcdctl printed, with exit code 0.
const (
	ExecHang    ExecFault = "Hang"
	ExecRefused ExecFault = "Refused"
	ExecCut     ExecFault = "Cut"
	ExecGarbage ExecFault = "Garbage"
)
