// SPDX-License-Identifier: Apache-2.0

package render

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// ImportedClusterDeployment tells assisted-service that the cluster is installed: it takes day-2 hosts at once (ASSISTED 1.4). Deleting it
// is never to touch the cluster, which this management cluster did not install.
func (i Install) ImportedClusterDeployment(record view.Installed) *hivev1.ClusterDeployment {
	deployment := i.ClusterDeployment()
	deployment.Spec.Installed = true
	deployment.Spec.PreserveOnDelete = true
	deployment.Spec.ClusterMetadata = i.importedMetadata(record)
	return deployment
}

// ImportedAgentClusterInstall is what assisted-service asks for beside an imported ClusterDeployment. Networks and addresses are left out:
// the service refuses to change those of an installed cluster, which it does not know. The hold means nothing for an installed cluster, and
// keeps the service from starting anything should it ever take it for a new one.
func (i Install) ImportedAgentClusterInstall(record view.Installed) *hiveext.AgentClusterInstall {
	return &hiveext.AgentClusterInstall{
		ObjectMeta: i.installMeta(),
		Spec: hiveext.AgentClusterInstallSpec{
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: i.ControlPlane.Name}, ClusterMetadata: i.importedMetadata(record),
			ImageSetRef: &hivev1.ClusterImageSetReference{Name: i.imageSetName()}, HoldInstallation: true,
			Networking:            hiveext.Networking{UserManagedNetworking: ptr.To(true)},
			ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: int(ptr.Deref(i.ControlPlane.Spec.Replicas, 0))},
		},
	}
}

func (i Install) importedMetadata(record view.Installed) *hivev1.ClusterMetadata {
	return &hivev1.ClusterMetadata{
		ClusterID: record.ClusterID, InfraID: record.InfraID,
		AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: view.InstallerKubeconfigName(i.ControlPlane)},
	}
}

// SharedKubeconfig is the Secret by which assisted-service reaches an installed cluster: a kubeconfig under the key that the service reads.
// It goes with the ClusterDeployment, and has no label of the Cluster (CONTRACT CP-58).
func SharedKubeconfig(
	controlPlane *controlplanev1.OpenshiftAssistedControlPlane, deployment *hivev1.ClusterDeployment, kubeconfig []byte,
) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      view.InstallerKubeconfigName(controlPlane),
			Namespace: deployment.Namespace,
			Labels: map[string]string{
				assisted.HiveClusterDeploymentLabel: deployment.Name, assisted.HiveSecretTypeLabel: assisted.HiveSecretTypeKubeconfig,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: hivev1.SchemeGroupVersion.String(), Kind: "ClusterDeployment", Name: deployment.Name, UID: deployment.UID,
			}},
		},
		Data: map[string][]byte{assisted.KubeconfigKey: kubeconfig},
	}
}
