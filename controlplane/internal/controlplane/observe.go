// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sort"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
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
	"github.com/capi-openshift/agent-providers/controlplane/internal/index"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/infrastructure"
	"github.com/capi-openshift/agent-providers/internal/kube"
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

// observe reads all that a pass needs. An error means that a fact is unknown, and nothing is decided.
func (r *Reconciler) observe(
	ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane, cluster *clusterv1.Cluster,
) (*view.View, error) {
	v := &view.View{
		ControlPlane: cp, Cluster: cluster, ClusterName: clusterNameOf(cp, cluster), Now: r.now(), Started: view.StartedOf(cp),
		Install: view.Install{MissingCRDs: r.gate.Missing(neededBy(cp)...)},
	}
	v.Workload.ExpectedSince = answerExpectedSince(cp, r.leading.Since(v.Now))
	v.Workload.SettledFrom = v.Workload.ExpectedSince.Add(r.RemoteConditionsGracePeriod)
	if record, ok := view.InstalledOf(cp); ok {
		v.Record = &record
	}
	reads := []func(context.Context, *view.View) error{r.observeMachines, r.observeInstall}
	if cp.DeletionTimestamp.IsZero() {
		reads = append(reads, r.observeWorkload, r.observeLife, r.observeWorkers, r.observeMachineObjects, r.observeConfigs, r.observeRelease,
			r.observeVersion, r.observeUpdates, r.observeMembers, r.observePrepared, r.observeNamesake, r.observeKubeconfigs, r.observeCredential)
	} else {
		reads = append(reads, r.observeLife, r.observeConfigs, r.observePools, r.observeNamesake, r.observeKubeconfigs, r.observeCredential)
	}
	for _, read := range reads {
		if err := read(ctx, v); err != nil {
			return nil, fmt.Errorf("observe OpenshiftAssistedControlPlane %s: %w", klog.KObj(cp), err)
		}
	}
	return v, nil
}

// observeLife sets View.Life from the records, the install objects and the cluster's answer, which are read before. The reads that follow,
// such as that of the kubeconfigs, depend on it.
func (r *Reconciler) observeLife(_ context.Context, v *view.View) error {
	v.Life = view.LifeOf(v)
	return nil
}

// clusterNameOf finds the Cluster's name also when the Cluster is gone.
func clusterNameOf(cp *controlplanev1.OpenshiftAssistedControlPlane, cluster *clusterv1.Cluster) string {
	if cluster != nil {
		return cluster.Name
	}
	return index.ClusterOf(cp)
}

// inCluster selects the objects of the Cluster past the cache, which has an index of them; core labels all of them.
func inCluster(v *view.View) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(v.ControlPlane.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: v.ClusterName},
	}
}

// observeMachines sorts out the Machines of the Cluster. It may have thousands of workers, of which nothing is changed: the cache makes no
// copies of them, nor of their configs.
func (r *Reconciler) observeMachines(ctx context.Context, v *view.View) error {
	v.Machines.Owned = collections.New()
	if v.ClusterName == "" {
		return nil
	}
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, append(index.OfCluster(v.ClusterKey()), client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		switch {
		case metav1.IsControlledBy(m, v.ControlPlane):
			v.Machines.Owned.Insert(m.DeepCopy())
		case !util.IsControlPlaneMachine(m):
			v.Machines.Workers = append(v.Machines.Workers, m)
		case metav1.GetControllerOf(m) == nil && m.Spec.Bootstrap.ConfigRef.Kind == view.ConfigKind:
			v.Machines.Orphans = append(v.Machines.Orphans, m.DeepCopy())
		default:
			v.Machines.Foreign = append(v.Machines.Foreign, m.Name)
		}
	}
	sort.Slice(v.Machines.Orphans, func(i, j int) bool { return v.Machines.Orphans[i].Name < v.Machines.Orphans[j].Name })
	sort.Strings(v.Machines.Foreign)
	return nil
}

func (r *Reconciler) observePools(ctx context.Context, v *view.View) error {
	if v.ClusterName == "" {
		return nil
	}
	list := &clusterv1.MachinePoolList{}
	if err := r.Client.List(ctx, list, index.OfCluster(v.ClusterKey())...); err != nil {
		return fmt.Errorf("list MachinePools: %w", err)
	}
	v.Machines.Pools = list.Items
	return nil
}

func (r *Reconciler) observeWorkers(ctx context.Context, v *view.View) error {
	deployments, sets := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
	ofCluster := append(index.OfCluster(v.ClusterKey()), client.UnsafeDisableDeepCopy) // They are counted, and nothing of them is kept.
	if err := r.Client.List(ctx, deployments, ofCluster...); err != nil {
		return fmt.Errorf("list MachineDeployments: %w", err)
	}
	if err := r.Client.List(ctx, sets, ofCluster...); err != nil {
		return fmt.Errorf("list MachineSets: %w", err)
	}
	v.Machines.WantedWorkers = view.WantedWorkers(deployments.Items, sets.Items, v.Machines.Workers)
	return nil
}

// observeInstall reads the objects of hive and assisted-service whose kinds are served.
func (r *Reconciler) observeInstall(ctx context.Context, v *view.View) error {
	key := client.ObjectKeyFromObject(v.ControlPlane)
	var err error
	if r.served(assisted.CRDClusterDeployments) {
		if v.Install.ClusterDeployment, err = kube.GetOrNil[hivev1.ClusterDeployment](ctx, r.Client, key); err != nil {
			return err
		}
	}
	if r.served(assisted.CRDAgentClusterInstalls) {
		if v.Install.AgentClusterInstall, err = kube.GetOrNil[hiveext.AgentClusterInstall](ctx, r.Client, key); err != nil {
			return err
		}
	}
	if r.served(assisted.CRDClusterImageSets) {
		imageSet := types.NamespacedName{Name: view.ImageSetName(key)}
		if v.Install.ImageSet, err = kube.GetOrNil[hivev1.ClusterImageSet](ctx, r.Client, imageSet); err != nil {
			return err
		}
	}
	if !r.served(assisted.CRDAgents) {
		return nil
	}
	if err := r.observeAgents(ctx, v); err != nil {
		return err
	}
	return r.observeStrangers(ctx, v)
}

func (r *Reconciler) served(crd string) bool { return len(r.gate.Missing(crd)) == 0 }

func (r *Reconciler) observeMachineObjects(ctx context.Context, v *view.View) error {
	ref, namespace := v.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef, v.ControlPlane.Namespace
	v.Machines.Template, v.Machines.TemplateProblem = r.Infrastructure.Get(ctx, ref, namespace)
	if r.stillFills(v.Machines.TemplateProblem) {
		return fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, v.Machines.TemplateProblem)
	}
	if v.Machines.Template == nil && v.Machines.TemplateProblem == nil {
		v.Machines.TemplateProblem = view.ErrNoTemplate
	}
	if problem := v.Machines.TemplateProblem; problem != nil {
		v.Machines.TemplateProblem = fmt.Errorf("%s %s cannot be read: %w", ref.Kind, ref.Name, problem)
	}
	v.Machines.Infra, v.Machines.InfraProblems = map[string]*unstructured.Unstructured{}, map[string]error{}
	for _, m := range v.Machines.Owned {
		infraMachine, err := r.Infrastructure.Get(ctx, m.Spec.InfrastructureRef, namespace)
		var notAllowed *infrastructure.NotAllowedError
		if errors.As(err, &notAllowed) {
			v.Machines.InfraProblems[m.Name] = err
			continue
		}
		if err != nil {
			return fmt.Errorf("read the infrastructure machine of Machine %s: %w", klog.KObj(m), err)
		}
		if infraMachine != nil {
			v.Machines.Infra[m.Name] = infraMachine
		}
	}
	return nil
}

// observeConfigs reads what the bootstrap provider says of the hosts of all Machines. It lists the configs of the Cluster at once, since a
// cluster may have thousands of workers, and reads a config by its name only while the config lacks the label of the Cluster.
func (r *Reconciler) observeConfigs(ctx context.Context, v *view.View) error {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := r.Client.List(ctx, list, append(inCluster(v), client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list OpenshiftAssistedConfigs: %w", err)
	}
	labelled := make(map[string]*bootstrapv1.OpenshiftAssistedConfig, len(list.Items))
	for i := range list.Items {
		labelled[list.Items[i].Name] = &list.Items[i]
	}
	v.Machines.Configs = make(map[string]*bootstrapv1.OpenshiftAssistedConfig, len(list.Items))
	for _, m := range v.Machines.All() {
		key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}
		config := labelled[key.Name]
		if config == nil {
			var err error
			if config, err = kube.GetOrNil[bootstrapv1.OpenshiftAssistedConfig](ctx, r.Client, key, client.UnsafeDisableDeepCopy); err != nil {
				return err
			}
		}
		if config != nil {
			v.Machines.Configs[m.Name] = config
		}
	}
	return nil
}
