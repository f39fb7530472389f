// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"errors"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/release"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
)

// View is all that one pass over a control plane has read.
type View struct {
	// ControlPlane is reconciled. At the end of the pass its status is computed in memory; nothing else of it is ever changed.
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// Cluster is the owner; nil only while the control plane is being deleted and the Cluster is gone.
	Cluster *clusterv1.Cluster
	// ClusterName is the Cluster's name; empty when the control plane is deleted before it ever had a Cluster.
	ClusterName string
	// Now is the time of the pass.
	Now time.Time
	// Life is where in its life the cluster is.
	Life Life
	// Record is what the control plane's annotation tells of its installed cluster; nil while none is recorded for the wanted attempt.
	Record *Installed
	// Started is what the control plane's annotation tells of an installation that was begun for it; empty when none was.
	Started Started

	Machines    Machines
	Install     Install
	Workload    Workload
	Kubeconfigs Kubeconfigs
	Credential  Credential
	Release     Release

	// Initializing: the API of the cluster has answered, and the pass hands the cluster to Cluster API. All else is done as if it had been
	// before.
	Initializing bool
}

// Machines are the Cluster's Machines and what belongs to them.
type Machines struct {
	// Owned are the control-plane Machines that the control plane controls, including those being deleted.
	Owned collections.Machines
	// Orphans are control-plane Machines of the Cluster that nobody controls and that were made for this provider, by name.
	Orphans []*clusterv1.Machine
	// Foreign are the names of all other control-plane Machines of the Cluster.
	Foreign []string
	// Workers are the Machines of the Cluster without the control-plane label.
	Workers []*clusterv1.Machine
	// Pools are the MachinePools of the Cluster. Only read while deleting.
	Pools []clusterv1.MachinePool
	// WantedWorkers is the number of workers that Cluster API asks for. Not read while deleting.
	WantedWorkers int

	// Template is what infrastructure machines are made from; nil with TemplateProblem set when it cannot be read. Not read while deleting.
	Template        *unstructured.Unstructured
	TemplateProblem error
	// InfraProblems say why the manager may not read the infrastructure machine of an Owned Machine, by the Machine's name. Not read while
	// deleting.
	InfraProblems map[string]error
	// Infra belong to the Owned Machines and Configs to these and Workers, by the Machine's name; an entry is missing while the object does
	// not exist. Infra is not read while deleting.
	Infra   map[string]*unstructured.Unstructured
	Configs map[string]*bootstrapv1.OpenshiftAssistedConfig
	// Prepared were made for control-plane Machines that do not exist. Not read while deleting.
	Prepared []Prepared
}

// Prepared are a config and an infrastructure machine whose Machine does not exist, because a pass ended between their creation and the
// Machine's. Both have the name that the Machine would have.
type Prepared struct {
	// Config has the control plane as its only owner.
	Config *bootstrapv1.OpenshiftAssistedConfig
	// Infra is the infrastructure machine; nil when it does not exist.
	Infra *unstructured.Unstructured
}

// InfraNotAllowed reports whether no role of the manager's lets it read the infrastructure template or an infrastructure machine.
func (m Machines) InfraNotAllowed() bool { return m.TemplateNotAllowed() || len(m.InfraProblems) > 0 }

// ErrNoTemplate says that there is no infrastructure template.
var ErrNoTemplate = errors.New("it does not exist, or its CRD does not")

// TemplateMissing reports whether there is no infrastructure template.
func (m Machines) TemplateMissing() bool { return errors.Is(m.TemplateProblem, ErrNoTemplate) }

// TemplateNotAllowed reports whether no role of the manager's lets it read the infrastructure template.
func (m Machines) TemplateNotAllowed() bool {
	var notAllowed *infrastructure.NotAllowedError
	return errors.As(m.TemplateProblem, &notAllowed)
}

// All are the Owned Machines and Workers, in no order.
func (m Machines) All() []*clusterv1.Machine { return append(m.Owned.UnsortedList(), m.Workers...) }

// Install are the objects of hive and assisted-service that have the control plane's names, whoever they belong to.
type Install struct {
	// MissingCRDs are the names of the CRDs that are not served; objects of these kinds are nil below.
	MissingCRDs []string

	// ClusterDeployment, AgentClusterInstall and ImageSet are nil when they do not exist.
	ClusterDeployment   *hivev1.ClusterDeployment
	AgentClusterInstall *hiveext.AgentClusterInstall
	ImageSet            *hivev1.ClusterImageSet
	// Agents are the Agents of the namespace that are bound to the ClusterDeployment, and those that the first installation was closed with,
	// by name. They are the cache's own: none may be changed.
	Agents []*assisted.Agent
	// Strangers are the Agents of other namespaces that are bound to the ClusterDeployment, as namespace/name. Only read while
	// assisted-service says that the numbers of hosts do not fit.
	Strangers []string
}

// Phase is what assisted-service says of the installation, whatever this provider has recorded of it; PhaseUnknown without an
// AgentClusterInstall. Life says what follows from both.
func (i Install) Phase() assisted.Phase {
	if i.AgentClusterInstall == nil {
		return assisted.PhaseUnknown
	}
	return assisted.PhaseOf(i.AgentClusterInstall)
}

// Closed reports whether the hosts of the first installation are fixed.
func (i Install) Closed() bool {
	if i.AgentClusterInstall == nil {
		return false
	}
	_, closed := assisted.DayOneAgents(i.AgentClusterInstall)
	return closed
}

// Workload is what the installed cluster has answered.
type Workload struct {
	// ExpectedSince is since when the API of an initialized cluster is expected to answer this manager.
	ExpectedSince time.Time
	// LastAnswer is when that API last answered a probe; zero if it has not since the manager started.
	LastAnswer time.Time
	// Answered: the API of an installation that has failed has answered a probe of this manager since its ClusterDeployment was made.
	Answered bool
	// Down: it has not answered for longer than the grace period. Known: it has answered, since the manager started.
	Down, Known bool
	// Settling: this manager has expected answers for at most the grace period, so the manager before it may have known more. SettledFrom is
	// when that ends.
	Settling    bool
	SettledFrom time.Time
	// Operators are the operators of an initialized cluster's control plane; nil while there is no connection, when they could not be read
	// for longer than the grace period, and until the cluster that answers is recognised.
	Operators map[string]workload.Operator
	// Etcd is what the operator of etcd reports; nil while there is no connection to an initialized cluster, and until that is recognised.
	Etcd *workload.EtcdReport
	// Version is what the cluster says of its release; nil while there is no connection to an initialized cluster, and when another cluster
	// answers than the recorded one, whose ID OtherCluster is then.
	Version      *workload.ClusterVersion
	OtherCluster string
	// Gates are what an administrator has to acknowledge before the next minor release.
	Gates Gates
	// Updates is what the cluster says of changes that restart its hosts; nil while there is no connection, while no Machine is to come, to go
	// or to be replaced, and the cluster is not to be upgraded.
	Updates *workload.Updates
	// Members are the members that etcd itself lists, and Nodes the Nodes of its hosts. They are only asked for when a member is about to go
	// or to come; MembersProblem is why they are not known then.
	Members        []workload.Member
	Nodes          []workload.ControlPlaneNode
	MembersProblem error
	// MachineAPI: the cluster has a Machine API that works, by which its operator of etcd adds and removes members itself. It is asked for
	// with Updates and with Members; MachineAPIProblem is why it is not known then.
	MachineAPI        bool
	MachineAPIProblem error
	// ClusterID is the ID that the cluster answered with in this pass; empty when it did not. It is only asked for before the control plane
	// is initialized, and while its install objects are missing.
	ClusterID string
	// Problem is why the cluster could not be asked; the pass is then tried again.
	Problem error
}

// Gates are the changes that an administrator has to acknowledge. They are only asked for when the next minor release is wanted and the
// cluster was not asked for it yet.
type Gates struct {
	Needed []workload.Gate
	// Problem is why they are not known.
	Problem error
}

// Kubeconfigs are the Secrets with a kubeconfig of the cluster.
type Kubeconfigs struct {
	// Installer is the Secret by which assisted-service reaches the cluster, Cluster the Secret <cluster>-kubeconfig. They are nil when they
	// do not exist, and as long as the name of the installer's Secret is not known, because then neither is read.
	Installer *corev1.Secret
	Cluster   *corev1.Secret
	// Copy is the Secret with a copy of the installer's credential, which moves with the control plane. It is only read of an initialized
	// cluster.
	Copy *corev1.Secret
	// Token is the token that Cluster holds because this provider has requested it; empty when it holds another credential. It is only read of
	// an installed cluster.
	Token string
	// Namesake says that another Cluster or control plane of the namespace uses one of these Secrets for its own kubeconfig; empty when none
	// does.
	Namesake string
}

// Release is what is known of the release image.
type Release struct {
	// Image is the image that is installed; empty when a ClusterImageSet of somebody else names it.
	Image string
	// SetImage is the image of the ClusterImageSet that spec.release names; empty when it names none or that does not exist.
	SetImage string
	// Off: the manager asks no registry.
	Off bool
	// Answer is what the registry said in the life of this manager, unless status has it already.
	Answer release.Answer
}

// Initialized reports whether the cluster was handed to Cluster API: it is installed, and its API has answered.
func (v *View) Initialized() bool {
	flag := v.ControlPlane.Status.Initialization.ControlPlaneInitialized
	return v.Initializing || flag != nil && *flag
}

// ClusterKey is the key of the Cluster.
func (v *View) ClusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: v.ControlPlane.Namespace, Name: v.ClusterName}
}

// BoundAgents are the Agents that are bound to the ClusterDeployment, by name.
func (v *View) BoundAgents() []*assisted.Agent {
	var bound []*assisted.Agent
	for _, a := range v.Install.Agents {
		if a.BoundTo(v.ControlPlane.Namespace, v.ControlPlane.Name) {
			bound = append(bound, a)
		}
	}
	return bound
}

// MachineOf is the name of the Machine that an Agent is claimed for, for messages.
func MachineOf(a *assisted.Agent) string {
	machine, _, _ := a.ClaimedFor()
	return cmp.Or(machine, "unknown")
}
