// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/collections"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// crdsNeeded are the kinds without which nothing can be installed.
var crdsNeeded = []string{
	assisted.CRDAgents, assisted.CRDAgentClusterInstalls, assisted.CRDClusterDeployments, assisted.CRDClusterImageSets,
}

// neededBy are the CRDs without which a control plane's cluster cannot be installed, those of its infrastructure among them.
func neededBy(cp *controlplanev1.OpenshiftAssistedControlPlane) []string {
	return append(metal3.CRDs(cp.Spec.MachineTemplate.Spec.InfrastructureRef), crdsNeeded...)
}

// scope is all that one pass knows. observe fills it; decide, apply and status read it, and apply leaves facts for status on it.
type scope struct {
	// controlPlane is reconciled; status is written to it in memory.
	controlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// cluster is the owner; nil only while the control plane is being deleted and the Cluster is gone.
	cluster *clusterv1.Cluster
	// clusterName is the Cluster's name; empty when the control plane is deleted before it ever had a Cluster.
	clusterName string
	// now is the time of the pass.
	now time.Time
	// connectionDown: the API of an initialized cluster has not answered for longer than the grace period.
	connectionDown bool
	// connectionKnown: the API has answered, or not answered for long enough, since the manager started.
	connectionKnown bool
	// record is what the control plane's annotation tells of its installed cluster; recorded is whether there is such a cluster.
	record   view.Installed
	recorded bool
	// started is what the control plane's annotation tells of an installation that was begun for it; empty when none was.
	started view.Started
	// expected is since when the API of an initialized cluster is expected to answer this manager.
	expected time.Time
	// lastAnswer is when the API of an initialized cluster last answered a probe; zero if it has not since the manager started.
	lastAnswer time.Time
	// operators are the operators of an initialized cluster's control plane; nil while there is no connection, or when they could not be read
	// for longer than the grace period.
	operators map[string]workload.Operator
	// settling: this manager expects answers for no longer than the grace period, and may know less than the one before.
	settling bool
	// clusterID is the ID that the installed cluster answered with in this pass; empty when it did not. It is only asked for before the
	// control plane is initialized, and while its install objects are missing.
	clusterID string
	// apiProblem is why the installed cluster could not be asked; the pass is then tried again.
	apiProblem error

	// missingCRDs are the names of CRDs of hive and assisted-service that are not served; objects of these kinds are nil below.
	missingCRDs []string
	// machines are the control-plane Machines that this control plane controls, including those being deleted.
	machines collections.Machines
	// orphans are control-plane Machines of the Cluster that nobody controls and that were made for this provider, by name.
	orphans []*clusterv1.Machine
	// foreignMachines are the names of all other control-plane Machines of the Cluster.
	foreignMachines []string
	// workers are the Machines of the Cluster without the control-plane label.
	workers []*clusterv1.Machine
	// pools are the MachinePools of the Cluster. Only read while deleting.
	pools []clusterv1.MachinePool
	// wantedWorkers is the number of workers that Cluster API asks for. Not read while deleting.
	wantedWorkers int

	// clusterDeployment, install and imageSet are the objects of the control plane's names, whoever they belong to; nil when they do not
	// exist.
	clusterDeployment *hivev1.ClusterDeployment
	install           *hiveext.AgentClusterInstall
	imageSet          *hivev1.ClusterImageSet
	// agents are the Agents of the namespace, by name.
	agents []assisted.Agent
	// strangers are the Agents of other namespaces that are bound to the ClusterDeployment, as namespace/name. Only read while
	// assisted-service says that the numbers of hosts do not fit.
	strangers []string

	// infraTemplate is what infrastructure machines are made from; nil with templateProblem set when it cannot be read. Not read while
	// deleting.
	infraTemplate   *unstructured.Unstructured
	templateProblem error
	// infraProblem is why the manager may not read the infrastructure machines; they are unknown then.
	infraProblem error
	// infraMachines belong to the Machines and configs to Machines and workers, by the Machine's name; an entry is missing while the object
	// does not exist. Not read while deleting.
	infraMachines map[string]*unstructured.Unstructured
	configs       map[string]*bootstrapv1.OpenshiftAssistedConfig

	// installerKubeconfig is the Secret by which assisted-service reaches the cluster, kubeconfig the Secret <cluster>-kubeconfig; nil when
	// they do not exist.
	installerKubeconfig *corev1.Secret
	kubeconfig          *corev1.Secret
	// namesake says that another Cluster or control plane of the namespace uses one of these Secrets for its own kubeconfig; empty when none
	// does.
	namesake string

	// release is what is known of the release image. Not read while deleting.
	release releaseFacts

	// conflict is set by apply: the object that has a wanted name and belongs to something else.
	conflict string
	// installProblem is set by apply: why the AgentClusterInstall could not be created or changed.
	installProblem string
	// machineProblem is set by apply: why a Machine could not be created.
	machineProblem string
}

// initialized reports whether the cluster was installed.
func (s *scope) initialized() bool {
	flag := s.controlPlane.Status.Initialization.ControlPlaneInitialized
	return flag != nil && *flag
}

// installed reports whether a cluster was installed for the control plane, here or where it was moved from. Nothing that installs or takes
// down a cluster may be done any more: status, which a move leaves behind, is not enough to know it (CONTRACT CTL-42).
func (s *scope) installed() bool { return s.recorded || s.initialized() }

// verified reports whether the API behind <cluster>-kubeconfig is that of the cluster that was installed.
func (s *scope) verified() bool {
	return s.recorded && s.clusterID != "" && s.clusterID == s.record.ClusterID
}

// imported reports whether the cluster was installed elsewhere: this management cluster's assisted-service does not know it as its own
// work. hive, where it runs, marks every ClusterDeployment as installed in the end, but none as one to preserve.
func (s *scope) imported() bool {
	cd := s.clusterDeployment
	return s.installed() && (cd == nil || cd.Spec.Installed && cd.Spec.PreserveOnDelete)
}

// templateNotAllowed reports whether no role of the manager's lets it read the infrastructure template.
func (s *scope) templateNotAllowed() bool {
	var notAllowed *infrastructure.NotAllowedError
	return errors.As(s.templateProblem, &notAllowed)
}

// clusterKey is the key of the Cluster.
func (s *scope) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.controlPlane.Namespace, Name: s.clusterName}
}

// observe reads all that a pass needs. An error means that a fact is unknown, and nothing is decided.
func (r *Reconciler) observe(
	ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane, cluster *clusterv1.Cluster,
) (*scope, error) {
	s := &scope{
		controlPlane: cp, cluster: cluster, clusterName: clusterNameOf(cp, cluster), now: r.now(),
		missingCRDs: r.gate.Missing(neededBy(cp)...),
	}
	s.expected = answerExpectedSince(cp, r.leading.since(s.now))
	s.record, s.recorded = view.InstalledOf(cp)
	s.started = view.StartedOf(cp)
	reads := []func(context.Context, *scope) error{r.observeMachines, r.observeInstall}
	if cp.DeletionTimestamp.IsZero() {
		reads = append(
			reads, r.observeWorkers, r.observeMachineObjects, r.observeNamesake, r.observeKubeconfigs, r.observeWorkload, r.observeRelease,
		)
	} else {
		reads = append(reads, r.observePools)
	}
	for _, read := range reads {
		if err := read(ctx, s); err != nil {
			return nil, fmt.Errorf("observe OpenshiftAssistedControlPlane %s: %w", klog.KObj(cp), err)
		}
	}
	return s, nil
}

// clusterNameOf finds the Cluster's name also when the Cluster is gone: from the owner reference, which outlives it.
func clusterNameOf(cp *controlplanev1.OpenshiftAssistedControlPlane, cluster *clusterv1.Cluster) string {
	if cluster != nil {
		return cluster.Name
	}
	for _, ref := range cp.OwnerReferences {
		if ref.Kind == "Cluster" {
			return ref.Name
		}
	}
	return cp.Labels[clusterv1.ClusterNameLabel]
}

// ofCluster selects the objects of the Cluster; core labels all of them.
func (s *scope) ofCluster() []client.ListOption {
	return []client.ListOption{
		client.InNamespace(s.controlPlane.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.clusterName},
	}
}

func (r *Reconciler) observeMachines(ctx context.Context, s *scope) error {
	s.machines = collections.New()
	if s.clusterName == "" {
		return nil
	}
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, s.ofCluster()...); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		switch {
		case metav1.IsControlledBy(m, s.controlPlane):
			s.machines.Insert(m)
		case !util.IsControlPlaneMachine(m):
			s.workers = append(s.workers, m)
		case metav1.GetControllerOf(m) == nil && m.Spec.Bootstrap.ConfigRef.Kind == view.ConfigKind:
			s.orphans = append(s.orphans, m)
		default:
			s.foreignMachines = append(s.foreignMachines, m.Name)
		}
	}
	sort.Slice(s.orphans, func(i, j int) bool { return s.orphans[i].Name < s.orphans[j].Name })
	sort.Strings(s.foreignMachines)
	return nil
}

func (r *Reconciler) observePools(ctx context.Context, s *scope) error {
	if s.clusterName == "" {
		return nil
	}
	list := &clusterv1.MachinePoolList{}
	if err := r.Client.List(ctx, list, s.ofCluster()...); err != nil {
		return fmt.Errorf("list MachinePools: %w", err)
	}
	s.pools = list.Items
	return nil
}

func (r *Reconciler) observeWorkers(ctx context.Context, s *scope) error {
	deployments, sets := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, deployments, s.ofCluster()...); err != nil {
		return fmt.Errorf("list MachineDeployments: %w", err)
	}
	if err := r.Client.List(ctx, sets, s.ofCluster()...); err != nil {
		return fmt.Errorf("list MachineSets: %w", err)
	}
	s.wantedWorkers = view.WantedWorkers(deployments.Items, sets.Items, s.workers)
	return nil
}

// observeInstall reads the objects of hive and assisted-service whose kinds are served.
func (r *Reconciler) observeInstall(ctx context.Context, s *scope) error {
	key := client.ObjectKeyFromObject(s.controlPlane)
	imageSetKey := types.NamespacedName{Name: view.ImageSetName(key)}
	cd, install, imageSet := &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}, &hivev1.ClusterImageSet{}
	found, err := r.getServed(ctx, assisted.CRDClusterDeployments, key, cd)
	if err != nil {
		return err
	}
	if found {
		s.clusterDeployment = cd
	}
	if found, err = r.getServed(ctx, assisted.CRDAgentClusterInstalls, key, install); err != nil {
		return err
	}
	if found {
		s.install = install
	}
	if found, err = r.getServed(ctx, assisted.CRDClusterImageSets, imageSetKey, imageSet); err != nil {
		return err
	}
	if found {
		s.imageSet = imageSet
	}
	if len(r.gate.Missing(assisted.CRDAgents)) > 0 {
		return nil
	}
	agents := &assisted.AgentList{}
	if err := r.Client.List(ctx, agents, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("list Agents: %w", err)
	}
	s.agents = agents.Items
	sort.Slice(s.agents, func(i, j int) bool { return s.agents[i].Name < s.agents[j].Name })
	return r.observeStrangers(ctx, s)
}

// getServed reads an object; it is not found when its kind is not served either.
func (r *Reconciler) getServed(ctx context.Context, crd string, key types.NamespacedName, o client.Object) (bool, error) {
	if len(r.gate.Missing(crd)) > 0 {
		return false, nil
	}
	return found(o, key, r.Client.Get(ctx, key, o))
}

// found turns the error of a read into whether the object exists.
func found(o client.Object, key types.NamespacedName, err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", o, key, err)
	}
	return true, nil
}

func (r *Reconciler) observeMachineObjects(ctx context.Context, s *scope) error {
	ref, namespace := s.controlPlane.Spec.MachineTemplate.Spec.InfrastructureRef, s.controlPlane.Namespace
	s.infraTemplate, s.templateProblem = r.Infrastructure.Get(ctx, ref, namespace)
	if s.infraTemplate == nil && s.templateProblem == nil {
		s.templateProblem = errors.New("it does not exist, or its CRD does not")
	}
	s.infraMachines, s.configs = map[string]*unstructured.Unstructured{}, map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	for _, m := range s.machines {
		infraMachine, err := r.Infrastructure.Get(ctx, m.Spec.InfrastructureRef, namespace)
		var notAllowed *infrastructure.NotAllowedError
		if errors.As(err, &notAllowed) {
			s.infraProblem = fmt.Errorf("read the infrastructure machine of Machine %s: %w", klog.KObj(m), err)
			continue
		}
		if err != nil {
			return fmt.Errorf("read the infrastructure machine of Machine %s: %w", klog.KObj(m), err)
		}
		if infraMachine != nil {
			s.infraMachines[m.Name] = infraMachine
		}
	}
	for _, m := range append(s.machines.UnsortedList(), s.workers...) {
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		key := types.NamespacedName{Namespace: namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}
		exists, err := found(config, key, r.Client.Get(ctx, key, config))
		if err != nil {
			return err
		}
		if exists {
			s.configs[m.Name] = config
		}
	}
	return nil
}
