// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Installed is what the annotation InstalledClusterAnnotation records (DESIGN D22).
type Installed struct {
	// Attempt is the number of the installation; see Attempt. The record of an earlier attempt says nothing about the wanted one.
	Attempt string `json:"attempt"`
	// ClusterID is the ID of the OpenShift cluster, which its ClusterVersion has too.
	ClusterID string `json:"clusterID"`
	// InfraID is the ID under which the assisted-service that installed the cluster knew it.
	InfraID string `json:"infraID"`
}

// RecordOf is the record for a control plane whose installation has ended with the metadata.
func RecordOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane, metadata hivev1.ClusterMetadata) Installed {
	return Installed{Attempt: Attempt(controlPlane), ClusterID: metadata.ClusterID, InfraID: metadata.InfraID}
}

// String is the annotation's value.
func (i Installed) String() string {
	value, err := json.Marshal(i)
	if err != nil {
		return "" // Strings can always be encoded.
	}
	return string(value)
}

// InstalledOf returns the record of a control plane, and whether a cluster was installed for the wanted attempt. A record that cannot be
// read counts, with an empty ClusterID that no cluster has: somebody broke it, and to install again would destroy the cluster that it told
// of.
func InstalledOf(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) (record Installed, ok bool) {
	value, ok := controlPlane.Annotations[controlplanev1.InstalledClusterAnnotation]
	if !ok {
		return Installed{}, false
	}
	if err := json.Unmarshal([]byte(value), &record); err != nil {
		return Installed{}, true
	}
	return record, record.Attempt == Attempt(controlPlane)
}

// ImportedKubeconfigName is the name of the Secret by which assisted-service reaches an imported cluster. It is the one that the service
// would choose itself (ASSISTED 1.4).
func ImportedKubeconfigName(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) string {
	return controlPlane.Name + "-admin-kubeconfig"
}

// ImportedClusterDeployment tells assisted-service that the cluster is installed: it takes day-2 hosts at once (ASSISTED 1.4). Deleting it
// is never to touch the cluster, which this management cluster did not install.
func (i Install) ImportedClusterDeployment(record Installed) *hivev1.ClusterDeployment {
	deployment := i.ClusterDeployment()
	deployment.Spec.Installed = true
	deployment.Spec.PreserveOnDelete = true
	deployment.Spec.ClusterMetadata = i.importedMetadata(record)
	return deployment
}

// ImportedAgentClusterInstall is what assisted-service asks for beside an imported ClusterDeployment. Networks and addresses are left out:
// the service refuses to change those of an installed cluster, which it does not know. The hold means nothing for an installed cluster, and
// keeps the service from starting anything should it ever take it for a new one.
func (i Install) ImportedAgentClusterInstall(record Installed) *hiveext.AgentClusterInstall {
	return &hiveext.AgentClusterInstall{
		ObjectMeta: i.meta(),
		Spec: hiveext.AgentClusterInstallSpec{
			ClusterDeploymentRef:  corev1.LocalObjectReference{Name: i.ControlPlane.Name},
			ClusterMetadata:       i.importedMetadata(record),
			ImageSetRef:           &hivev1.ClusterImageSetReference{Name: i.imageSetName()},
			HoldInstallation:      true,
			Networking:            hiveext.Networking{UserManagedNetworking: ptr.To(true)},
			ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: int(ptr.Deref(i.ControlPlane.Spec.Replicas, 0))},
		},
	}
}

func (i Install) importedMetadata(record Installed) *hivev1.ClusterMetadata {
	return &hivev1.ClusterMetadata{
		ClusterID:                record.ClusterID,
		InfraID:                  record.InfraID,
		AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: ImportedKubeconfigName(i.ControlPlane)},
	}
}

// ImportedKubeconfig is the Secret by which assisted-service reaches an imported cluster: a copy of <cluster>-kubeconfig under the key that
// the service reads. It goes with the ClusterDeployment, and has no label of the Cluster (CONTRACT CP-58).
func ImportedKubeconfig(deployment *hivev1.ClusterDeployment, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      deployment.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name,
			Namespace: deployment.Namespace,
			Labels: map[string]string{
				assisted.HiveClusterDeploymentLabel: deployment.Name,
				assisted.HiveSecretTypeLabel:        assisted.HiveSecretTypeKubeconfig,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: hivev1.SchemeGroupVersion.String(), Kind: "ClusterDeployment", Name: deployment.Name, UID: deployment.UID,
			}},
		},
		Data: map[string][]byte{assisted.KubeconfigKey: kubeconfig},
	}
}
