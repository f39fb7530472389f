// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// templateKeys is the value of TemplateKeysAnnotation. A record is needed because the manager's cache does not hold managedFields, so that
// server-side apply could not tell without a request on every pass that there is nothing to do.
type templateKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// recordOf is the value of TemplateKeysAnnotation for a template's metadata; empty when it has neither labels nor annotations.
func recordOf(template clusterv1.ObjectMeta) string {
	if len(template.Labels) == 0 && len(template.Annotations) == 0 {
		return ""
	}
	record, err := json.Marshal(templateKeys{
		Labels: slices.Sorted(maps.Keys(template.Labels)), Annotations: slices.Sorted(maps.Keys(template.Annotations)),
	})
	if err != nil {
		return "" // Lists of strings can always be encoded.
	}
	return string(record)
}

// MetadataPatch is the merge patch that brings labels and annotations of an object in line with the template, or nil when they are.
func (m MachineObjects) MetadataPatch(o metav1.Object) map[string]any {
	var old templateKeys
	if err := json.Unmarshal([]byte(o.GetAnnotations()[controlplanev1.TemplateKeysAnnotation]), &old); err != nil {
		old = templateKeys{} // There is no record, or somebody broke it: nothing is removed then.
	}
	metadata := map[string]any{}
	if labels := mapPatch(o.GetLabels(), m.Labels(), old.Labels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	former := old.Annotations
	if recordOf(m.ControlPlane.Spec.MachineTemplate.ObjectMeta) == "" {
		former = append(slices.Clone(former), controlplanev1.TemplateKeysAnnotation)
	}
	if annotations := mapPatch(o.GetAnnotations(), m.Annotations(), former); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if len(metadata) == 0 {
		return nil
	}
	return map[string]any{"metadata": metadata}
}

// MachineMetadataPatch is MetadataPatch for a Machine that is not being deleted, whose hooks of etcd are added where they are
// missing: the Machines of clusters that were installed before there were any have none.
func (m MachineObjects) MachineMetadataPatch(machine *clusterv1.Machine) map[string]any {
	patch := m.MetadataPatch(machine)
	missing := slices.DeleteFunc(view.EtcdHooks(m.ControlPlane), func(hook string) bool {
		_, has := machine.Annotations[hook]
		return has
	})
	if len(missing) == 0 {
		return patch
	}
	if patch == nil {
		patch = map[string]any{"metadata": map[string]any{}}
	}
	metadata, _ := patch["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	for _, hook := range missing {
		annotations[hook] = ""
	}
	return patch
}

// SpecPatch is the merge patch of the parts of a Machine's spec that change in place, or nil: the deletion time-outs, taints, readiness
// gates, minReadySeconds, and the version while there is no Node, or once the Node is known to run what the control plane asks for
// (CONTRACT CP-42…CP-44): a version that was wrong from the beginning can be corrected, and Cluster API sees no upgrade in it (CP-70). Of a
// Machine that is being deleted only the first two change (CP-46).
func (m MachineObjects) SpecPatch(machine *clusterv1.Machine) map[string]any {
	wanted, have := m.Machine(machine.Spec.InfrastructureRef).Spec, machine.Spec
	spec := map[string]any{}
	if !equality.Semantic.DeepEqual(wanted.Deletion, have.Deletion) {
		// Nulls, not absent fields: a merge patch leaves what it does not name.
		spec["deletion"] = map[string]any{
			"nodeDrainTimeoutSeconds":        wanted.Deletion.NodeDrainTimeoutSeconds,
			"nodeVolumeDetachTimeoutSeconds": wanted.Deletion.NodeVolumeDetachTimeoutSeconds,
			"nodeDeletionTimeoutSeconds":     wanted.Deletion.NodeDeletionTimeoutSeconds,
		}
	}
	if !equality.Semantic.DeepEqual(wanted.Taints, have.Taints) {
		spec["taints"] = wanted.Taints
	}
	if machine.DeletionTimestamp.IsZero() {
		if !equality.Semantic.DeepEqual(wanted.ReadinessGates, have.ReadinessGates) {
			spec["readinessGates"] = wanted.ReadinessGates
		}
		if !ptr.Equal(have.MinReadySeconds, wanted.MinReadySeconds) {
			spec["minReadySeconds"] = *wanted.MinReadySeconds
		}
		if have.Version != wanted.Version && (!view.HasNode(machine) || view.KubeletVersion(machine) == wanted.Version) {
			spec["version"] = wanted.Version
		}
	}
	if len(spec) == 0 {
		return nil
	}
	return map[string]any{"spec": spec}
}

// mapPatch is the merge patch from have to wanted, which removes those of the former keys that are wanted no more.
func mapPatch(have, wanted map[string]string, former []string) map[string]any {
	patch := map[string]any{}
	for key, value := range wanted {
		if current, ok := have[key]; !ok || current != value {
			patch[key] = value
		}
	}
	for _, key := range former {
		_, exists := have[key]
		if _, keep := wanted[key]; exists && !keep {
			patch[key] = nil
		}
	}
	return patch
}
