// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// ofCluster selects the objects of a Cluster.
func ofCluster(key types.NamespacedName) []client.ListOption {
	return []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}}
}

// Machines returns the Machines of a Cluster by name, as the watch knows them.
func (w *World) Machines(ctx context.Context, cluster types.NamespacedName) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := w.Watch.List(ctx, list, ofCluster(cluster)...); err != nil {
		return nil, fmt.Errorf("cannot list the Machines of Cluster %s: %w", cluster, err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Installed returns a client with all rights in the installed cluster of a Cluster, which knows the kinds that World.Client knows.
func (w *World) Installed(cluster types.NamespacedName) (client.Client, error) {
	config, err := w.Workload.Config(InstallKey(cluster))
	if err != nil {
		return nil, err
	}
	installed, err := client.New(config, client.Options{Scheme: w.Client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for Cluster %s: %w", cluster, err)
	}
	return installed, nil
}

// MachinesReady checks that a Cluster has this many Machines, all Ready and with a Node.
func (w *World) MachinesReady(cluster types.NamespacedName, count int) Check {
	return func(ctx context.Context) (string, error) {
		machines, err := w.Machines(ctx, cluster)
		if err != nil {
			return "", err
		}
		var missing []string
		if len(machines) != count {
			missing = append(missing, fmt.Sprintf("there are %d Machines of %d", len(machines), count))
		}
		for i := range machines {
			machine := &machines[i]
			if !machine.Status.NodeRef.IsDefined() {
				missing = append(missing, fmt.Sprintf("Machine %s has no Node", machine.Name))
			}
			if why := notTrue(machine, clusterv1.ReadyCondition); why != "" {
				missing = append(missing, fmt.Sprintf("Machine %s: %s", machine.Name, why))
			}
		}
		return strings.Join(missing, "\n"), nil
	}
}

// ClusterAvailable checks that a Cluster is Available.
func (w *World) ClusterAvailable(key types.NamespacedName) Check {
	return func(ctx context.Context) (string, error) {
		cluster := &clusterv1.Cluster{}
		if err := w.Watch.Get(ctx, key, cluster); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		return notTrue(cluster, clusterv1.ClusterAvailableCondition), nil
	}
}

// Running checks that a Cluster is Available and has this many Machines, all Ready and with a Node.
func (w *World) Running(key types.NamespacedName, machines int) Check {
	return All(w.ClusterAvailable(key), w.MachinesReady(key, machines))
}

// Gone checks that a Cluster does not exist any more.
func (w *World) Gone(key types.NamespacedName) Check {
	return func(ctx context.Context) (string, error) {
		cluster := &clusterv1.Cluster{}
		if err := w.Watch.Get(ctx, key, cluster); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		return conditionText(cluster, clusterv1.ClusterDeletingCondition), nil
	}
}

// AwaitCluster is Watch.AwaitIn for a check on a Cluster; when it is in vain, the error has what clusterctl shows of it.
func (w *World) AwaitCluster(ctx context.Context, cluster types.NamespacedName, timeout time.Duration, what string, check Check) error {
	err := w.Watch.AwaitIn(ctx, cluster.Namespace, timeout, what, check)
	if err == nil {
		return nil
	}
	description, describeErr := w.Describe(ctx, cluster.Namespace, cluster.Name)
	if describeErr != nil {
		return errors.Join(err, describeErr)
	}
	return fmt.Errorf("%w\n%s", err, description)
}

// DeleteCluster deletes a Cluster and waits until it is gone.
func (w *World) DeleteCluster(ctx context.Context, key types.NamespacedName, timeout time.Duration) error {
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = key.Namespace, key.Name
	if err := w.Client.Delete(ctx, cluster); err != nil {
		return fmt.Errorf("cannot delete Cluster %s: %w", key, err)
	}
	return w.AwaitCluster(ctx, key, timeout, "the deletion of "+key.String(), w.Gone(key))
}

// All is a check that everything is there that the given checks look for.
func All(checks ...Check) Check {
	return func(ctx context.Context) (string, error) {
		var missing []string
		for _, check := range checks {
			problem, err := check(ctx)
			if err != nil {
				return "", err
			}
			if problem != "" {
				missing = append(missing, problem)
			}
		}
		return strings.Join(missing, "\n"), nil
	}
}

// notTrue is "" for a condition that is True, else what it says.
func notTrue(object conditions.Getter, conditionType string) string {
	if conditions.IsTrue(object, conditionType) {
		return ""
	}
	return conditionText(object, conditionType)
}

func conditionText(object conditions.Getter, conditionType string) string {
	condition := conditions.Get(object, conditionType)
	if condition == nil {
		return conditionType + " is not reported"
	}
	return fmt.Sprintf("%s is %s (%s) %s", condition.Type, condition.Status, condition.Reason, condition.Message)
}

// controlPlaneOf returns the control plane of a Cluster.
func (w *World) controlPlaneOf(ctx context.Context, cluster types.NamespacedName) (*controlplanev1.OpenshiftAssistedControlPlane, error) {
	list := &controlplanev1.OpenshiftAssistedControlPlaneList{}
	if err := w.Client.List(ctx, list, ofCluster(cluster)...); err != nil {
		return nil, fmt.Errorf("cannot list the control planes of Cluster %s: %w", cluster, err)
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("Cluster %s has %d OpenshiftAssistedControlPlanes, want one", cluster, len(list.Items))
	}
	return &list.Items[0], nil
}

// controlPlaneSettled checks the conditions and counters that core reads (CONTRACT CP-80 to CP-83).
func (w *World) controlPlaneSettled(cluster types.NamespacedName, replicas int) Check {
	return func(ctx context.Context) (string, error) {
		controlPlane, err := w.controlPlaneOf(ctx, cluster)
		if err != nil {
			return "", err
		}
		want := map[string]metav1.ConditionStatus{
			controlplanev1.AvailableCondition: metav1.ConditionTrue, controlplanev1.InitializedCondition: metav1.ConditionTrue,
			controlplanev1.InstalledCondition: metav1.ConditionTrue, controlplanev1.KubeconfigAvailableCondition: metav1.ConditionTrue,
			controlplanev1.VersionsMatchCondition: metav1.ConditionTrue, controlplanev1.MachinesReadyCondition: metav1.ConditionTrue,
			controlplanev1.MachinesUpToDateCondition: metav1.ConditionTrue, controlplanev1.RollingOutCondition: metav1.ConditionFalse,
			controlplanev1.ScalingUpCondition: metav1.ConditionFalse, controlplanev1.ScalingDownCondition: metav1.ConditionFalse,
			controlplanev1.DeletingCondition: metav1.ConditionFalse, controlplanev1.RemediatingCondition: metav1.ConditionFalse,
			controlplanev1.EtcdClusterHealthyCondition:            metav1.ConditionTrue,
			controlplanev1.ControlPlaneComponentsHealthyCondition: metav1.ConditionTrue,
		}
		wrong := wrongConditions(controlPlane, want)
		for name, count := range map[string]*int32{
			"replicas": controlPlane.Status.Replicas, "readyReplicas": controlPlane.Status.ReadyReplicas,
			"availableReplicas": controlPlane.Status.AvailableReplicas, "upToDateReplicas": controlPlane.Status.UpToDateReplicas,
		} {
			if int(ptr.Deref(count, -1)) != replicas {
				wrong = append(wrong, fmt.Sprintf("status.%s is %d, want %d", name, ptr.Deref(count, -1), replicas))
			}
		}
		if !ptr.Deref(controlPlane.Status.Initialization.ControlPlaneInitialized, false) {
			wrong = append(wrong, "status.initialization.controlPlaneInitialized is not true")
		}
		return describeWrong("OpenshiftAssistedControlPlane "+controlPlane.Name, wrong), nil
	}
}

// configsSettled checks that every config of a Cluster says that nothing stands in its host's way.
func (w *World) configsSettled(cluster types.NamespacedName, count int) Check {
	return func(ctx context.Context) (string, error) {
		list := &bootstrapv1.OpenshiftAssistedConfigList{}
		if err := w.Client.List(ctx, list, ofCluster(cluster)...); err != nil {
			return "", fmt.Errorf("cannot list the configs of Cluster %s: %w", cluster, err)
		}
		var wrong []string
		if len(list.Items) != count {
			wrong = append(wrong, fmt.Sprintf("there are %d OpenshiftAssistedConfigs, want %d", len(list.Items), count))
		}
		for i := range list.Items {
			config := &list.Items[i]
			wrong = append(wrong, describeWrong("OpenshiftAssistedConfig "+config.Name, wrongConditions(config, map[string]metav1.ConditionStatus{
				clusterv1.ReadyCondition: metav1.ConditionTrue, bootstrapv1.DataSecretAvailableCondition: metav1.ConditionTrue,
				bootstrapv1.DiscoveryImageReadyCondition: metav1.ConditionTrue, bootstrapv1.HostHealthyCondition: metav1.ConditionTrue,
				bootstrapv1.HostRecognizedCondition: metav1.ConditionTrue, bootstrapv1.AgentInstalledCondition: metav1.ConditionTrue,
			})))
		}
		return strings.Join(slices.DeleteFunc(wrong, func(s string) bool { return s == "" }), "\n"), nil
	}
}

// workersUse checks that the config of every worker of a Cluster has an NTP source.
func (w *World) workersUse(cluster types.NamespacedName, ntpSource string) Check {
	return func(ctx context.Context) (string, error) {
		list := &bootstrapv1.OpenshiftAssistedConfigList{}
		if err := w.Client.List(ctx, list, ofCluster(cluster)...); err != nil {
			return "", fmt.Errorf("cannot list the configs of Cluster %s: %w", cluster, err)
		}
		for i := range list.Items {
			config := &list.Items[i]
			_, controlPlane := config.Labels[clusterv1.MachineControlPlaneLabel]
			if !controlPlane && !slices.Contains(config.Spec.AdditionalNTPSources, ntpSource) {
				return fmt.Sprintf("OpenshiftAssistedConfig %s has no NTP source %s", config.Name, ntpSource), nil
			}
		}
		return "", nil
	}
}

func wrongConditions(object conditions.Getter, want map[string]metav1.ConditionStatus) []string {
	var wrong []string
	for conditionType, status := range want {
		if condition := conditions.Get(object, conditionType); condition == nil || condition.Status != status {
			wrong = append(wrong, conditionText(object, conditionType))
		}
	}
	return wrong
}

func describeWrong(subject string, wrong []string) string {
	if len(wrong) == 0 {
		return ""
	}
	slices.Sort(wrong)
	return subject + ": " + strings.Join(wrong, "; ")
}
