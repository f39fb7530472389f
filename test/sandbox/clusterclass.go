// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
)

const (
	// ClusterClassName is the ClusterClass of template topology, and clusterClassFile its file.
	ClusterClassName = "openshift-assisted"
	clusterClassFile = "templates/clusterclass-openshift-assisted.yaml"

	// ConfigOutdated is what control-plane Machines say when the variable installation was changed; see ControlPlaneKept.
	ConfigOutdated = "* OpenshiftAssistedConfig differs from spec.openshiftAssistedConfigSpec in installation"

	classTimeout = 2 * time.Minute
)

// ApplyClass makes the ClusterClass of template topology in a namespace, and returns when Cluster API has accepted it.
func (w *World) ApplyClass(ctx context.Context, namespace string) error {
	path, err := repositoryFile(clusterClassFile)
	if err != nil {
		return err
	}
	if _, err := w.Kubectl(ctx, "apply", "--namespace", namespace, "-f", path); err != nil {
		return err
	}
	_, err = w.Kubectl(ctx, "wait", "--namespace", namespace, "clusterclass/"+ClusterClassName,
		"--for=condition="+clusterv1.ClusterClassVariablesReadyCondition, "--timeout="+classTimeout.String())
	return err
}

// DeleteClass deletes the ClusterClass, whose templates go with it.
func (w *World) DeleteClass(ctx context.Context, namespace string) error {
	_, err := w.Kubectl(ctx, "delete", "--namespace", namespace, "clusterclass", ClusterClassName)
	return err
}

// AddWorker asks for one worker more: in the topology of a Cluster that has one, else in its MachineDeployment.
func (w *World) AddWorker(ctx context.Context, key types.NamespacedName) error {
	cluster := &clusterv1.Cluster{}
	if err := w.Client.Get(ctx, key, cluster); err != nil {
		return fmt.Errorf("cannot read Cluster %s: %w", key, err)
	}
	if !cluster.Spec.Topology.IsDefined() {
		return w.scaleMachineDeployment(ctx, key)
	}
	replicas := ptr.Deref(cluster.Spec.Topology.Workers.MachineDeployments[0].Replicas, 0)
	return w.ScaleTopology(ctx, key, replicas+1)
}

// ScaleTopology sets the number of workers of the only group in a Cluster's topology.
func (w *World) ScaleTopology(ctx context.Context, key types.NamespacedName, workers int32) error {
	return w.ChangeTopology(ctx, key, func(topology *clusterv1.Topology) error {
		topology.Workers.MachineDeployments[0].Replicas = ptr.To(workers)
		return nil
	})
}

// SetVariable gives a variable of a Cluster's topology a value.
func (w *World) SetVariable(ctx context.Context, key types.NamespacedName, name string, value any) error {
	return w.ChangeTopology(ctx, key, func(topology *clusterv1.Topology) error { return SetVariable(topology, name, value) })
}

// SetVariable gives a variable of a topology a value.
func SetVariable(topology *clusterv1.Topology, name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("variable %s cannot have the value %v: %w", name, value, err)
	}
	variable := clusterv1.ClusterVariable{Name: name}
	variable.Value.Raw = raw
	topology.Variables = slices.DeleteFunc(topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == name })
	topology.Variables = append(topology.Variables, variable)
	return nil
}

// ChangeTopology edits a Cluster's topology, as a user does; Cluster API may refuse it.
func (w *World) ChangeTopology(ctx context.Context, key types.NamespacedName, change func(*clusterv1.Topology) error) error {
	cluster := &clusterv1.Cluster{}
	if err := w.Client.Get(ctx, key, cluster); err != nil {
		return fmt.Errorf("cannot read Cluster %s: %w", key, err)
	}
	patch := client.MergeFrom(cluster.DeepCopy())
	if err := change(&cluster.Spec.Topology); err != nil {
		return err
	}
	if err := w.Client.Patch(ctx, cluster, patch); err != nil {
		return fmt.Errorf("cannot change the topology of Cluster %s: %w", key, err)
	}
	return nil
}

func (w *World) scaleMachineDeployment(ctx context.Context, key types.NamespacedName) error {
	deployment, err := w.machineDeploymentOf(ctx, key)
	if err != nil {
		return err
	}
	return w.Change(ctx, deployment, func() { deployment.Spec.Replicas = ptr.To(ptr.Deref(deployment.Spec.Replicas, 0) + 1) })
}

// machineDeploymentOf returns the only MachineDeployment of a Cluster.
func (w *World) machineDeploymentOf(ctx context.Context, key types.NamespacedName) (*clusterv1.MachineDeployment, error) {
	list := &clusterv1.MachineDeploymentList{}
	if err := w.Client.List(ctx, list, ofCluster(key)...); err != nil {
		return nil, fmt.Errorf("cannot list the MachineDeployments of Cluster %s: %w", key, err)
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("Cluster %s has %d MachineDeployments, want one", key, len(list.Items))
	}
	return &list.Items[0], nil
}

// WorkersOutdated checks that the only MachineDeployment of a Cluster has a MachineSet for its changed template, and that every worker
// stays and says that it is outdated: with the rollout strategy OnDelete it is replaced when somebody deletes it.
func (w *World) WorkersOutdated(cluster types.NamespacedName, before map[string]types.UID) Check {
	return func(ctx context.Context) (string, error) {
		deployment, err := w.machineDeploymentOf(ctx, cluster)
		if err != nil {
			return "", err
		}
		sets := &clusterv1.MachineSetList{}
		if err := w.Client.List(ctx, sets, ofCluster(cluster)...); err != nil {
			return "", fmt.Errorf("cannot list the MachineSets of Cluster %s: %w", cluster, err)
		}
		current := slices.ContainsFunc(sets.Items, func(set clusterv1.MachineSet) bool {
			return set.Spec.Template.Spec.Bootstrap.ConfigRef == deployment.Spec.Template.Spec.Bootstrap.ConfigRef
		})
		if !current {
			return "MachineDeployment " + deployment.Name + " has no MachineSet of its changed template", nil
		}
		machines, err := w.Machines(ctx, cluster)
		if err != nil {
			return "", err
		}
		for i := range machines {
			machine := &machines[i]
			switch {
			case util.IsControlPlaneMachine(machine):
			case before[machine.Name] != machine.UID:
				return "", fmt.Errorf("worker %s was replaced", machine.Name)
			case !conditions.IsFalse(machine, clusterv1.MachineUpToDateCondition):
				return "worker " + machine.Name + " is not outdated: " + conditionText(machine, clusterv1.MachineUpToDateCondition), nil
			}
		}
		return "", nil
	}
}

// DeleteWorkers deletes every worker Machine of a Cluster.
func (w *World) DeleteWorkers(ctx context.Context, cluster types.NamespacedName) error {
	machines, err := w.Machines(ctx, cluster)
	if err != nil {
		return err
	}
	for i := range machines {
		if util.IsControlPlaneMachine(&machines[i]) {
			continue
		}
		if err := w.Client.Delete(ctx, &machines[i]); err != nil {
			return fmt.Errorf("cannot delete Machine %s: %w", machines[i].Name, err)
		}
	}
	return nil
}

// WorkersReplaced checks that every worker of a Cluster is up to date and none of them existed before: before has the
// Machines of that time by name.
func (w *World) WorkersReplaced(cluster types.NamespacedName, before map[string]types.UID) Check {
	return func(ctx context.Context) (string, error) {
		machines, err := w.Machines(ctx, cluster)
		if err != nil {
			return "", err
		}
		for i := range machines {
			machine := &machines[i]
			if util.IsControlPlaneMachine(machine) {
				continue
			}
			if before[machine.Name] == machine.UID {
				return "worker " + machine.Name + " is not replaced", nil
			}
			if why := notTrue(machine, clusterv1.MachineUpToDateCondition); why != "" {
				return "Machine " + machine.Name + ": " + why, nil
			}
		}
		return "", nil
	}
}

// ControlPlaneKept checks that no control-plane Machine was replaced, and that all of them say that they are outdated for
// the given reason, which Cluster API shows too.
func (w *World) ControlPlaneKept(cluster types.NamespacedName, before map[string]types.UID, why string) Check {
	return func(ctx context.Context) (string, error) {
		machines, err := w.Machines(ctx, cluster)
		if err != nil {
			return "", err
		}
		for i := range machines {
			machine := &machines[i]
			if !util.IsControlPlaneMachine(machine) {
				continue
			}
			condition := conditions.Get(machine, clusterv1.MachineUpToDateCondition)
			status := conditions.BoolToStatus(why == "")
			switch {
			case before[machine.Name] != machine.UID:
				return "", fmt.Errorf("control-plane Machine %s was replaced", machine.Name)
			case condition == nil || condition.Status != status || condition.Message != why:
				return "Machine " + machine.Name + ": " + conditionText(machine, clusterv1.MachineUpToDateCondition), nil
			}
		}
		return "", nil
	}
}

// MachineUIDs returns the UIDs of a Cluster's Machines by name.
func (w *World) MachineUIDs(ctx context.Context, cluster types.NamespacedName) (map[string]types.UID, error) {
	machines, err := w.Machines(ctx, cluster)
	if err != nil {
		return nil, err
	}
	uids := make(map[string]types.UID, len(machines))
	for i := range machines {
		uids[machines[i].Name] = machines[i].UID
	}
	return uids, nil
}
