// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"maps"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	hiveagent "github.com/openshift/hive/apis/hive/v1/agent"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Leftovers returns what a control plane of this name of a Cluster of the same name would leave behind if both vanished without their
// finalizers, in the order in which it is to be created. The objects get the labels besides those of their owner.
func Leftovers(namespace, name string, labels map[string]string) []client.Object {
	owned := map[string]string{
		controlplanev1.OwnerNamespaceLabel: namespace, controlplanev1.OwnerNameLabel: name, controlplanev1.OwnerUIDLabel: "vanished",
		clusterv1.ClusterNameLabel: name,
	}
	maps.Copy(owned, labels)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: owned}
	image := namespace + "." + name // DESIGN D13
	return []client.Object{
		&hivev1.ClusterImageSet{
			ObjectMeta: metav1.ObjectMeta{Name: image, Labels: owned},
			Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/example/release:" + OpenShiftVersion},
		},
		&hiveext.AgentClusterInstall{ObjectMeta: meta, Spec: hiveext.AgentClusterInstallSpec{
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: name},
			ImageSetRef:          &hivev1.ClusterImageSetReference{Name: image},
			HoldInstallation:     true,
		}},
		&hivev1.ClusterDeployment{ObjectMeta: meta, Spec: hivev1.ClusterDeploymentSpec{
			ClusterName:   name,
			BaseDomain:    "example.com",
			Platform:      hivev1.Platform{AgentBareMetal: &hiveagent.BareMetalPlatform{}},
			PullSecretRef: &corev1.LocalObjectReference{Name: PullSecretName},
			ClusterInstallRef: &hivev1.ClusterInstallLocalReference{
				Group: hiveext.GroupVersion.Group, Version: hiveext.GroupVersion.Version, Kind: "AgentClusterInstall", Name: name,
			},
		}},
	}
}

// LeftAgent returns an Agent of an InfraEnv that is claimed for a Machine that does not exist.
func LeftAgent(infraEnv *assisted.InfraEnv, name string) client.Object {
	return &assisted.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: infraEnv.Namespace, Name: name,
		Labels:      map[string]string{assisted.InfraEnvLabel: infraEnv.Name},
		Annotations: map[string]string{bootstrapv1.ClaimAnnotation: "vanished/uid"},
	}}
}
