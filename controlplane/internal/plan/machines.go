// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// MachinesDecision is about the control-plane Machines and what belongs to them.
type MachinesDecision struct {
	// Adopt are the Machines to take over before anything else is decided.
	Adopt []*clusterv1.Machine
	// Create are the names of the Machines to create, Surplus the Machines to delete. Blockers say why a missing one is not created yet, and
	// SurplusBlockers why one that is too many is not deleted yet.
	Create          []string
	Surplus         []*clusterv1.Machine
	Blockers        []string
	SurplusBlockers []string
	// SurplusAt is until when a Machine that is too many waits; zero when no time tells.
	SurplusAt time.Time
	// RemediationFor is the remediation by which the first Machine is created; nil when no unhealthy one is replaced.
	RemediationFor *view.Remediation
	// AwaitsTemplate: Machines are to be created, and there is no infrastructure template.
	AwaitsTemplate bool
	// Discard are to be deleted: their Machine is not created any more, or not from the spec that they were made from.
	Discard []view.Prepared
	// NextNumber is the value to write to the annotation that numbers the next Machine; empty when it is up to date.
	NextNumber string
	// Sync: Machines are kept in line with the machine template in place. OwnTemplate: the infrastructure template belongs to the Cluster.
	Sync, OwnTemplate bool
}

// DecideMachines decides which Machines come and go, once the attempt goes on. voting are the Machines that wait for their turn to leave
// etcd and vote in it meanwhile; with surge, one more is created than there are replicas.
func DecideMachines(v *view.View, voting []string, surge bool) MachinesDecision {
	d := MachinesDecision{NextNumber: nextNumber(v), Sync: true, OwnTemplate: true}
	d.Surplus, d.SurplusBlockers, d.SurplusAt = surplusMachines(v)
	d.Create, d.Blockers = missingMachines(v, voting, surge)
	if current := view.RemediationInProgress(v.ControlPlane); current != nil && !remediated(v, *current) {
		d.RemediationFor = current
	}
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
	if !equality.Semantic.DeepEqual(prepared.Config.Spec.Effective(), spec.OpenshiftAssistedConfigSpec.Effective()) {
		return true
	}
	return prepared.Infra != nil &&
		prepared.Infra.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != spec.MachineTemplate.Spec.InfrastructureRef.Name
}

// missingMachines decides which Machines to create. All are created at once before the installation begins, because it needs every host
// (CONTRACT KCP-4), none while it runs, and one after the other afterwards: blockers say what has to happen first. Machines that wait for
// their turn to leave etcd do not count: some wait for those that take their place.
func missingMachines(v *view.View, voting []string, surge bool) (create, blockers []string) {
	missing := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0)) - len(v.Machines.Owned) + len(voting)
	if missing <= 0 && !surge {
		return nil, nil
	}
	if v.Life.Installed() {
		return nextMachine(v, voting)
	}
	if v.Install.AgentClusterInstall != nil && !mayReopen(v) {
		// Their hosts would all join etcd in the moment in which the installation is complete.
		return nil, []string{"The installation has begun or has failed: no Machine is created until it is complete or begun again"}
	}
	return FreeMachineNames(v.ControlPlane.Name, missing, sets.New(v.Machines.Owned.Names()...)), nil
}

// mayRemoveMachines reports whether surplus Machines of a cluster that is not installed can go. It is so until the installation begins.
func mayRemoveMachines(v *view.View) bool {
	return v.Install.AgentClusterInstall == nil || Changeable(v) && !v.Install.Closed()
}

// surplusMachines decides which Machines to delete: before the installation begins all that are too many, while it runs none, and of an
// installed cluster one after the other. until is the end of a wait for nothing but time.
func surplusMachines(v *view.View) (surplus []*clusterv1.Machine, blockers []string, until time.Time) {
	replicas := int(ptr.Deref(v.ControlPlane.Spec.Replicas, 0))
	remaining := v.Machines.Owned.Filter(living)
	switch {
	case len(remaining) <= replicas:
		return nil, nil, until
	case v.Life.Installed():
		return nextSurplus(v)
	case !mayRemoveMachines(v):
		return nil, []string{"The installation has begun or has failed: no Machine is deleted until it is complete or begun again"}, until
	}
	names := remaining.Names()
	sort.Strings(names)
	for _, name := range names[min(replicas, len(names)):] {
		surplus = append(surplus, remaining[name])
	}
	return surplus, nil, until
}

// nextMachine decides about a Machine that an installed cluster misses.
func nextMachine(v *view.View, voting []string) (create, blockers []string) {
	if blockers = preflight(v, voting); len(blockers) > 0 {
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

// etcdMembers finds the numbers of members in what condition EtcdMembersAvailable of the Etcd says: "3 members are available" or "2 of 3
// members are available".
var etcdMembers = regexp.MustCompile(`(?:(\d+) of )?(\d+) members are available`)

// EtcdMembers are the number of members of etcd that the message of condition EtcdMembersAvailable tells, and how many of them serve; 0
// when it tells none.
func EtcdMembers(message string) (members, healthy int) {
	match := etcdMembers.FindStringSubmatch(message)
	if match == nil {
		return 0, 0
	}
	members, err := strconv.Atoi(match[2])
	if err != nil {
		return 0, 0 // It has too many digits to be a number of members.
	}
	if match[1] == "" {
		return members, members
	}
	healthy, err = strconv.Atoi(match[1])
	if err != nil {
		return 0, 0
	}
	return members, healthy
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
