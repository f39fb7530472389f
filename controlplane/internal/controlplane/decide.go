// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
)

// conflictRetryInterval is how often a taken name and a kubeconfig of another cluster are tried again: no watch tells when an object of
// somebody else goes away, or when a corrected kubeconfig is connected with.
const conflictRetryInterval = time.Minute

// decision is what a pass does. Only decide fills it.
type decision struct {
	// deletion is the state of the deletion, with the reason and message of the condition Deleting; empty while the control plane lives.
	deletion                        plan.DeletionStep
	deletionReason, deletionMessage string

	// waitReason and waitMessage say what stands in the way of all else; empty when nothing does.
	waitReason, waitMessage string
	// conflict is an object of a wanted name that belongs to something else.
	conflict string
	// adopt are the Machines to take over before anything else is decided.
	adopt []*clusterv1.Machine
	// startRetry: the next attempt begins: the user asked for it and the current one has failed, or it has lost the objects that lost names.
	startRetry bool
	lost       string
	// retryAt is when the next attempt begins by itself; zero when the user has to ask for it, or when it begins now.
	retryAt time.Time
	// restoreAttempt is the number of the attempt that the objects were made for, when the control plane asks for a lower one; empty
	// otherwise.
	restoreAttempt string
	// retrying: objects of an earlier attempt exist; staleMachines are those Machines that are to be deleted first.
	retrying      bool
	staleMachines []*clusterv1.Machine
	// record is the value to write to InstalledClusterAnnotation; empty if it is up to date.
	record string
	// nextMachine is the value to write to the annotation that numbers the next Machine; empty when it is up to date.
	nextMachine string
	// createInstall: the objects of the installation are missing.
	createInstall bool
	// restoreImageSet: the ClusterImageSet that the objects of the installation refer to is missing.
	restoreImageSet bool
	// importCluster: the installed cluster is not known to assisted-service, and is made known. markInstalled: its ClusterDeployment has to
	// say first that it is installed.
	importCluster, markInstalled bool
	// newMachines are the names of the Machines to create, surplus the Machines to delete. blockers say why a missing one is not created yet.
	newMachines []string
	surplus     []*clusterv1.Machine
	blockers    []string
	// installUpdate brings the AgentClusterInstall in line with a control plane that has changed; nil when it is.
	installUpdate *render.InstallUpdate
	// dayOne is the next step of the first installation.
	dayOne plan.DayOneStep
	// start is the value to write to InstallationStartedAnnotation, "" to remove it; nil if it is up to date.
	start *string
	// kubeconfig is what <cluster>-kubeconfig has to hold; nil when it is right already or cannot be made, for which kubeconfigProblem says
	// why.
	kubeconfig        []byte
	kubeconfigProblem string
	// importedKubeconfig is the data to write to the Secret by which assisted-service reaches an imported cluster; nil if it is up to date.
	importedKubeconfig []byte
	// initialize: the cluster is installed and its API answers.
	initialize bool
}

// result tells when the pass is to be repeated without an event.
func result(s *scope, d decision) ctrl.Result {
	if d.conflict != "" || s.conflict != "" || s.mismatch() || d.waitReason == controlplanev1.NameConflictReason {
		return ctrl.Result{RequeueAfter: conflictRetryInterval}
	}
	if s.templateNotAllowed() {
		return ctrl.Result{RequeueAfter: infrastructure.RetryNotAllowed}
	}
	if !d.retryAt.IsZero() {
		return ctrl.Result{RequeueAfter: d.retryAt.Sub(s.now)} // Only time passes until then.
	}
	// What is left of the wait for workers: nothing happens when it ends but time passing.
	return ctrl.Result{RequeueAfter: d.dayOne.RequeueAfter}
}

// decide says what this pass does and why. It is pure.
func decide(s *scope) decision {
	var d decision
	if !s.controlPlane.DeletionTimestamp.IsZero() {
		d.deletion, d.deletionReason, d.deletionMessage = leftovers(s).Next()
		return d
	}
	// Before all that may have to wait: the cluster of a control plane that was moved here runs, whatever is missing to add hosts to it.
	d.initialize = s.verified() && !s.initialized()
	if d.waitReason, d.waitMessage = waiting(s); d.waitReason != "" {
		return d
	}
	if d.conflict = conflict(s); d.conflict != "" {
		return d
	}
	if d.adopt = s.orphans; len(d.adopt) > 0 {
		return d
	}
	if d.restoreAttempt = loweredAttempt(s); d.restoreAttempt != "" {
		return d
	}
	if d.lost = lost(s); d.lost != "" || retryAsked(s) {
		d.startRetry, d.retryAt = mayRetry(s)
		return d
	}
	if d.retrying, d.staleMachines = stale(s); d.retrying {
		return d
	}
	decideAttempt(s, &d)
	return d
}

// decideAttempt decides about the current attempt and the cluster that comes of it, once nothing stands in the way.
func decideAttempt(s *scope, d *decision) {
	d.record, d.nextMachine = recordToWrite(s), nextMachineToWrite(s)
	d.createInstall = !s.installed() && (s.clusterDeployment == nil || s.install == nil)
	d.restoreImageSet = s.clusterDeployment != nil && s.install != nil && s.imageSet == nil &&
		s.controlPlane.Spec.Release.ImageSetRef.Name == ""
	decideImport(s, d)
	d.newMachines, d.blockers = missingMachines(s)
	d.surplus = surplusMachines(s)
	d.installUpdate, d.dayOne = installation(s)
	if len(d.surplus) > 0 {
		// Their hosts are bound and ready until the cache shows that they are being deleted: nothing may be fixed or begun with them.
		d.dayOne = plan.DayOneStep{Note: d.dayOne.Note}
	}
	decideStart(s, d)
	decideKubeconfig(s, d)
}

// recordToWrite is what is to be remembered of the installed cluster; empty when it is, or when there is nothing to. The wanted attempt of
// an initialized control plane may have been changed since, which means nothing for it: the record follows.
func recordToWrite(s *scope) string {
	if s.install == nil || assisted.PhaseOf(s.install) != assisted.PhaseCompleted || s.install.Spec.ClusterMetadata == nil {
		return ""
	}
	if !s.initialized() && s.install.Annotations[controlplanev1.InstallAttemptAnnotation] != view.Attempt(s.controlPlane) {
		return ""
	}
	record := view.RecordOf(s.controlPlane, *s.install.Spec.ClusterMetadata)
	if record.ClusterID == "" || s.recorded && record == s.record {
		return ""
	}
	return record.String()
}

// decideImport decides whether the installed cluster is to be made known to assisted-service, which is when its AgentClusterInstall is
// missing and its API has said which cluster it is. One that vanished between the end of the installation and the first answer of the API
// is no new attempt (compare lost): the cluster is recorded, its kubeconfig is published, and hosts run it. Made anew as it was, the
// AgentClusterInstall would start an installation of hosts that are Nodes already, which can never end. A ClusterDeployment of that
// installation is first changed to one of an installed cluster, and the AgentClusterInstall follows once the cache shows that.
func decideImport(s *scope, d *decision) {
	if !s.verified() || s.install != nil || s.clusterDeployment != nil && !s.clusterDeployment.DeletionTimestamp.IsZero() {
		return
	}
	d.importCluster = s.imported()
	d.markInstalled = !d.importCluster
}

// mismatch reports whether <cluster>-kubeconfig leads to another cluster than the one that was installed.
func (s *scope) mismatch() bool { return s.recorded && s.clusterID != "" && !s.verified() }

// waiting says what has to be there before anything is created.
func waiting(s *scope) (reason, message string) {
	switch {
	case !s.cluster.DeletionTimestamp.IsZero():
		// Its workers go first: to count them now would start an installation without them.
		return controlplanev1.ClusterDeletingReason, "The Cluster is being deleted: nothing is created any more"
	case len(s.missingCRDs) > 0:
		return controlplanev1.WaitingForCRDsReason, "Waiting for CustomResourceDefinitions: " + strings.Join(s.missingCRDs, ", ")
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return controlplanev1.WaitingForClusterInfrastructureReason, "Waiting for the Cluster's infrastructure to be provisioned"
	case !s.cluster.Spec.ControlPlaneEndpoint.IsValid():
		return controlplanev1.WaitingForClusterInfrastructureReason, "Waiting for Cluster.spec.controlPlaneEndpoint"
	case !s.installed() && !view.ServesEndpoint(s.controlPlane.Spec.Install, s.cluster.Spec.ControlPlaneEndpoint.Host):
		return controlplanev1.InvalidControlPlaneEndpointReason, fmt.Sprintf(
			"Cluster.spec.controlPlaneEndpoint.host is %s, where the cluster will not answer: make it the first of spec.install.apiVIPs (%s) in "+
				"the infrastructure cluster",
			s.cluster.Spec.ControlPlaneEndpoint.Host,
			strings.Join(s.controlPlane.Spec.Install.APIVIPs, ", "),
		)
	case len(s.foreignMachines) > 0:
		return controlplanev1.MixedOwnershipReason, fmt.Sprintf(
			"Control-plane Machines of something else belong to the Cluster (%s): delete them, or remove their label %s; nothing is changed "+
				"until then",
			strings.Join(s.foreignMachines, ", "),
			clusterv1.MachineControlPlaneLabel,
		)
	case s.namesake != "" && !s.installed() && s.install == nil:
		return controlplanev1.NameConflictReason, s.namesake
	case !s.installed() && (s.install == nil || changeable(s)):
		message = render.NetworkProblem(s.controlPlane.Spec, s.cluster)
	}
	if message == "" {
		return "", ""
	}
	return controlplanev1.InvalidNetworksReason, message
}

// conflict finds an object that has a name the control plane needs and belongs to something else. It is never touched (DESIGN D13).
func conflict(s *scope) string {
	switch {
	case s.clusterDeployment != nil && !view.OwnedBy(s.clusterDeployment, s.controlPlane):
		return "ClusterDeployment " + s.clusterDeployment.Name
	case s.install != nil && !view.OwnedBy(s.install, s.controlPlane):
		return "AgentClusterInstall " + s.install.Name
	case s.imageSet != nil && !ownsImageSet(s) && !view.Inherited(s.imageSet, s.controlPlane) &&
		s.controlPlane.Spec.Release.ImageSetRef.Name == "":
		return "ClusterImageSet " + s.imageSet.Name
	default:
		return ""
	}
}

func ownsImageSet(s *scope) bool { return view.OwnedBy(s.imageSet, s.controlPlane) }

// leftovers lists what a deleted control plane still has to remove. What belongs to others is not part of it.
func leftovers(s *scope) plan.Leftovers {
	l := plan.Leftovers{Machines: s.machines.Names(), Orphans: boundOrphans(s)}
	for _, w := range s.workers {
		l.Workers = append(l.Workers, w.Name)
	}
	for i := range s.pools {
		l.Pools = append(l.Pools, s.pools[i].Name)
	}
	if s.clusterDeployment != nil && view.OwnedBy(s.clusterDeployment, s.controlPlane) {
		l.Install = append(l.Install, "ClusterDeployment "+s.clusterDeployment.Name)
	}
	if s.install != nil && view.OwnedBy(s.install, s.controlPlane) {
		l.Install = append(l.Install, "AgentClusterInstall "+s.install.Name)
	}
	if s.imageSet != nil && ownsImageSet(s) {
		l.ImageSet = s.imageSet.Name
	}
	return l
}

// boundOrphans are the names of the Machines that somebody has taken from the control plane on purpose and whose hosts are bound to its
// ClusterDeployment. Without it, assisted-service would unbind the hosts of running Nodes.
func boundOrphans(s *scope) []string {
	others := sets.New(s.foreignMachines...)
	for _, m := range s.orphans {
		others.Insert(m.Name)
	}
	bound := sets.New[string]()
	for _, a := range boundAgents(s) {
		if machine, _, ok := a.ClaimedFor(); ok && others.Has(machine) {
			bound.Insert(machine)
		}
	}
	return sets.List(bound)
}

// machineOf is the name of the Machine that an Agent is claimed for, for messages.
func machineOf(a *assisted.Agent) string {
	machine, _, _ := a.ClaimedFor()
	return cmp.Or(machine, "unknown")
}

// missingMachines decides which Machines to create. All are created at once before the installation begins, because it needs every host
// (CONTRACT KCP-4), none while it runs, and one after the other afterwards: blockers say what has to happen first.
func missingMachines(s *scope) (create, blockers []string) {
	missing := int(ptr.Deref(s.controlPlane.Spec.Replicas, 0)) - len(s.machines)
	if missing <= 0 {
		return nil, nil
	}
	if s.installed() {
		return nextMachine(s)
	}
	if s.install != nil && !mayReopen(s) {
		// Their hosts would all join etcd in the moment in which the installation is complete.
		return nil, []string{"The installation has begun: more Machines are created one after the other when it is complete"}
	}
	return plan.FreeMachineNames(s.controlPlane.Name, missing, sets.New(s.machines.Names()...)), nil
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

// mayRemoveMachines reports whether a surplus Machine can go. It is so only until the installation begins: later, a member of etcd would be
// lost.
func mayRemoveMachines(s *scope) bool {
	if s.install == nil {
		return !s.installed()
	}
	_, closed := assisted.DayOneAgents(s.install)
	return changeable(s) && !closed
}

// surplusMachines decides which Machines to delete.
func surplusMachines(s *scope) []*clusterv1.Machine {
	replicas := int(ptr.Deref(s.controlPlane.Spec.Replicas, 0))
	if len(s.machines) <= replicas || !mayRemoveMachines(s) {
		return nil
	}
	living := s.machines.Filter(collections.Not(collections.HasDeletionTimestamp))
	names := living.Names()
	sort.Strings(names)
	var surplus []*clusterv1.Machine
	for _, name := range names[min(replicas, len(names)):] {
		surplus = append(surplus, living[name])
	}
	return surplus
}
