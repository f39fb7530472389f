// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// The JSON types of fields.
const (
	text    = "string"
	boolean = "boolean"
	integer = "integer"
	object  = "object"
)

// fields are paths with dots and their types; [] at the end of a part stands for the items of a list, {} for the values of a map.
type fields map[string]string

// use is what the managers use of one version of a kind.
type use struct {
	crd     string
	version string
	// optional versions need not be served, as long as another version of the CRD in this list is.
	optional bool
	reads    fields
	// writes are fields of objects that the managers make: the schema must not require others beside them.
	writes fields
	// accepts are values that the managers write to fields with a closed list of values.
	accepts map[string]string
}

const (
	crdMetal3Machines         = "metal3machines." + metal3.InfrastructureGroup
	crdMetal3MachineTemplates = "metal3machinetemplates." + metal3.InfrastructureGroup
)

// hostSelectorFields are read of a Metal3Machine of any version.
var hostSelectorFields = fields{
	"spec.hostSelector.matchExpressions[].key":      text,
	"spec.hostSelector.matchExpressions[].operator": text,
	"spec.hostSelector.matchExpressions[].values[]": text,
	"spec.hostSelector.matchLabels{}":               text,
}

// uses lists what the managers use. Kinds that internal/assisted has types of its own for are taken from those types.
var uses = []use{
	{
		crd: assisted.CRDInfraEnvs, version: "v1beta1", writes: fieldsOf(assisted.InfraEnv{}, "Spec"),
		reads:   fieldsOf(assisted.InfraEnv{}, "Status"),
		accepts: map[string]string{"spec.imageType": assisted.ImageTypeFull, "spec.kernelArguments[].operation": assisted.KernelArgumentAppend},
	},
	{
		crd: assisted.CRDAgents, version: "v1beta1", writes: fieldsOf(assisted.Agent{}, "Spec"), reads: fieldsOf(assisted.Agent{}, "Status"),
		accepts: map[string]string{"spec.role": assisted.RoleMaster},
	},
	{
		crd: assisted.CRDNMStateConfigs, version: "v1beta1",
		writes: fields{"spec.config": object, "spec.interfaces[].macAddress": text, "spec.interfaces[].name": text},
	},
	{crd: assisted.CRDAgentServiceConfigs, version: "v1beta1", reads: fieldsOf(assisted.AgentServiceConfig{}, "Spec")},
	{
		crd: assisted.CRDClusterImageSets, version: "v1",
		writes: fields{"spec.releaseImage": text},
	},
	{
		crd: assisted.CRDClusterDeployments, version: "v1",
		writes: fields{
			"spec.baseDomain":                            text,
			"spec.clusterInstallRef.group":               text,
			"spec.clusterInstallRef.kind":                text,
			"spec.clusterInstallRef.name":                text,
			"spec.clusterInstallRef.version":             text,
			"spec.clusterName":                           text,
			"spec.platform.agentBareMetal.agentSelector": object,
			"spec.pullSecretRef.name":                    text,
		},
	},
	{
		crd: assisted.CRDAgentClusterInstalls, version: "v1beta1",
		writes: with(fieldsOf(struct {
			Spec assisted.NewerInstallSpec `json:"spec"`
		}{}, "Spec"), fields{
			"spec.apiVIPs[]":                                text,
			"spec.compute[].hyperthreading":                 text,
			"spec.compute[].name":                           text,
			"spec.controlPlane.hyperthreading":              text,
			"spec.controlPlane.name":                        text,
			"spec.diskEncryption.enableOn":                  text,
			"spec.diskEncryption.mode":                      text,
			"spec.diskEncryption.tangServers":               text,
			"spec.external.cloudControllerManager":          text,
			"spec.external.platformName":                    text,
			"spec.loadBalancer.type":                        text,
			"spec.manifestsConfigMapRefs[].name":            text,
			"spec.mastersSchedulable":                       boolean,
			"spec.mirrorRegistryRef.name":                   text,
			"spec.mirrorRegistryRef.namespace":              text,
			"spec.proxy.httpProxy":                          text,
			"spec.proxy.httpsProxy":                         text,
			"spec.proxy.noProxy":                            text,
			"spec.clusterDeploymentRef.name":                text,
			"spec.holdInstallation":                         boolean,
			"spec.imageSetRef.name":                         text,
			"spec.ingressVIPs[]":                            text,
			"spec.networking.clusterNetwork[].cidr":         text,
			"spec.networking.clusterNetwork[].hostPrefix":   integer,
			"spec.networking.machineNetwork[].cidr":         text,
			"spec.networking.networkType":                   text,
			"spec.networking.serviceNetwork[]":              text,
			"spec.networking.userManagedNetworking":         boolean,
			"spec.platformType":                             text,
			"spec.provisionRequirements.controlPlaneAgents": integer,
			"spec.provisionRequirements.workerAgents":       integer,
			"spec.sshPublicKey":                             text,
		}),
		reads: fields{
			"spec.clusterMetadata.adminKubeconfigSecretRef.name": text,
			"status.conditions[].message":                        text,
			"status.conditions[].reason":                         text,
			"status.conditions[].status":                         text,
			"status.conditions[].type":                           text,
			"status.debugInfo.state":                             text,
			"status.debugInfo.stateInfo":                         text,
			"status.progress.totalPercentage":                    integer,
			"status.validationsInfo{}[].id":                      text,
			"status.validationsInfo{}[].message":                 text,
			"status.validationsInfo{}[].status":                  text,
		},
		accepts: map[string]string{"spec.platformType": "BareMetal", "spec.networking.networkType": "OVNKubernetes"},
	},
	installValues("External", "Cilium", "all", "ClusterManaged"),
	installValues("None", "Calico", "masters", "UserManaged"),
	installValues("None", "CiscoACI", "workers", "UserManaged"),
	installValues("None", "None", "none", "UserManaged"),
	{
		crd: metal3.CRDBareMetalHosts, version: "v1alpha1",
		reads: fields{
			"spec.bootMACAddress":                       text,
			"spec.consumerRef.apiVersion":               text,
			"spec.consumerRef.kind":                     text,
			"spec.consumerRef.name":                     text,
			"spec.consumerRef.namespace":                text,
			"spec.externallyProvisioned":                boolean,
			"spec.networkData.name":                     text,
			"spec.networkData.namespace":                text,
			"spec.online":                               boolean,
			"spec.preprovisioningNetworkDataName":       text,
			"spec.rootDeviceHints.deviceName":           text,
			"spec.rootDeviceHints.hctl":                 text,
			"spec.rootDeviceHints.minSizeGigabytes":     integer,
			"spec.rootDeviceHints.model":                text,
			"spec.rootDeviceHints.rotational":           boolean,
			"spec.rootDeviceHints.serialNumber":         text,
			"spec.rootDeviceHints.vendor":               text,
			"spec.rootDeviceHints.wwn":                  text,
			"spec.rootDeviceHints.wwnVendorExtension":   text,
			"spec.rootDeviceHints.wwnWithExtension":     text,
			"status.errorMessage":                       text,
			"status.errorType":                          text,
			"status.hardware.nics[].mac":                text,
			"status.hardware.nics[].name":               text,
			"status.hardware.systemVendor.serialNumber": text,
			"status.operationHistory.provision.end":     text,
			"status.operationHistory.provision.start":   text,
			"status.provisioning.state":                 text,
		},
	},
	{
		crd: crdMetal3Machines, version: "v1beta1", optional: true, reads: hostSelectorFields,
		writes:  fields{"spec.image.url": text, "spec.image.format": text, "spec.image.checksum": text},
		accepts: map[string]string{"spec.image.format": "live-iso"},
	},
	{
		crd: crdMetal3Machines, version: "v1beta2", optional: true, reads: hostSelectorFields,
		writes:  fields{"spec.image.url": text, "spec.image.diskFormat": text},
		accepts: map[string]string{"spec.image.diskFormat": "live-iso"},
	},
	{crd: crdMetal3MachineTemplates, version: "v1beta1", optional: true, reads: fields{"spec.template.spec": object}},
	{crd: crdMetal3MachineTemplates, version: "v1beta2", optional: true, reads: fields{"spec.template.spec": object}},
}

// installValues are values that the control plane provider writes to AgentClusterInstalls.
func installValues(platform, networkType, encrypted, loadBalancer string) use {
	return use{crd: assisted.CRDAgentClusterInstalls, version: "v1beta1", accepts: map[string]string{
		"spec.platformType": platform, "spec.networking.networkType": networkType, "spec.diskEncryption.enableOn": encrypted,
		"spec.loadBalancer.type": loadBalancer,
	}}
}

// with adds fields to others.
func with(all, more fields) fields {
	maps.Copy(all, more)
	return all
}

// fieldsOf returns the fields below one field (Spec or Status) of a type of internal/assisted.
func fieldsOf(kind any, part string) fields {
	field, _ := reflect.TypeOf(kind).FieldByName(part)
	found := fields{}
	collect(field.Type, jsonName(field), found)
	return found
}

func collect(typ reflect.Type, path string, found fields) {
	switch typ.Kind() {
	case reflect.Pointer:
		collect(typ.Elem(), path, found)
	case reflect.Slice:
		collect(typ.Elem(), path+"[]", found)
	case reflect.Map:
		collect(typ.Elem(), path+"{}", found)
	case reflect.Struct:
		if typ == reflect.TypeFor[metav1.Time]() {
			found[path] = text
			return
		}
		for _, field := range reflect.VisibleFields(typ) {
			collect(field.Type, path+"."+jsonName(field), found)
		}
	case reflect.Bool:
		found[path] = boolean
	case reflect.Int64, reflect.Int32, reflect.Int:
		found[path] = integer
	default:
		found[path] = text
	}
}
