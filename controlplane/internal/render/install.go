// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	hiveagent "github.com/openshift/hive/apis/hive/v1/agent"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// Install is what the objects of one installation are made from.
type Install struct {
	// ControlPlane and Cluster are the owners.
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	Cluster      *clusterv1.Cluster
	// Workers is the number of workers that Cluster API asks for.
	Workers int
}

// ImageSet is the ClusterImageSet of the control plane's own release image.
func (i Install) ImageSet() *hivev1.ClusterImageSet {
	return &hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:   view.ImageSetName(types.NamespacedName{Namespace: i.ControlPlane.Namespace, Name: i.ControlPlane.Name}),
			Labels: view.OwnerLabels(i.ControlPlane),
		},
		Spec: hivev1.ClusterImageSetSpec{ReleaseImage: view.ReleaseImage(i.ControlPlane.Spec)},
	}
}

// ClusterDeployment is the hive object that hosts are bound to (ASSISTED 1.4).
func (i Install) ClusterDeployment() *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: i.meta(),
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: view.OpenshiftClusterName(i.ControlPlane.Spec.Install, i.Cluster),
			BaseDomain:  i.ControlPlane.Spec.Install.BaseDomain,
			ClusterInstallRef: &hivev1.ClusterInstallLocalReference{
				Group: hiveext.GroupVersion.Group, Version: hiveext.GroupVersion.Version, Kind: "AgentClusterInstall",
				Name: i.ControlPlane.Name,
			},
			// hive requires a selector; the service ignores it, and hosts are bound one by one (ASSISTED 1.4).
			Platform: hivev1.Platform{AgentBareMetal: &hiveagent.BareMetalPlatform{
				AgentSelector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: i.Cluster.Name}},
			}},
			PullSecretRef: &corev1.LocalObjectReference{Name: i.ControlPlane.Spec.Install.PullSecretRef.Name},
		},
	}
}

// AgentClusterInstall is the held installation (DESIGN D8), without fields that are newer than its type. It fails when
// spec.install.configOverrides or the capabilities of the control plane do not fit its release.
func (i Install) AgentClusterInstall() (*hiveext.AgentClusterInstall, error) {
	spec := i.ControlPlane.Spec
	platform := view.PlatformOf(spec)
	replicas := int(ptr.Deref(spec.Replicas, 0))
	install := &hiveext.AgentClusterInstall{
		ObjectMeta: i.installMeta(),
		Spec: hiveext.AgentClusterInstallSpec{
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: i.ControlPlane.Name},
			ImageSetRef:          &hivev1.ClusterImageSetReference{Name: i.imageSetName()},
			HoldInstallation:     true,
			Networking:           i.networking(platform),
			PlatformType:         hiveext.PlatformType(platform),
			ProvisionRequirements: hiveext.ProvisionRequirements{
				ControlPlaneAgents: replicas, WorkerAgents: view.FirstWorkers(replicas, i.Workers),
			},
		},
	}
	i.addOptions(&install.Spec)
	if err := addInstallAnnotations(install.Annotations, spec); err != nil {
		return nil, err
	}
	return install, nil
}

func (i Install) imageSetName() string {
	if name := i.ControlPlane.Spec.Release.ImageSetRef.Name; name != "" {
		return name
	}
	return i.ImageSet().Name
}

// meta is the metadata of ClusterDeployment and AgentClusterInstall: both have the control plane's name, and the bootstrap provider finds
// them by the Cluster's label. Labels tell the owner, see controlplanev1.OwnerNamespaceLabel.
func (i Install) meta() metav1.ObjectMeta {
	labels := view.OwnerLabels(i.ControlPlane)
	labels[clusterv1.ClusterNameLabel] = i.Cluster.Name
	if filter, ok := i.ControlPlane.Labels[clusterv1.WatchLabel]; ok {
		labels[clusterv1.WatchLabel] = filter // Who looks after them when the control plane is gone.
	}
	annotations := map[string]string{controlplanev1.InstallAttemptAnnotation: view.Attempt(i.ControlPlane)}
	if twoNode := i.ControlPlane.Spec.Install.TwoNode; twoNode != "" {
		annotations[assisted.TwoNodeAnnotation] = string(twoNode)
	}
	return metav1.ObjectMeta{Name: i.ControlPlane.Name, Namespace: i.ControlPlane.Namespace, Labels: labels, Annotations: annotations}
}

// installMeta is the metadata of the AgentClusterInstall, by which the bootstrap provider knows how long hosts may take to register.
func (i Install) installMeta() metav1.ObjectMeta {
	meta := i.meta()
	if timeout := i.ControlPlane.Spec.Install.HostRegistrationTimeoutSeconds; timeout != nil {
		meta.Annotations[assisted.HostRegistrationTimeoutAnnotation] = strconv.Itoa(int(*timeout))
	}
	return meta
}

func (i Install) networking(platform controlplanev1.Platform) hiveext.Networking {
	networking := networksOf(i.ControlPlane.Spec, i.Cluster).Render()
	if platform != controlplanev1.PlatformBareMetal {
		networking.UserManagedNetworking = ptr.To(true)
	}
	return networking
}
