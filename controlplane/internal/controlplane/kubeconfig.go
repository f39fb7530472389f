// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// decideKubeconfig compares <cluster>-kubeconfig with the installer's kubeconfig (DESIGN D11, CONTRACT CP-52…CP-58).
func decideKubeconfig(s *scope, d *decision) {
	if s.imported() {
		decideImportedKubeconfig(s, d)
		return
	}
	if foreignKubeconfig(s) {
		return
	}
	if s.kubeconfig != nil && s.initialized() && !sourceKnown(s) {
		return // The objects of the installation may be deleted once the cluster is installed: what was published stays.
	}
	if d.kubeconfigProblem = sourceProblem(s); d.kubeconfigProblem != "" {
		return
	}
	endpoint := s.cluster.Spec.ControlPlaneEndpoint
	data, err := render.RewriteKubeconfig(s.installerKubeconfig.Data[assisted.KubeconfigKey], endpoint.Host,
		net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port))), view.APIName(s.controlPlane.Spec.Install, s.cluster))
	if err != nil {
		d.kubeconfigProblem = fmt.Sprintf("Secret %s cannot be used: %v", s.installerKubeconfig.Name, err)
		return
	}
	if s.kubeconfig == nil || !bytes.Equal(s.kubeconfig.Data[secret.KubeconfigDataName], data) || !ownsKubeconfig(s) {
		d.kubeconfig = data
	}
}

// sourceProblem says why there is no kubeconfig of the installer to publish yet; it is empty when there is one.
func sourceProblem(s *scope) string {
	name := sourceName(s)
	if s.clusterDeployment == nil || name == "" {
		return "Waiting for the Assisted Installer to publish the credentials of the cluster"
	}
	switch {
	case s.installerKubeconfig == nil:
		return fmt.Sprintf("Waiting for Secret %s, in which the Assisted Installer publishes the credentials of the cluster", name)
	case !ownedBy(s.installerKubeconfig, s.clusterDeployment):
		// A Secret of the attempt before: its cluster is gone, and a new one replaces it.
		return fmt.Sprintf("Secret %s does not belong to ClusterDeployment %s", name, s.controlPlane.Name)
	default:
		return ""
	}
}

// sourceName is the name of the Secret with the installer's kubeconfig. The service names it in the AgentClusterInstall; that of an
// installed cluster has the name that the service would choose, also when the AgentClusterInstall is gone. It is empty before.
func sourceName(s *scope) string {
	switch {
	case s.install != nil && s.install.Spec.ClusterMetadata != nil:
		return s.install.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
	case s.installed():
		return view.ImportedKubeconfigName(s.controlPlane)
	default:
		return ""
	}
}

// sourceKnown reports whether the installer's kubeconfig of the living ClusterDeployment is there.
func sourceKnown(s *scope) bool {
	return s.clusterDeployment != nil && s.installerKubeconfig != nil && ownedBy(s.installerKubeconfig, s.clusterDeployment)
}

// decideImportedKubeconfig keeps <cluster>-kubeconfig, which is all that is left of the installer's credentials, and has assisted-service
// use it too (DESIGN D22). Its data is never changed.
func decideImportedKubeconfig(s *scope, d *decision) {
	if s.kubeconfig == nil {
		d.kubeconfigProblem = fmt.Sprintf("Secret %s does not exist: restore it, nothing else leads to the installed cluster",
			secret.Name(s.clusterName, secret.Kubeconfig))
		return
	}
	data := s.kubeconfig.Data[secret.KubeconfigDataName]
	if !foreignKubeconfig(s) && !ownsKubeconfig(s) {
		d.kubeconfig = data
	}
	if s.clusterDeployment == nil || !s.clusterDeployment.DeletionTimestamp.IsZero() || len(data) == 0 {
		return
	}
	if s.installerKubeconfig == nil || !bytes.Equal(s.installerKubeconfig.Data[assisted.KubeconfigKey], data) {
		d.importedKubeconfig = data
	}
}

// ownsKubeconfig reports whether the Secret has our reference, and the label without which no cache of Cluster API or ours sees it.
func ownsKubeconfig(s *scope) bool {
	return metav1.IsControlledBy(s.kubeconfig, s.controlPlane) && s.kubeconfig.Labels[clusterv1.ClusterNameLabel] == s.clusterName
}

// mayWriteKubeconfig reports whether the existing Secret is ours: of Cluster API's type, and controlled by us or, not yet, by anybody
// (CONTRACT CP-55).
func mayWriteKubeconfig(s *scope) bool {
	if s.kubeconfig.Type != clusterv1.ClusterSecretType {
		return false
	}
	return metav1.GetControllerOf(s.kubeconfig) == nil || metav1.IsControlledBy(s.kubeconfig, s.controlPlane)
}

// foreignKubeconfig reports whether <cluster>-kubeconfig exists and belongs to somebody else.
func foreignKubeconfig(s *scope) bool { return s.kubeconfig != nil && !mayWriteKubeconfig(s) }

// defectOf says why nobody can connect to the cluster with the existing Secret; empty when it can be done.
func defectOf(s *scope) string {
	if s.kubeconfig.Labels[clusterv1.ClusterNameLabel] != s.clusterName {
		return fmt.Sprintf("it has no label %s: %s, without which Cluster API does not see it", clusterv1.ClusterNameLabel, s.clusterName)
	}
	data, exists := s.kubeconfig.Data[secret.KubeconfigDataName]
	if !exists {
		return "it has no key " + secret.KubeconfigDataName
	}
	if err := render.CheckKubeconfig(data); err != nil {
		return err.Error()
	}
	return ""
}

// ownedBy reports whether the owner is among the owners of the object.
func ownedBy(o, owner metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
}
