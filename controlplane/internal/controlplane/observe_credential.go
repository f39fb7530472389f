// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// observeCredential finds out which credentials of an installed cluster there are, and asks the cluster about them when one is to be
// renewed or the connection is lost. It asks nobody in a steady state.
func (r *Reconciler) observeCredential(ctx context.Context, v *view.View) error {
	if !plan.Serves(v) {
		return nil
	}
	if err := r.observeCopy(ctx, v); err != nil {
		return err
	}
	v.Kubeconfigs.Token = render.TokenOf(publishedKubeconfig(v))
	if !keepsCredential(v) {
		return nil
	}
	cluster, err := v.ClusterKey(), error(nil)
	v.Credential.Connected = r.Credentials.Connected(ctx, cluster)
	// What another cluster says of its certificates and of its ServiceAccount is none of this one's. While the control plane is being deleted
	// nobody asks for its ClusterVersion.
	own := v.Recognized() || v.Life == view.Deleting
	if own {
		v.Credential.Authorities, err = r.Credentials.Authorities(ctx, cluster, r.subscriber(v))
		v.Workload.Problem = errors.Join(v.Workload.Problem, err)
	}
	prepareCredential(v)
	if own && v.Credential.Token != nil {
		v.Credential.AccountMissing, err = r.Credentials.AccountMissing(ctx, cluster, r.subscriber(v))
		v.Workload.Problem = errors.Join(v.Workload.Problem, err)
	}
	if plan.AsksToken(v) {
		v.Credential.TokenAnswer = r.ask(ctx, v, v.Credential.Token)
	}
	if plan.AsksInstaller(v) {
		v.Credential.InstallerAnswer = r.ask(ctx, v, v.Credential.Installer)
		r.askWithCopy(ctx, v)
	}
	return nil
}

// observeCopy reads the Secret with the copy of the installer's credential, or what somebody else has put in its place.
func (r *Reconciler) observeCopy(ctx context.Context, v *view.View) error {
	key, err := types.NamespacedName{Namespace: v.ControlPlane.Namespace, Name: view.InstallerCredentialsName(v.ControlPlane)}, error(nil)
	v.Kubeconfigs.Copy, err = kube.GetOrNil[corev1.Secret](ctx, r.Kubeconfigs, key)
	if err != nil || v.Kubeconfigs.Copy != nil || !v.WantsToken() || foreignKubeconfig(v) {
		return err
	}
	// The cache holds labelled Secrets only; one that a user made may have no label.
	v.Kubeconfigs.Copy, err = kube.GetOrNil[corev1.Secret](ctx, r.APIReader, key)
	return err
}

// askWithCopy takes the copy of the installer's credential when the cluster refuses what somebody has put into <cluster>-kubeconfig, and
// takes the copy.
func (r *Reconciler) askWithCopy(ctx context.Context, v *view.View) {
	answer := v.Credential.InstallerAnswer
	if answer == nil || !answer.Refused || !v.InstalledElsewhere() || v.Credential.Token != nil || v.Kubeconfigs.Cluster == nil {
		return // There is none, or it was the copy that was asked for.
	}
	installer := copied(v)
	if installer == nil {
		return
	}
	answer = r.ask(ctx, v, installer)
	if !plan.Takes(v, answer) {
		v.Credential.CopyAnswer = answer
		return
	}
	v.Credential.Installer, v.Credential.InstallerAnswer = installer, answer
}

// ask asks the cluster; the answer is nil when it does not give one.
func (r *Reconciler) ask(ctx context.Context, v *view.View, kubeconfig []byte) *workload.Answer {
	answer, err := r.Credentials.Ask(ctx, v.ClusterKey(), kubeconfig, serverNames(v, kubeconfig))
	if err != nil {
		v.Credential.Problem = kube.WithoutValues(err)
		return nil
	}
	v.Credential.Problem = nil
	return &answer
}

// serverNames are the names by which the certificate of the cluster's API may verify, the one to prefer first (DESIGN D34).
func serverNames(v *view.View, kubeconfig []byte) []string {
	names := []string{view.APIName(v.ControlPlane.Spec.Install, v.Cluster), view.InternalAPIName(v.ControlPlane.Spec.Install, v.Cluster)}
	if present := render.TrustOf(kubeconfig).Name; present != "" && !slices.Contains(names, present) {
		return append([]string{present}, names...)
	}
	return names
}

// publishedKubeconfig is what <cluster>-kubeconfig holds; nil when it does not exist.
func publishedKubeconfig(v *view.View) []byte {
	if v.Kubeconfigs.Cluster == nil {
		return nil
	}
	return v.Kubeconfigs.Cluster.Data[secret.KubeconfigDataName]
}
