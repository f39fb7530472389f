// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// kubeconfigDecision is about the Secrets with a kubeconfig of the cluster.
type kubeconfigDecision struct {
	// publish is what <cluster>-kubeconfig has to hold; nil when it is right already or cannot be made, for which problem says why.
	publish []byte
	problem string
	// share is the data to write to the Secret by which assisted-service reaches an installed cluster; nil if it is up to date.
	share []byte

	// Of an installed cluster: copy is the data to write to the Secret with the copy of the installer's credential, nil if it is up to date.
	copy []byte
	// issue says how a token is requested, nil when none is; what is published then holds it.
	issue *issuance
	// holds is what <cluster>-kubeconfig holds without a new token, life is how long its token lives when it is a new one, and note says what
	// there is to say about it.
	holds plan.CredentialKind
	life  *view.TokenLife
	note  string
	// at is when the next pass is due; zero when none is.
	at time.Time
}

// decideKubeconfig compares <cluster>-kubeconfig with the installer's kubeconfig (DESIGN D11, CONTRACT CP-52…CP-58).
func decideKubeconfig(v *view.View) kubeconfigDecision {
	if v.Life.Installed() && v.InstalledElsewhere() {
		return decideImportedKubeconfig(v)
	}
	if foreignKubeconfig(v) {
		return kubeconfigDecision{}
	}
	if v.Kubeconfigs.Token != "" {
		// Only the record of the installed cluster is missing in this pass, and comes back: the token stays.
		return kubeconfigDecision{}
	}
	published := v.Kubeconfigs.Cluster
	if published != nil && v.Initialized() && !sourceKnown(v) {
		// The objects of the installation may be deleted once the cluster is installed: what was published stays.
		return kubeconfigDecision{}
	}
	if problem := sourceProblem(v); problem != "" {
		return kubeconfigDecision{problem: problem}
	}
	data, err := rewritten(v)
	if err != nil {
		return kubeconfigDecision{problem: fmt.Sprintf("Secret %s cannot be used: %v", v.Kubeconfigs.Installer.Name, err)}
	}
	if published != nil && bytes.Equal(published.Data[secret.KubeconfigDataName], data) && ownsKubeconfig(v) {
		return kubeconfigDecision{}
	}
	if tokenFollows(v) {
		return kubeconfigDecision{}
	}
	return kubeconfigDecision{publish: data}
}

// tokenFollows reports whether <cluster>-kubeconfig stays as it is for now, because a pass that follows publishes a token with the
// installer's completed kubeconfig: one write instead of two. assisted-service completes its kubeconfig at the end of the installation,
// and sets adminPasswordSecretRef then (ASSISTED fact 7). The next pass that finds the cluster recorded asks its API through
// <cluster>-kubeconfig. If the API answers, that pass publishes the token; if not, it publishes the completed kubeconfig alone.
func tokenFollows(v *view.View) bool {
	if !v.WantsToken() || v.Record != nil || v.Kubeconfigs.Cluster == nil || v.Install.AgentClusterInstall == nil {
		return false
	}
	metadata := v.Install.AgentClusterInstall.Spec.ClusterMetadata
	return metadata != nil && metadata.AdminPasswordSecretRef != nil && ownsKubeconfig(v) && defectOf(v) == ""
}

// sourceProblem says why there is no kubeconfig of the installer to publish yet; it is empty when there is one.
func sourceProblem(v *view.View) string {
	name := sourceName(v)
	if v.Install.ClusterDeployment == nil || name == "" {
		return "Waiting for the Assisted Installer to publish the credentials of the cluster"
	}
	switch {
	case v.Kubeconfigs.Installer == nil:
		return fmt.Sprintf("Waiting for Secret %s, in which the Assisted Installer publishes the credentials of the cluster", name)
	case !kube.OwnedBy(v.Kubeconfigs.Installer, v.Install.ClusterDeployment):
		// A Secret of the attempt before: its cluster is gone, and a new one replaces it.
		return fmt.Sprintf("Secret %s does not belong to ClusterDeployment %s", name, v.ControlPlane.Name)
	default:
		return ""
	}
}

// sourceName is the name of the Secret with the installer's kubeconfig. The service names it in the AgentClusterInstall; that of an
// installed cluster has the name that the service would choose, also when the AgentClusterInstall is gone. It is empty before.
func sourceName(v *view.View) string {
	switch {
	case v.Install.AgentClusterInstall != nil && v.Install.AgentClusterInstall.Spec.ClusterMetadata != nil:
		return v.Install.AgentClusterInstall.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
	case plan.Serves(v):
		return view.InstallerKubeconfigName(v.ControlPlane)
	default:
		return ""
	}
}

// sourceKnown reports whether the installer's kubeconfig of the living ClusterDeployment is there.
func sourceKnown(v *view.View) bool {
	return v.Install.ClusterDeployment != nil && v.Kubeconfigs.Installer != nil &&
		kube.OwnedBy(v.Kubeconfigs.Installer, v.Install.ClusterDeployment)
}

// decideImportedKubeconfig keeps <cluster>-kubeconfig, which is all that is left of the installer's credentials, and has assisted-service
// use it too (DESIGN D22). Its data is not changed before the cluster's API has answered.
func decideImportedKubeconfig(v *view.View) kubeconfigDecision {
	published := v.Kubeconfigs.Cluster
	if published == nil {
		return kubeconfigDecision{problem: kubeconfigLost(v)}
	}
	var d kubeconfigDecision
	data := published.Data[secret.KubeconfigDataName]
	if !foreignKubeconfig(v) && !ownsKubeconfig(v) {
		d.publish = data
	}
	d.decideShare(v, data)
	return d
}

// decideShare sets what assisted-service has to reach an installed cluster with, unless it has that. Of a cluster that the service has
// installed it writes that itself, and not again when somebody has deleted it: without it, no host that comes later is ever installed
// (ASSISTED 1.4), so the copy of the installer's credential takes its place. Of an imported cluster it is <cluster>-kubeconfig. Whoever may
// write that could have the service run a program, or send a file of its Pod to a server of their choice: it gets no kubeconfig that we
// would not use. One that leads to another cluster would have it delete Nodes there.
func (d *kubeconfigDecision) decideShare(v *view.View, published []byte) {
	deployment := v.Install.ClusterDeployment
	switch {
	case deployment == nil || !deployment.DeletionTimestamp.IsZero():
		return
	case !v.InstalledElsewhere():
		if v.Kubeconfigs.Installer == nil && v.Kubeconfigs.Namesake == "" {
			d.share = v.Credential.Installer
		}
		return
	case len(published) == 0, v.Life == view.Mismatch, v.Workload.OtherCluster != "":
		return
	}
	if err := render.CheckKubeconfig(published); err != nil {
		d.problem = cmp.Or(d.problem, fmt.Sprintf("Secret %s is not given to the Assisted Installer: %v", v.Kubeconfigs.Cluster.Name, err))
		return
	}
	if v.Kubeconfigs.Installer == nil || !bytes.Equal(v.Kubeconfigs.Installer.Data[assisted.KubeconfigKey], published) {
		d.share = published
	}
}

func kubeconfigLost(v *view.View) string {
	return fmt.Sprintf("Secret %s does not exist: restore it, nothing else leads to the installed cluster",
		secret.Name(v.ClusterName, secret.Kubeconfig))
}

// ownsKubeconfig reports whether the Secret has our reference, and the label without which no cache of Cluster API or ours sees it.
func ownsKubeconfig(v *view.View) bool {
	return metav1.IsControlledBy(v.Kubeconfigs.Cluster, v.ControlPlane) &&
		v.Kubeconfigs.Cluster.Labels[clusterv1.ClusterNameLabel] == v.ClusterName
}

// mayWriteKubeconfig reports whether the existing Secret is ours: of Cluster API's type, and controlled by us or, not yet, by anybody
// (CONTRACT CP-55).
func mayWriteKubeconfig(v *view.View) bool {
	if v.Kubeconfigs.Cluster.Type != clusterv1.ClusterSecretType {
		return false
	}
	return metav1.GetControllerOf(v.Kubeconfigs.Cluster) == nil || metav1.IsControlledBy(v.Kubeconfigs.Cluster, v.ControlPlane)
}

// foreignKubeconfig reports whether <cluster>-kubeconfig exists and belongs to somebody else.
func foreignKubeconfig(v *view.View) bool {
	return v.Kubeconfigs.Cluster != nil && !mayWriteKubeconfig(v)
}

// defectOf says why nobody can connect to the cluster with the Secret <cluster>-kubeconfig; it is empty when the Secret is in order.
func defectOf(v *view.View) string {
	if v.Kubeconfigs.Cluster.Labels[clusterv1.ClusterNameLabel] != v.ClusterName {
		return fmt.Sprintf("it has no label %s: %s, without which Cluster API does not see it", clusterv1.ClusterNameLabel, v.ClusterName)
	}
	data, exists := v.Kubeconfigs.Cluster.Data[secret.KubeconfigDataName]
	if !exists {
		return "it has no key " + secret.KubeconfigDataName
	}
	if err := render.CheckKubeconfig(data); err != nil {
		return err.Error()
	}
	return ""
}
