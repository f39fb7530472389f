// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

func same(a, b runtime.Object) bool { return equality.Semantic.DeepEqual(a, b) }

// makers are a control plane and a MachineSet, each of which makes the Machines that it lacks. One that is being deleted does not count.
func (w *world) makers() {
	if cluster := w.cluster(); cluster == nil || !cluster.DeletionTimestamp.IsZero() {
		return
	}
	for kind, wanted := range map[string]int{"cp": w.masters, "worker": w.workers} {
		living := 0
		for _, m := range w.machines() {
			if strings.HasPrefix(m.Name, kind) && m.DeletionTimestamp.IsZero() {
				living++
			}
		}
		for ; living < wanted; living++ {
			w.makeMachine(kind)
		}
	}
}

// makeMachine makes the objects of a Machine in the order of Cluster API.
func (w *world) makeMachine(kind string) {
	name := fmt.Sprintf("%s-%d", kind, w.numbered[kind])
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName}
	if kind == "cp" {
		labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	infra := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"image": runtime.DeepCopyJSON(w.image), "hostSelector": map[string]any{"matchLabels": map[string]any{placeLabel: w.place(kind)}},
	}}}
	infra.SetGroupVersionKind(infraMachineKind)
	config := &bootstrapv1.OpenshiftAssistedConfig{Spec: *w.spec.DeepCopy()}
	machine := &clusterv1.Machine{Spec: clusterv1.MachineSpec{
		ClusterName: clusterName,
		Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: name,
		}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: infraMachineKind.Group, Kind: infraMachineKind.Kind, Name: name,
		},
	}}
	machine.Finalizers = []string{clusterv1.MachineFinalizer}
	for _, o := range []client.Object{infra, config, machine} {
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetLabels(labels)
		w.must(w.hub.Create(context.Background(), o))
	}
	w.numbered[kind]++
}

// place is the name of the host of the next Machine of a kind. The Machine that takes another one's place has its host.
func (w *world) place(kind string) string {
	first, places := 0, w.places
	if kind == "worker" {
		first, places = w.places, max(1, len(w.servers)-w.places)
	}
	return fmt.Sprintf("h-%d", first+w.numbered[kind]%places)
}

// core is Cluster API's.
func (w *world) core() {
	for _, m := range w.machines() {
		if m.DeletionTimestamp.IsZero() {
			w.coreOwns(&m)
			w.coreCopies(&m)
		} else {
			w.coreDeletes(&m)
		}
	}
	cluster := w.cluster()
	if cluster == nil || cluster.DeletionTimestamp.IsZero() {
		return
	}
	for _, m := range w.machines() {
		w.delete(&m)
	}
	if len(w.machines()) == 0 && w.clusterDeployment() == nil {
		change(w, cluster, func(c *clusterv1.Cluster) { c.Finalizers = nil })
	}
}

// coreOwns makes a Machine the owner of its objects.
func (w *world) coreOwns(m *clusterv1.Machine) {
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(infraMachineKind)
	for _, o := range []client.Object{infra, &bootstrapv1.OpenshiftAssistedConfig{}} {
		owner := *metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))
		if w.get(m.Name, o) && !util.HasExactOwnerRef(o.GetOwnerReferences(), owner) {
			o.SetOwnerReferences([]metav1.OwnerReference{owner})
			w.must(w.hub.Update(context.Background(), o))
		}
	}
}

// coreCopies takes over what the providers tell of a Machine.
func (w *world) coreCopies(m *clusterv1.Machine) {
	if config := w.config(m.Name); config != nil && ptr.Deref(config.Status.Initialization.DataSecretCreated, false) {
		change(w, m, func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = &config.Status.DataSecretName })
	}
	infra := w.infraMachine(m.Name)
	provisioned, _, _ := unstructured.NestedBool(infra.Object, "status", "initialization", "provisioned")
	if id, _, _ := unstructured.NestedString(infra.Object, "spec", "providerID"); provisioned && id != "" {
		change(w, m, func(m *clusterv1.Machine) { m.Spec.ProviderID = id })
		tell(w, m, func(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name} })
	}
}

// coreDeletes deletes a Machine: first what it runs, then, when no hook is left, its host, and its config at last (METAL3 M3-50).
func (w *world) coreDeletes(m *clusterv1.Machine) {
	reason := clusterv1.MachineDeletingDrainingNodeReason
	infra, config := w.infraMachine(m.Name), w.config(m.Name)
	hook := false
	for key := range m.Annotations {
		hook = hook || strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	}
	drained := conditions.GetReason(m, clusterv1.MachineDeletingCondition) != ""
	switch {
	case !drained:
	case hook:
		reason = clusterv1.MachineDeletingWaitingForPreTerminateHookReason
	case infra.GetName() != "":
		reason = clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason
		w.delete(infra)
	case config != nil:
		reason = clusterv1.MachineDeletingWaitingForBootstrapDeletionReason
		w.delete(config)
	default:
		change(w, m, func(m *clusterv1.Machine) { m.Finalizers = nil })
		return
	}
	tell(w, m, func(m *clusterv1.Machine) {
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(w.now),
		})
	})
}

// controlPlane is what the manager of control planes does: it asks for the cluster, closes day 1 and begins the installation (DESIGN D8).
func (w *world) controlPlane() {
	cluster := w.cluster()
	if cluster == nil || !cluster.DeletionTimestamp.IsZero() {
		if len(w.machines()) == 0 {
			w.deleteInstall()
		}
		return
	}
	if w.clusterDeployment() == nil {
		w.createInstall()
		return
	}
	install := w.install()
	if install == nil || !install.Spec.HoldInstallation || w.imported {
		return
	}
	ready := []string{}
	for _, a := range w.agents() {
		if a.BoundTo(namespace, deployment) && a.ReadyToInstall() {
			ready = append(ready, a.Name)
		}
	}
	if len(ready) == w.masters+w.workers {
		change(w, install, func(i *hiveext.AgentClusterInstall) {
			i.Spec.HoldInstallation = false
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, assisted.DayOneAgentsAnnotation, assisted.FormatDayOneAgents(ready))
		})
	}
}

func (w *world) createInstall() {
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName}
	d := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: deployment, Labels: labels, Finalizers: []string{"test.example.com/service"},
	}}
	d.Spec.PullSecretRef, d.Spec.Installed = &corev1.LocalObjectReference{Name: "pull"}, w.imported
	install := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: deployment, Labels: labels, Annotations: map[string]string{"attempt": fmt.Sprint(w.attempt)},
	}}
	install.Spec.ClusterDeploymentRef.Name, install.Spec.HoldInstallation = deployment, !w.imported
	install.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: w.masters, WorkerAgents: w.workers}
	w.must(w.hub.Create(context.Background(), d))
	w.must(w.hub.Create(context.Background(), install))
}

func (w *world) deleteInstall() {
	if i := w.install(); i != nil {
		w.delete(i)
	}
	if d := w.clusterDeployment(); d != nil {
		w.delete(d)
	}
}

// retry begins a second attempt: its hosts are unbound, what stood for the first one goes, and the Machines are replaced (DESIGN D18).
func (w *world) retry() {
	w.fails, w.attempt = false, w.attempt+1
	for _, a := range w.agents() {
		change(w, &a, func(a *assisted.Agent) { a.Spec.ClusterDeploymentName, a.Spec.Approved = nil, false })
	}
	w.deleteInstall()
	for _, m := range w.machines() {
		w.delete(&m)
	}
}

// collect is garbage collection, and what a finalizer of others waits for.
func (w *world) collect() {
	w.hub.Collect(w.t, "MachineSet")
}

// vanish removes an object whatever its finalizers wait for.
func (w *world) vanish(o client.Object) {
	o.SetFinalizers(nil)
	w.must(w.hub.Update(context.Background(), o))
	w.must(client.IgnoreNotFound(w.hub.Delete(context.Background(), o)))
}
