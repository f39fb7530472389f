// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/test/sandbox"
)

// ourDomains are in the keys of annotations that this project's managers write.
var ourDomains = []string{bootstrapv1.GroupVersion.Group + "/", controlplanev1.GroupVersion.Group + "/", "/openshift-assisted-agent"}

// movedKinds are the kinds whose objects have to arrive.
var movedKinds = []struct{ apiVersion, kind string }{
	{"cluster.x-k8s.io/v1beta2", "Cluster"}, {"cluster.x-k8s.io/v1beta2", "Machine"}, {"cluster.x-k8s.io/v1beta2", "MachineSet"},
	{"cluster.x-k8s.io/v1beta2", "MachineDeployment"},
	{controlplanev1.GroupVersion.String(), "OpenshiftAssistedControlPlane"},
	{bootstrapv1.GroupVersion.String(), "OpenshiftAssistedConfig"}, {bootstrapv1.GroupVersion.String(), "OpenshiftAssistedConfigTemplate"},
	{metal3.InfrastructureGroup + "/v1beta1", "Metal3Cluster"}, {metal3.InfrastructureGroup + "/v1beta1", "Metal3Machine"},
	{metal3.InfrastructureGroup + "/v1beta1", "Metal3MachineTemplate"},
	{"metal3.io/v1alpha1", "BareMetalHost"}, {"v1", "Secret"},
}

// stayingSecrets belong to hive's ClusterDeployment, which stays behind: the target's are made anew.
var stayingSecrets = []string{name + "-control-plane-admin-kubeconfig", name + "-control-plane-admin-password"}

// inventory is what has to survive a move, by "<kind> <name>": all but status, UIDs and what a move changes on the way.
func inventory(ctx context.Context, w *sandbox.World) (map[string]any, error) {
	found := map[string]any{}
	for _, moved := range movedKinds {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(moved.apiVersion)
		list.SetKind(moved.kind + "List")
		if err := w.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", moved.kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if moved.kind == "Secret" && slices.Contains(stayingSecrets, object.GetName()) {
				continue
			}
			found[moved.kind+" "+object.GetName()] = essence(object)
		}
	}
	return found, nil
}

func essence(object *unstructured.Unstructured) map[string]any {
	var owners []string
	for _, ref := range object.GetOwnerReferences() {
		owners = append(owners, fmt.Sprintf("%s %s controller=%t", ref.Kind, ref.Name, ref.Controller != nil && *ref.Controller))
	}
	slices.Sort(owners)
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return !slices.ContainsFunc(ourDomains, func(domain string) bool { return strings.Contains(key, domain) })
	})
	unstructured.RemoveNestedField(object.Object, "spec", "paused")
	return map[string]any{
		"spec": object.Object["spec"], "data": object.Object["data"], "type": object.Object["type"],
		"labels": object.GetLabels(), "annotations": annotations, "owners": owners,
	}
}

// statuses are the conditions of all objects of the cluster, and what else of status others rely on, by "<kind> <name>".
func statuses(ctx context.Context, w *sandbox.World) (map[string]any, error) {
	found := map[string]any{}
	of := client.MatchingLabels{clusterv1.ClusterNameLabel: name}
	clusters, machines := &clusterv1.ClusterList{}, &clusterv1.MachineList{}
	controlPlanes, configs := &controlplanev1.OpenshiftAssistedControlPlaneList{}, &bootstrapv1.OpenshiftAssistedConfigList{}
	for _, list := range []client.ObjectList{clusters, machines, controlPlanes, configs} {
		if err := w.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("cannot list %T of %v: %w", list, of, err)
		}
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		found["Cluster "+c.Name] = []any{conditionStatuses(c), c.Status.Phase, c.Status.Initialization}
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		found["Machine "+m.Name] = []any{conditionStatuses(m), m.Status.Phase, m.Status.NodeRef, m.Status.Initialization}
	}
	for i := range controlPlanes.Items {
		cp := &controlPlanes.Items[i]
		found["OpenshiftAssistedControlPlane "+cp.Name] = []any{
			conditionStatuses(cp), cp.Status.Versions, cp.Status.Replicas, cp.Status.ReadyReplicas, cp.Status.AvailableReplicas,
			cp.Status.UpToDateReplicas, cp.Status.Install, cp.Status.Initialization, cp.Status.Selector,
		}
	}
	for i := range configs.Items {
		c := &configs.Items[i]
		found["OpenshiftAssistedConfig "+c.Name] = []any{conditionStatuses(c), c.Status.DataSecretName, c.Status.Initialization}
	}
	return found, nil
}

// conditionStatuses are the statuses of an object's conditions. What a control plane knows of its installation alone does not come along:
// the target has not seen it.
func conditionStatuses(o conditions.Getter) map[string]string {
	found := map[string]string{}
	for _, c := range o.GetConditions() {
		found[c.Type] = string(c.Status)
	}
	delete(found, controlplanev1.InstallationMatchesSpecCondition)
	return found
}

// written are the writes of a user to an API server, by "<verb> <resource>", in n requests.
func written(w *sandbox.World, users ...string) (map[string]int, error) {
	counts := map[string]int{}
	for _, user := range users {
		writes, err := sandbox.Writes(w.Management.AuditLog(), user)
		if err != nil {
			return nil, err
		}
		for _, write := range writes {
			counts[write.Verb+" "+write.Resource] += write.Count
		}
	}
	return counts, nil
}

// since are the kinds of writes of which there are more now.
func since(before, now map[string]int) []string {
	var more []string
	for write, count := range now {
		if count > before[write] {
			more = append(more, write)
		}
	}
	slices.Sort(more)
	return more
}
