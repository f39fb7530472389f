// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// nextMachine decides about a Machine that an installed cluster misses. Its host becomes a member of etcd, so etcd has to be well first,
// and may count no member whose Machine is gone.
func nextMachine(s *scope) (create, blockers []string) {
	if blockers = append(unsettled(s.machines), unfitEtcd(s)...); len(blockers) > 0 {
		return nil, blockers
	}
	number := s.controlPlane.Annotations[controlplanev1.NextMachineAnnotation]
	if number == "" || nextMachineToWrite(s) != "" {
		return nil, nil // The annotation is written first, which triggers a reconcile.
	}
	return []string{s.controlPlane.Name + "-" + number}, nil
}

// nextMachineToWrite is the number that the next Machine of an installed cluster is to have; empty when the annotation says so.
func nextMachineToWrite(s *scope) string {
	if !s.installed() && recordToWrite(s) == "" {
		return ""
	}
	recorded, err := strconv.Atoi(s.controlPlane.Annotations[controlplanev1.NextMachineAnnotation])
	next := plan.NextMachine(s.controlPlane.Name, s.machines.Names())
	if err != nil {
		// There is no record, or somebody broke it: as many Machines as were installed have had a number at least.
		return strconv.Itoa(max(next, int(ptr.Deref(s.controlPlane.Spec.Replicas, 0))))
	}
	if next <= recorded {
		return ""
	}
	return strconv.Itoa(next)
}

// unfitEtcd says why etcd takes no member now; empty when it does.
func unfitEtcd(s *scope) []string {
	etcd, known := s.operators[workload.OperatorEtcd]
	switch {
	case !known:
		return []string{"The installed cluster has not said whether etcd is healthy"}
	case !etcd.Available.True() && !etcd.Available.False():
		return []string{"ClusterOperator etcd does not say whether it is available: " + etcd.Available.Message}
	case etcd.Available.False():
		return []string{"ClusterOperator etcd is not available: " + etcd.Available.Message}
	case etcd.Degraded.True():
		return []string{"ClusterOperator etcd is degraded: " + etcd.Degraded.Message}
	}
	nodes := view.Arbiters(s.controlPlane.Spec.Install)
	for _, m := range s.machines {
		if m.Status.NodeRef.IsDefined() {
			nodes++
		}
	}
	if members := plan.EtcdMembers(etcd.Available.Message); members > nodes {
		return []string{fmt.Sprintf("etcd has %d members and there are %d hosts of members: remove the member of the host that is gone from etcd",
			members, nodes)}
	}
	return nil
}
