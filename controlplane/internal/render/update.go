// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// changeable are the fields of an AgentClusterInstall's spec that follow the control plane until the installation begins, with the parts of
// those that others write to, or that a merge patch would mix with what was there.
var changeable = []struct {
	field string
	parts []string
}{
	{field: "apiVIPs"}, {field: "arbiter"}, {field: "compute"}, {field: "controlPlane"},
	{field: "diskEncryption", parts: []string{"enableOn", "mode", "tangServers"}}, {field: "ingressVIPs"}, {field: "loadBalancer"},
	{field: "manifestsConfigMapRefs"}, {field: "mastersSchedulable"}, {field: "mirrorRegistryRef"},
	{field: "networking", parts: []string{"clusterNetwork", "machineNetwork", "networkType", "serviceNetwork"}}, {field: "ntpSources"},
	{field: "proxy", parts: []string{"httpProxy", "httpsProxy", "noProxy"}}, {field: "sshPublicKey"},
}

// changeableAnnotations are those that follow the control plane too.
var changeableAnnotations = []string{
	assisted.IgnoredClusterValidationsAnnotation, assisted.IgnoredHostValidationsAnnotation, assisted.InstallConfigOverridesAnnotation,
}

// InstallUpdate is a merge patch of an AgentClusterInstall.
type InstallUpdate struct {
	Annotations, Spec map[string]any
}

// Object is the AgentClusterInstall as it is created: with the fields that its type does not have, and the record of what is changeable.
func (i Install) Object() (*unstructured.Unstructured, error) {
	install, err := i.AgentClusterInstall()
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(install)
	if err != nil {
		return nil, fmt.Errorf("convert AgentClusterInstall %s: %w", install.Name, err)
	}
	newer, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newerOptions(i.ControlPlane.Spec.Install))
	if err != nil {
		return nil, fmt.Errorf("convert fields of AgentClusterInstall %s: %w", install.Name, err)
	}
	object := &unstructured.Unstructured{Object: fields}
	if err := requireArbiter(object, i.ControlPlane.Spec.Install); err != nil {
		return nil, err
	}
	object.SetGroupVersionKind(hiveext.GroupVersion.WithKind("AgentClusterInstall"))
	delete(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	for field, value := range newer {
		if err := unstructured.SetNestedField(object.Object, value, "spec", field); err != nil {
			return nil, fmt.Errorf("set spec.%s of AgentClusterInstall %s: %w", field, install.Name, err)
		}
	}
	update := updateOf(object)
	record, err := json.Marshal(update)
	if err != nil {
		return nil, fmt.Errorf("encode what is changeable of AgentClusterInstall %s: %w", install.Name, err)
	}
	sum := sha256.Sum256(record)
	annotations := object.GetAnnotations()
	annotations[assisted.InstallSpecAnnotation] = hex.EncodeToString(sum[:8])
	object.SetAnnotations(annotations)
	return object, nil
}

// requireArbiter asks for the arbiter, which the AgentClusterInstall's type does not know. The number never changes, so that nothing else
// writes it.
func requireArbiter(object *unstructured.Unstructured, install controlplanev1.InstallSpec) error {
	if arbiters := view.Arbiters(install); arbiters > 0 {
		return unstructured.SetNestedField(object.Object, int64(arbiters), "spec", "provisionRequirements", "arbiterAgents")
	}
	return nil
}

// Update brings an AgentClusterInstall in line with the control plane; nil when it is.
func (i Install) Update(current *hiveext.AgentClusterInstall) (*InstallUpdate, error) {
	wanted, err := i.Object()
	if err != nil {
		return nil, err
	}
	record := wanted.GetAnnotations()[assisted.InstallSpecAnnotation]
	if current.Annotations[assisted.InstallSpecAnnotation] == record {
		return nil, nil
	}
	update := updateOf(wanted)
	update.Annotations[assisted.InstallSpecAnnotation] = record
	// The service keeps these when they are left out, so what is not wanted any more has to be said.
	if update.Spec["diskEncryption"] == nil && current.Spec.DiskEncryption != nil {
		update.Spec["diskEncryption"] = map[string]any{"enableOn": assisted.EncryptNone, "mode": nil, "tangServers": nil}
	}
	if update.Spec["loadBalancer"] == nil && current.Spec.LoadBalancer != nil {
		update.Spec["loadBalancer"] = map[string]any{"type": string(hiveext.LoadBalancerTypeClusterManaged)}
	}
	return update, nil
}

// RegistrationTimeout is the change of an AgentClusterInstall's annotations by which hosts get another time to register; nil when there is
// none. It is no part of what is installed, so that it follows the control plane at any time.
func (i Install) RegistrationTimeout(current *hiveext.AgentClusterInstall) map[string]any {
	const key = assisted.HostRegistrationTimeoutAnnotation
	wanted, set := i.installMeta().Annotations[key]
	have, known := current.Annotations[key]
	switch {
	case set && have != wanted:
		return map[string]any{key: wanted}
	case !set && known:
		return map[string]any{key: nil} // A merge patch removes what is null.
	default:
		return nil
	}
}

// updateOf is the patch that writes all that is changeable, with null for what an object does not have.
func updateOf(object *unstructured.Unstructured) *InstallUpdate {
	update := &InstallUpdate{Annotations: map[string]any{}, Spec: map[string]any{}}
	spec, _ := object.Object["spec"].(map[string]any)
	for _, c := range changeable {
		value, ok := spec[c.field].(map[string]any)
		if !ok || len(c.parts) == 0 {
			update.Spec[c.field] = spec[c.field]
			continue
		}
		parts := map[string]any{}
		for _, part := range c.parts {
			parts[part] = value[part]
		}
		update.Spec[c.field] = parts
	}
	for _, key := range changeableAnnotations {
		if value, ok := object.GetAnnotations()[key]; ok {
			update.Annotations[key] = value
		} else {
			update.Annotations[key] = nil
		}
	}
	return update
}
