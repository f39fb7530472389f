// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// MachinesDecision is about the control-plane Machines and what belongs to them.
type MachinesDecision struct {
	// Adopt are the Machines to take over before anything else is decided.
	Adopt []*clusterv1.Machine
	// Create are the names of the Machines to create, Surplus the Machines to delete. Blockers say why a missing one is not created yet.
	Create   []string
	Surplus  []*clusterv1.Machine
	Blockers []string
	// AwaitsTemplate: Machines are to be created, and there is no infrastructure template.
	AwaitsTemplate bool
	// Discard are to be deleted: their Machine is not created any more, or not from the spec that they were made from.
	Discard []view.Prepared
	// NextNumber is the value to write to the annotation that numbers the next Machine; empty when it is up to date.
	NextNumber string
	// Sync: Machines are kept in line with the machine template in place. OwnTemplate: the infrastructure template belongs to the Cluster.
	Sync, OwnTemplate bool
}

// DecideMachines decides which Machines come and go, once the attempt goes on.
func DecideMachines(v *view.View) MachinesDecision {
	d := MachinesDecision{NextNumber: nextNumber(v), Surplus: surplusMachines(v), Sync: true, OwnTemplate: true}
	d.Create, d.Blockers = missingMachines(v)
	if len(d.Create) > 0 && (v.Machines.TemplateNotAllowed() || v.Machines.TemplateMissing()) {
		// It is tried again after a fixed time: no event tells that a role was extended or that the template was created.
		d.Create, d.Blockers = nil, append(d.Blockers, v.Machines.TemplateProblem.Error())
		d.AwaitsTemplate = v.Machines.TemplateMissing()
	}
	for _, prepared := range v.Machines.Prepared {
		if !slices.Contains(d.Create, prepared.Config.Name) || outdated(v, prepared) {
			d.Discard = append(d.Discard, prepared)
		}
	}
	return d
}

// outdated reports whether a Machine would be born outdated with what was made for it (CONTRACT CP-35).
func outdated(v *view.View, prepared view.Prepared) bool {
	spec := v.ControlPlane.Spec
	if !equality.Semantic.DeepEqual(prepared.Config.Spec, spec.OpenshiftAssistedConfigSpec) {
		return true
	}
	return prepared.Infra != nil &&
		prepared.Infra.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != spec.MachineTemplate.Spec.InfrastructureRef.Name
}

// missingMachines decides which Machines to create. All are created at once before the installation begins, because it needs every host
// (CONTRACT KCP-4), none while it runs, and one after the other afterwards: blockers say what has to happen first.
func missingMachines(v *view.View) (create, blockers []string) {
	missing := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)) - len(v.Machines.Owned)
	if missing <= 0 {
		return nil, nil
	}
	if v.Life.Installed() {
		return nextMachine(v)
	}
	if v.Install.AgentClusterInstall != nil && !mayReopen(v) {
		// Their hosts would all join etcd in the moment in which the installation is complete.
		return nil, []string{"The installation has begun or has failed: no Machine is created until it is complete or begun again"}
	}
	return FreeMachineNames(v.ControlPlane.Name, missing, sets.New(v.Machines.Owned.Names()...)), nil
}

// unsettled lists the Machines that are on their way into the cluster or out of it, in words.
func unsettled(machines collections.Machines) []string {
	var problems []string
	for _, m := range machines.SortedByCreationTimestamp() {
		switch {
		case !m.DeletionTimestamp.IsZero():
			problems = append(problems, fmt.Sprintf("Machine %s is being deleted", m.Name))
		case !m.Status.NodeRef.IsDefined():
			problems = append(problems, fmt.Sprintf("Machine %s has no Node yet", m.Name))
		}
	}
	return problems
}

// MayRemoveMachines reports whether a surplus Machine can go. It is so only until the installation begins: later, a member of etcd would be
// lost.
func MayRemoveMachines(v *view.View) bool {
	if v.Install.AgentClusterInstall == nil {
		return !v.Life.Installed()
	}
	return Changeable(v) && !v.Install.Closed()
}

// surplusMachines decides which Machines to delete.
func surplusMachines(v *view.View) []*clusterv1.Machine {
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	if len(v.Machines.Owned) <= replicas || !MayRemoveMachines(v) {
		return nil
	}
	living := v.Machines.Owned.Filter(collections.Not(collections.HasDeletionTimestamp))
	names := living.Names()
	sort.Strings(names)
	var surplus []*clusterv1.Machine
	for _, name := range names[min(replicas, len(names)):] {
		surplus = append(surplus, living[name])
	}
	return surplus
}

// nextMachine decides about a Machine that an installed cluster misses. Its host becomes a member of etcd, so etcd has to be well first,
// and may count no member whose Machine is gone.
func nextMachine(v *view.View) (create, blockers []string) {
	if blockers = append(unsettled(v.Machines.Owned), unfitEtcd(v)...); len(blockers) > 0 {
		return nil, blockers
	}
	number := v.ControlPlane.Annotations[controlplanev1.NextMachineAnnotation]
	if number == "" || nextNumber(v) != "" {
		return nil, nil // The annotation is written first, which triggers a reconcile.
	}
	return []string{v.ControlPlane.Name + "-" + number}, nil
}

// nextNumber is the number to write to the annotation NextMachineAnnotation of an installed cluster's control plane; it is empty when the
// annotation has the right number.
func nextNumber(v *view.View) string {
	if !v.Life.Installed() && RecordToWrite(v) == "" {
		return ""
	}
	recorded, err := strconv.Atoi(v.ControlPlane.Annotations[controlplanev1.NextMachineAnnotation])
	next := NextMachine(v.ControlPlane.Name, v.Machines.Owned.Names())
	if err != nil {
		// There is no record, or somebody broke it: as many Machines as were installed have had a number at least.
		return strconv.Itoa(max(next, int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))))
	}
	if next <= recorded {
		return ""
	}
	return strconv.Itoa(next)
}

// unfitEtcd says why etcd takes no member now; it is empty when etcd takes one.
func unfitEtcd(v *view.View) []string {
	etcd, known := v.Workload.Operators[workload.OperatorEtcd]
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
	nodes := view.Arbiters(v.ControlPlane.Spec.Install)
	for _, m := range v.Machines.Owned {
		if m.Status.NodeRef.IsDefined() {
			nodes++
		}
	}
	if members := EtcdMembers(etcd.Available.Message); members > nodes {
		return []string{fmt.Sprintf("etcd has %d members and there are %d hosts of members: remove the member of the host that is gone from etcd",
			members, nodes)}
	}
	return nil
}

// FreeMachineNames returns n names <control plane>-<ordinal> that are not taken, lowest ordinals first. Names are not random: when the
// cache does not show a new Machine yet, the next pass creates it again under the same name, which the API server refuses (CONTRACT CP-36).
func FreeMachineNames(controlPlane string, n int, taken sets.Set[string]) []string {
	var names []string
	for ordinal := 0; len(names) < n; ordinal++ {
		name := fmt.Sprintf("%s-%d", controlPlane, ordinal)
		if !taken.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// etcdMembers finds the number of members in what ClusterOperator etcd says: "3 members are available" or "2 of 3 members are available".
var etcdMembers = regexp.MustCompile(`(\d+) members are available`)

// EtcdMembers is the number of members of etcd that the message of a ClusterOperator tells; 0 when it tells none.
func EtcdMembers(message string) int {
	match := etcdMembers.FindStringSubmatch(message)
	if match == nil {
		return 0
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return 0 // It has too many digits to be a number of members.
	}
	return n
}

// NextMachine is the lowest number that is higher than those in the names of the control plane's Machines, <control plane>-<number>.
func NextMachine(controlPlane string, machines []string) int {
	next := 0
	for _, name := range machines {
		suffix, ok := strings.CutPrefix(name, controlPlane+"-")
		if number, err := strconv.Atoi(suffix); ok && err == nil && number >= next {
			next = number + 1
		}
	}
	return next
}
