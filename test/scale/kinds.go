// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// kind is a kind of object that belongs to a cluster, in the version in which the API server stores it.
type kind struct {
	group, version, kind, resource string
	// clusterScoped objects are found by their names, which begin with the namespace.
	clusterScoped bool
}

func (k kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
}

const (
	agentGroup   = "agent-install.openshift.io"
	clusterGroup = "cluster.x-k8s.io"
	infraGroup   = "infrastructure.cluster.x-k8s.io"
	configGroup  = "bootstrap.cluster.x-k8s.io"
	installGroup = "extensions.hive.openshift.io"
	metal3Group  = "metal3.io"
	hiveGroup    = "hive.openshift.io"
)

// kinds are all that a cluster consists of; what others own comes before what they own.
var kinds = []kind{
	{version: "v1", kind: "Namespace", resource: "namespaces", clusterScoped: true},
	{group: clusterGroup, version: "v1beta2", kind: "Cluster", resource: "clusters"},
	{group: infraGroup, version: "v1beta1", kind: "Metal3Cluster", resource: "metal3clusters"},
	{group: infraGroup, version: "v1beta1", kind: "Metal3MachineTemplate", resource: "metal3machinetemplates"},
	{group: configGroup, version: "v1beta1", kind: "OpenshiftAssistedConfigTemplate", resource: "openshiftassistedconfigtemplates"},
	{
		group: "controlplane.cluster.x-k8s.io", version: "v1beta1", kind: "OpenshiftAssistedControlPlane",
		resource: "openshiftassistedcontrolplanes",
	},
	{group: clusterGroup, version: "v1beta2", kind: "MachineDeployment", resource: "machinedeployments"},
	{group: clusterGroup, version: "v1beta2", kind: "MachineSet", resource: "machinesets"},
	{group: clusterGroup, version: "v1beta2", kind: "Machine", resource: "machines"},
	{group: configGroup, version: "v1beta1", kind: "OpenshiftAssistedConfig", resource: "openshiftassistedconfigs"},
	{group: infraGroup, version: "v1beta1", kind: "Metal3Machine", resource: "metal3machines"},
	{group: metal3Group, version: "v1alpha1", kind: "BareMetalHost", resource: "baremetalhosts"},
	{group: metal3Group, version: "v1alpha1", kind: "HardwareData", resource: "hardwaredata"},
	{group: hiveGroup, version: "v1", kind: "ClusterDeployment", resource: "clusterdeployments"},
	{group: hiveGroup, version: "v1", kind: "ClusterImageSet", resource: "clusterimagesets", clusterScoped: true},
	{group: installGroup, version: "v1beta1", kind: "AgentClusterInstall", resource: "agentclusterinstalls"},
	{group: agentGroup, version: "v1beta1", kind: "AgentServiceConfig", resource: "agentserviceconfigs", clusterScoped: true},
	{group: agentGroup, version: "v1beta1", kind: "InfraEnv", resource: "infraenvs"},
	{group: agentGroup, version: "v1beta1", kind: "NMStateConfig", resource: "nmstateconfigs"},
	{group: agentGroup, version: "v1beta1", kind: "Agent", resource: "agents"},
	{version: "v1", kind: "Secret", resource: "secrets"},
}

// stored is an object in the form in which it goes to etcd.
func stored(o *unstructured.Unstructured) (localcontrolplane.StoredObject, error) {
	for _, k := range kinds {
		if k.gvk() != o.GroupVersionKind() {
			continue
		}
		data, err := json.Marshal(o.Object)
		if err != nil {
			return localcontrolplane.StoredObject{}, fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		return localcontrolplane.StoredObject{
			Group: k.group, Resource: k.resource, Namespace: o.GetNamespace(), Name: o.GetName(), Data: data,
		}, nil
	}
	return localcontrolplane.StoredObject{}, fmt.Errorf("nobody knows where %s %s is stored", o.GroupVersionKind(), o.GetName())
}
