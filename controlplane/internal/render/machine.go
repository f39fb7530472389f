// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// defaultNodeDeletionTimeoutSeconds is used when machineTemplate.spec.deletion does not say how long a Node's deletion is tried.
const defaultNodeDeletionTimeoutSeconds = 10

// MachineObjects makes a Machine and the objects of the same name that it refers to (CONTRACT CP-30…CP-34).
type MachineObjects struct {
	// ControlPlane is the owner.
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// ClusterName is the Cluster's name.
	ClusterName string
	// Name is the name of all three objects.
	Name string
	// FailureDomain is where the Machine is placed, or empty.
	FailureDomain string
	// RemediationFor is the remediation by which the Machine is created; nil when it is created for another reason.
	RemediationFor *view.Remediation
}

// Labels are the labels of all three objects: the template's and the three that Cluster API finds control-plane Machines by.
func (m MachineObjects) Labels() map[string]string {
	labels := maps.Clone(m.ControlPlane.Spec.MachineTemplate.ObjectMeta.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = m.ClusterName
	labels[clusterv1.MachineControlPlaneLabel] = ""
	labels[clusterv1.MachineControlPlaneNameLabel] = format.MustFormatValue(m.ControlPlane.Name)
	return labels
}

// Annotations are the annotations of all three objects: the template's, and the record of what came from the template.
func (m MachineObjects) Annotations() map[string]string {
	template := m.ControlPlane.Spec.MachineTemplate.ObjectMeta
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	if record := recordOf(template); record != "" {
		annotations[controlplanev1.TemplateKeysAnnotation] = record
	}
	return annotations
}

// OwnerReference makes the control plane the owner of the infrastructure machine and the config until Cluster API core gives them to the
// Machine. It is no controller: core refuses to replace one (CONTRACT CP-33).
func (m MachineObjects) OwnerReference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: controlplanev1.GroupVersion.String(), Kind: "OpenshiftAssistedControlPlane", Name: m.ControlPlane.Name,
		UID: m.ControlPlane.UID,
	}
}

// Config is the Machine's OpenshiftAssistedConfig.
func (m MachineObjects) Config() *bootstrapv1.OpenshiftAssistedConfig {
	return &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.ControlPlane.Namespace, Labels: m.Labels(), Annotations: m.Annotations(),
			OwnerReferences: []metav1.OwnerReference{m.OwnerReference()},
		},
		Spec: *m.ControlPlane.Spec.OpenshiftAssistedConfigSpec.DeepCopy(),
	}
}

// Machine is the Machine that is asked for, given the reference to its infrastructure machine. It is created so, and what differs in one
// that exists is changed in place where Cluster API allows it (SpecPatch, MetadataPatch), or makes it outdated (Differences).
func (m MachineObjects) Machine(infrastructure clusterv1.ContractVersionedObjectReference) *clusterv1.Machine {
	annotations := m.Annotations()
	annotations[controlplanev1.InstallAttemptAnnotation] = view.Attempt(m.ControlPlane)
	for _, hook := range view.EtcdHooks(m.ControlPlane) {
		annotations[hook] = ""
	}
	// The bootstrap provider would add it before the host can have an Agent, and removes it when that is gone.
	annotations[bootstrapv1.AgentDeletionHook] = bootstrapv1.AgentDeletionHookOwner
	if m.RemediationFor != nil {
		annotations[controlplanev1.RemediationForAnnotation] = m.RemediationFor.String()
	}
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.ControlPlane.Namespace, Labels: m.Labels(), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{view.ControllerReference(m.ControlPlane)},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: m.ClusterName,
			Version:     m.ControlPlane.Spec.Version,
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: view.ConfigKind, Name: m.Name,
			}},
			InfrastructureRef: infrastructure,
			FailureDomain:     m.FailureDomain,
			MinReadySeconds:   ptr.To[int32](0),
			ReadinessGates:    m.ControlPlane.Spec.MachineTemplate.Spec.ReadinessGates,
			Deletion:          deletionOf(m.ControlPlane.Spec.MachineTemplate.Spec.Deletion),
			Taints:            m.ControlPlane.Spec.MachineTemplate.Spec.Taints,
		},
	}
}

func deletionOf(spec controlplanev1.MachineDeletionSpec) clusterv1.MachineDeletionSpec {
	return clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds: spec.NodeDrainTimeoutSeconds, NodeVolumeDetachTimeoutSeconds: spec.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds: ptr.To(ptr.Deref(spec.NodeDeletionTimeoutSeconds, defaultNodeDeletionTimeoutSeconds)),
	}
}
