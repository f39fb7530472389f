// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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

// decision is what a pass does, by subject. Only decide fills it.
type decision struct {
	// deletion is decided instead of all else while the control plane is being deleted; its step is empty while it lives.
	deletion deletionDecision
	// obstacle stands in the way of all else.
	obstacle blockade
	// initialize: the cluster is installed and its API answers.
	initialize bool

	attempt    attemptDecision
	install    installDecision
	machines   machinesDecision
	kubeconfig kubeconfigDecision
}

// deletionDecision is the state of the deletion, with the reason and message of the condition Deleting.
type deletionDecision struct {
	step            plan.DeletionStep
	reason, message string
}

// blockade says what stands in the way; its fields are empty when nothing does.
type blockade struct {
	// reason and message are those of the condition Installed.
	reason, message string
	// conflict is an object of a wanted name that belongs to something else.
	conflict string
}

// attemptDecision is about the attempts to install: whether the current one goes on.
type attemptDecision struct {
	// restore is the number of the attempt that the objects were made for, when the control plane asks for a lower one; empty otherwise.
	restore string
	// lost names the objects of the installation that are gone after it had begun; empty when none is.
	lost string
	// over: the current attempt has failed, or has lost its objects, and the next one has to begin.
	over bool
	// start: the next attempt begins: the user asked for it and the current one has failed, or it has lost the objects that lost names.
	start bool
	// retryAt is when the next attempt begins by itself; zero when the user has to ask for it, or when it begins now.
	retryAt time.Time
	// retrying: objects of an earlier attempt exist; stale are those Machines that are to be deleted first.
	retrying bool
	stale    []*clusterv1.Machine
}

// installDecision is about the objects of hive and assisted-service.
type installDecision struct {
	// record is the value to write to InstalledClusterAnnotation; empty if it is up to date.
	record string
	// start is the value to write to InstallationStartedAnnotation, "" to remove it; nil if it is up to date.
	start *string
	// create: the objects of the installation are missing. restoreImageSet: the ClusterImageSet that they refer to is.
	create, restoreImageSet bool
	// importCluster: the installed cluster is not known to assisted-service, and is made known. markInstalled: its ClusterDeployment has to
	// say first that it is installed.
	importCluster, markInstalled bool
	// update brings the AgentClusterInstall in line with a control plane that has changed; nil when it is.
	update *render.InstallUpdate
	// dayOne is the next step of the first installation.
	dayOne plan.DayOneStep
}

// machinesDecision is about the control-plane Machines and what belongs to them.
type machinesDecision struct {
	// adopt are the Machines to take over before anything else is decided.
	adopt []*clusterv1.Machine
	// create are the names of the Machines to create, surplus the Machines to delete. blockers say why a missing one is not created yet.
	create   []string
	surplus  []*clusterv1.Machine
	blockers []string
	// nextNumber is the value to write to the annotation that numbers the next Machine; empty when it is up to date.
	nextNumber string
	// sync: Machines are kept in line with the machine template in place. ownTemplate: the infrastructure template belongs to the Cluster.
	sync, ownTemplate bool
}

// kubeconfigDecision is about the Secrets with a kubeconfig of the cluster.
type kubeconfigDecision struct {
	// publish is what <cluster>-kubeconfig has to hold; nil when it is right already or cannot be made, for which problem says why.
	publish []byte
	problem string
	// share is the data to write to the Secret by which assisted-service reaches an imported cluster; nil if it is up to date.
	share []byte
}

// requeueAfter tells when the pass is to be repeated without an event; 0 when an event tells.
func requeueAfter(v *view.View, d decision, o *outcomes) time.Duration {
	if d.obstacle.conflict != "" || o.conflict() != "" || v.Life == view.Mismatch ||
		d.obstacle.reason == controlplanev1.NameConflictReason {
		return conflictRetryInterval
	}
	if v.Machines.TemplateNotAllowed() {
		return infrastructure.RetryNotAllowed
	}
	if !d.attempt.retryAt.IsZero() {
		return d.attempt.retryAt.Sub(v.Now) // Only time passes until then.
	}
	// What is left of the wait for workers: nothing happens when it ends but time passing.
	return d.install.dayOne.RequeueAfter
}

// decide says what this pass does and why. It is pure.
func decide(v *view.View) decision {
	var d decision
	if v.Life == view.Deleting {
		d.deletion.step, d.deletion.reason, d.deletion.message = leftovers(v).Next()
		return d
	}
	// Before all that may have to wait: the cluster of a control plane that was moved here runs, whatever is missing to add hosts to it.
	d.initialize = v.Verified() && !v.Initialized()
	if d.obstacle.reason, d.obstacle.message = waiting(v); d.obstacle.reason != "" {
		return d
	}
	d.machines.ownTemplate, d.machines.sync = true, true
	if d.obstacle.conflict = conflict(v); d.obstacle.conflict != "" {
		return d
	}
	if d.machines.adopt = v.Machines.Orphans; len(d.machines.adopt) > 0 {
		d.machines.sync = false
		return d
	}
	if d.attempt = decideAttempt(v); d.attempt.stands() {
		d.machines.sync = !d.attempt.retrying
		return d
	}
	decideCurrent(v, &d)
	return d
}

// decideCurrent decides about the current attempt and the cluster that comes of it, once nothing stands in the way.
func decideCurrent(v *view.View, d *decision) {
	d.install.record, d.machines.nextNumber = recordToWrite(v), nextMachineToWrite(v)
	objects := v.Install
	d.install.create = !v.Life.Installed() && (objects.ClusterDeployment == nil || objects.AgentClusterInstall == nil)
	d.install.restoreImageSet = objects.ClusterDeployment != nil && objects.AgentClusterInstall != nil && objects.ImageSet == nil &&
		v.ControlPlane.Spec.Release.ImageSetRef.Name == ""
	decideImport(v, &d.install)
	d.machines.create, d.machines.blockers = missingMachines(v)
	d.machines.surplus = surplusMachines(v)
	d.install.update, d.install.dayOne = installation(v)
	if len(d.machines.surplus) > 0 {
		// Their hosts are bound and ready until the cache shows that they are being deleted: nothing may be fixed or begun with them.
		d.install.dayOne = plan.DayOneStep{Note: d.install.dayOne.Note}
	}
	decideStart(v, &d.install)
	d.kubeconfig = decideKubeconfig(v)
}

// recordToWrite is what is to be remembered of the installed cluster; empty when it is, or when there is nothing to. The wanted attempt of
// an initialized control plane may have been changed since, which means nothing for it: the record follows.
func recordToWrite(v *view.View) string {
	if v.Install.AgentClusterInstall == nil || assisted.PhaseOf(v.Install.AgentClusterInstall) != assisted.PhaseCompleted ||
		v.Install.AgentClusterInstall.Spec.ClusterMetadata == nil {
		return ""
	}
	if !v.Initialized() && v.Install.AgentClusterInstall.Annotations[controlplanev1.InstallAttemptAnnotation] != view.Attempt(v.ControlPlane) {
		return ""
	}
	record := view.RecordOf(v.ControlPlane, *v.Install.AgentClusterInstall.Spec.ClusterMetadata)
	if record.ClusterID == "" || v.Record != nil && record == *v.Record {
		return ""
	}
	return record.String()
}

// decideImport decides whether the installed cluster is to be made known to assisted-service, which is when its AgentClusterInstall is
// missing and its API has said which cluster it is. One that vanished between the end of the installation and the first answer of the API
// is no new attempt (compare lost): the cluster is recorded, its kubeconfig is published, and hosts run it. Made anew as it was, the
// AgentClusterInstall would start an installation of hosts that are Nodes already, which can never end. A ClusterDeployment of that
// installation is first changed to one of an installed cluster, and the AgentClusterInstall follows once the cache shows that.
func decideImport(v *view.View, d *installDecision) {
	if !v.Verified() || v.Install.AgentClusterInstall != nil ||
		v.Install.ClusterDeployment != nil && !v.Install.ClusterDeployment.DeletionTimestamp.IsZero() {
		return
	}
	d.importCluster = v.InstalledElsewhere()
	d.markInstalled = !d.importCluster
}

// waiting says what has to be there before anything is created.
func waiting(v *view.View) (reason, message string) {
	switch {
	case !v.Cluster.DeletionTimestamp.IsZero():
		// Its workers go first: to count them now would start an installation without them.
		return controlplanev1.ClusterDeletingReason, "The Cluster is being deleted: nothing is created any more"
	case len(v.Install.MissingCRDs) > 0:
		return controlplanev1.WaitingForCRDsReason, "Waiting for CustomResourceDefinitions: " + strings.Join(v.Install.MissingCRDs, ", ")
	case !ptr.Deref(v.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		return controlplanev1.WaitingForClusterInfrastructureReason, "Waiting for the Cluster's infrastructure to be provisioned"
	case !v.Cluster.Spec.ControlPlaneEndpoint.IsValid():
		return controlplanev1.WaitingForClusterInfrastructureReason, "Waiting for Cluster.spec.controlPlaneEndpoint"
	case !v.Life.Installed() && !view.ServesEndpoint(v.ControlPlane.Spec.Install, v.Cluster.Spec.ControlPlaneEndpoint.Host):
		return controlplanev1.InvalidControlPlaneEndpointReason, fmt.Sprintf(
			"Cluster.spec.controlPlaneEndpoint.host is %s, where the cluster will not answer: make it the first of spec.install.apiVIPs (%s) in "+
				"the infrastructure cluster",
			v.Cluster.Spec.ControlPlaneEndpoint.Host,
			strings.Join(v.ControlPlane.Spec.Install.APIVIPs, ", "),
		)
	case len(v.Machines.Foreign) > 0:
		return controlplanev1.MixedOwnershipReason, fmt.Sprintf(
			"Control-plane Machines of something else belong to the Cluster (%s): delete them, or remove their label %s; nothing is changed "+
				"until then",
			strings.Join(v.Machines.Foreign, ", "),
			clusterv1.MachineControlPlaneLabel,
		)
	case v.Kubeconfigs.Namesake != "" && !v.Life.Installed() && v.Install.AgentClusterInstall == nil:
		return controlplanev1.NameConflictReason, v.Kubeconfigs.Namesake
	case !v.Life.Installed() && (v.Install.AgentClusterInstall == nil || changeable(v)):
		message = render.NetworkProblem(v.ControlPlane.Spec, v.Cluster)
	}
	if message == "" {
		return "", ""
	}
	return controlplanev1.InvalidNetworksReason, message
}

// conflict finds an object that has a name the control plane needs and belongs to something else. It is never touched (DESIGN D13).
func conflict(v *view.View) string {
	switch {
	case v.Install.ClusterDeployment != nil && !view.OwnedBy(v.Install.ClusterDeployment, v.ControlPlane):
		return "ClusterDeployment " + v.Install.ClusterDeployment.Name
	case v.Install.AgentClusterInstall != nil && !view.OwnedBy(v.Install.AgentClusterInstall, v.ControlPlane):
		return "AgentClusterInstall " + v.Install.AgentClusterInstall.Name
	case v.Install.ImageSet != nil && !ownsImageSet(v) && !view.Inherited(v.Install.ImageSet, v.ControlPlane) &&
		v.ControlPlane.Spec.Release.ImageSetRef.Name == "":
		return "ClusterImageSet " + v.Install.ImageSet.Name
	default:
		return ""
	}
}

func ownsImageSet(v *view.View) bool { return view.OwnedBy(v.Install.ImageSet, v.ControlPlane) }

// leftovers lists what a deleted control plane still has to remove. What belongs to others is not part of it.
func leftovers(v *view.View) plan.Leftovers {
	l := plan.Leftovers{
		Machines: v.Machines.Owned.Names(), Orphans: boundOrphans(v),
		Orphaning: controllerutil.ContainsFinalizer(v.ControlPlane, metav1.FinalizerOrphanDependents),
	}
	for _, w := range v.Machines.Workers {
		l.Workers = append(l.Workers, w.Name)
	}
	for i := range v.Machines.Pools {
		l.Pools = append(l.Pools, v.Machines.Pools[i].Name)
	}
	if v.Install.ClusterDeployment != nil && view.OwnedBy(v.Install.ClusterDeployment, v.ControlPlane) {
		l.Install = append(l.Install, "ClusterDeployment "+v.Install.ClusterDeployment.Name)
	}
	if v.Install.AgentClusterInstall != nil && view.OwnedBy(v.Install.AgentClusterInstall, v.ControlPlane) {
		l.Install = append(l.Install, "AgentClusterInstall "+v.Install.AgentClusterInstall.Name)
	}
	if v.Install.ImageSet != nil && ownsImageSet(v) {
		l.ImageSet = v.Install.ImageSet.Name
	}
	return l
}

// boundOrphans are the names of the Machines that somebody has taken from the control plane on purpose and whose hosts are bound to its
// ClusterDeployment. Without it, assisted-service would unbind the hosts of running Nodes.
func boundOrphans(v *view.View) []string {
	others := sets.New(v.Machines.Foreign...)
	for _, m := range v.Machines.Orphans {
		others.Insert(m.Name)
	}
	bound := sets.New[string]()
	for _, a := range v.BoundAgents() {
		if machine, _, ok := a.ClaimedFor(); ok && others.Has(machine) {
			bound.Insert(machine)
		}
	}
	return sets.List(bound)
}
