// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

// moved makes the world another management cluster, to which clusterctl has moved the cluster. The objects of hive and assisted-service
// stay behind, status does not come along, and every object is a new one (DESIGN D22). The hosts' own status is in an annotation meanwhile.
func (w *world) moved() *world {
	before := w.hub
	w.imported, w.stage, w.refused = true, stageWaiting, map[string]string{}
	w.hub = w.newHub(served()...)
	cluster := &clusterv1.Cluster{}
	w.must(before.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: clusterName}, cluster))
	cluster.Status = clusterv1.ClusterStatus{}
	cluster.Status.Initialization.InfrastructureProvisioned = new(true)
	objects := []client.Object{cluster}
	machines, secrets := &clusterv1.MachineList{}, &corev1.SecretList{}
	w.must(before.List(context.Background(), machines))
	w.must(before.List(context.Background(), secrets))
	after := w.hub
	for _, m := range machines.Items {
		w.hub = before
		infra, config := w.infraMachine(m.Name), w.config(m.Name)
		w.hub = after
		delete(infra.Object, "status")
		m.Status, config.Status = clusterv1.MachineStatus{}, bootstrapv1.OpenshiftAssistedConfigStatus{}
		objects = append(objects, &m, config, infra)
	}
	for _, s := range secrets.Items {
		objects = append(objects, &s)
	}
	hosts := &bmov1alpha1.BareMetalHostList{}
	w.must(before.List(context.Background(), hosts))
	for _, h := range hosts.Items {
		objects = append(objects, &h)
	}
	w.moveAll(objects)
	return w
}

// moveAll makes the objects anew, with the UIDs of their new owners.
func (w *world) moveAll(objects []client.Object) {
	uids := map[types.UID]types.UID{}
	for _, o := range objects {
		old := o.GetUID()
		o.SetUID("")
		o.SetResourceVersion("")
		owners := o.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = uids[owners[i].UID]
		}
		o.SetOwnerReferences(owners)
		moved, _ := o.DeepCopyObject().(client.Object)
		w.must(w.hub.Create(context.Background(), o))
		moved.SetResourceVersion(o.GetResourceVersion())
		moved.SetUID(o.GetUID())
		if _, ok := o.(*bmov1alpha1.BareMetalHost); ok {
			w.must(w.hub.Status().Update(context.Background(), moved))
		}
		uids[old] = o.GetUID()
	}
}
