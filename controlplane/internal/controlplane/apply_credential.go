// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// keepCredential looks after <cluster>-kubeconfig: it copies the installer's credential, requests a token, and publishes it. The copy comes
// first, because what is replaced by a token may be all that is left of that credential: without a copy no first token is requested. A
// token is renewed although the copy cannot be written: it would end otherwise, and with it the access of everybody who uses
// <cluster>-kubeconfig.
func (r *Reconciler) keepCredential(ctx context.Context, v *view.View, d kubeconfigDecision, o *outcomes) error {
	err := r.copyInstallerCredential(ctx, v, d)
	if err != nil && v.Kubeconfigs.Token == "" {
		d.issue = nil
	}
	return kerrors.NewAggregate([]error{err, r.publishCredential(ctx, v, d, o)})
}

// publishCredential requests a token and publishes it. Without a token, what the decision says is published.
func (r *Reconciler) publishCredential(ctx context.Context, v *view.View, d kubeconfigDecision, o *outcomes) error {
	if d.issue == nil {
		_, err := r.publishKubeconfig(ctx, v, d, o)
		return err
	}
	current, err := r.unchanged(ctx, v)
	if err != nil || !current {
		return err // The cache was behind, or somebody has just written the Secret: its event triggers the next pass.
	}
	token, err := r.requestToken(ctx, v, *d.issue)
	if err != nil {
		o.notIssued = kube.WithoutValues(err).Error()
		ctrl.LoggerFrom(ctx).Info("No token could be had", "reason", o.notIssued)
		_, err := r.publishKubeconfig(ctx, v, d, o)
		return err
	}
	data, err := render.WithToken(d.issue.into, token.Value)
	if err != nil {
		return fmt.Errorf("make Secret %s: %w", klog.KRef(v.ControlPlane.Namespace, v.ClusterName+"-kubeconfig"), err)
	}
	life, warn := view.LifeOfToken(v.Now, token.Expires), replacesTooEarly(v, d)
	d.publish, d.life, d.holds = data, &life, plan.CredentialToken
	if written, err := r.publishKubeconfig(ctx, v, d, o); err != nil || !written {
		return err
	}
	o.token = &life
	if warn {
		r.event(v, corev1.EventTypeWarning, controlplanev1.EventKubeconfigTokenReplaced, "Publish",
			"The Secret %s-kubeconfig holds a new token, valid until %s, because %s", v.ClusterName, life.Expires.Format(time.RFC3339), d.note)
		return nil
	}
	if !v.Initializing { // The first token comes with the event Initialized, and the condition KubeconfigAvailable tells of it.
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventKubeconfigTokenIssued, "Publish",
			"The Secret %s-kubeconfig holds a new token, valid until %s", v.ClusterName, life.Expires.Format(time.RFC3339))
	}
	return nil
}

// unchanged reports whether <cluster>-kubeconfig is as the pass has read it: a token must not be requested anew because the cache does not
// show yet that it was.
func (r *Reconciler) unchanged(ctx context.Context, v *view.View) (bool, error) {
	key := client.ObjectKey{Namespace: v.ControlPlane.Namespace, Name: v.ClusterName + "-kubeconfig"}
	live, err := kube.GetOrNil[corev1.Secret](ctx, r.APIReader, key)
	if err != nil {
		return false, err
	}
	if live == nil || v.Kubeconfigs.Cluster == nil {
		return live == nil && v.Kubeconfigs.Cluster == nil, nil
	}
	if live.ResourceVersion != v.Kubeconfigs.Cluster.ResourceVersion {
		return false, changedUnseen(live)
	}
	return true, nil
}

// changedUnseen is the error of a Secret that somebody has changed since it was read, if no event tells of that: no cache holds one without
// the label of its Cluster, so that the pass has to be tried again.
func changedUnseen(s *corev1.Secret) error {
	if s.Labels[clusterv1.ClusterNameLabel] != "" {
		return nil
	}
	return fmt.Errorf("write Secret %s: it has changed since it was read", klog.KObj(s))
}

// requestToken requests a token with one kubeconfig after the other.
func (r *Reconciler) requestToken(ctx context.Context, v *view.View, i issuance) (token workload.Token, err error) {
	for _, by := range i.by {
		if by.account {
			if err = r.Credentials.EnsureAccount(ctx, v.ClusterKey(), by.kubeconfig); err != nil {
				continue
			}
		}
		ctrl.LoggerFrom(ctx).Info("Requesting a token", "installerCredential", by.account)
		if token, err = r.Credentials.RequestToken(ctx, v.ClusterKey(), by.kubeconfig, r.TokenLifetime); err == nil {
			return token, nil
		}
	}
	return token, err
}

// copyInstallerCredential writes the Secret that holds the installer's credential for as long as <cluster>-kubeconfig holds a token. It
// moves with the control plane, which owns it.
func (r *Reconciler) copyInstallerCredential(ctx context.Context, v *view.View, d kubeconfigDecision) error {
	if d.copy == nil {
		return nil
	}
	wanted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: v.ControlPlane.Namespace, Name: view.InstallerCredentialsName(v.ControlPlane),
		Labels:          map[string]string{clusterv1.ClusterNameLabel: v.ClusterName},
		OwnerReferences: []metav1.OwnerReference{view.ControllerReference(v.ControlPlane)},
	}, Data: map[string][]byte{assisted.KubeconfigKey: d.copy}}
	existing := v.Kubeconfigs.Copy
	if existing == nil {
		ctrl.LoggerFrom(ctx).Info("Copying the installer's credential", "Secret", klog.KObj(wanted))
		return errorOf("create", wanted, r.Client.Create(ctx, wanted))
	}
	updated := existing.DeepCopy()
	updated.Data = wanted.Data
	updated.OwnerReferences = util.EnsureOwnerRef(updated.OwnerReferences, wanted.OwnerReferences[0])
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	maps.Copy(updated.Labels, wanted.Labels)
	// Locked, as what replaces the installer's credential elsewhere must not be written before this copy is: a conflict is an error here.
	err := r.Client.Patch(ctx, updated, client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{}))
	if kube.IsConflict(err) && changedUnseen(existing) != nil {
		return changedUnseen(existing)
	}
	return errorOf("update", wanted, err)
}

// errorOf is the error of what was done with a Secret; nil when there was none.
func errorOf(done string, s *corev1.Secret, err error) error {
	if err != nil {
		return fmt.Errorf("%s Secret %s: %w", done, klog.KObj(s), err)
	}
	return nil
}

// recordToken records on <cluster>-kubeconfig how long the token in it lives. What is recorded of a token stays with it.
func recordToken(v *view.View, s *corev1.Secret, d kubeconfigDecision) {
	switch {
	case d.life != nil:
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, controlplanev1.KubeconfigTokenAnnotation, d.life.String())
	case v.Kubeconfigs.Cluster != nil && render.TokenOf(d.publish) != "":
		if value, ok := v.Kubeconfigs.Cluster.Annotations[controlplanev1.KubeconfigTokenAnnotation]; ok {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, controlplanev1.KubeconfigTokenAnnotation, value)
		}
	}
}

// tellInstallerCredential records an event when the installer's credential has taken the place of a token.
func (r *Reconciler) tellInstallerCredential(v *view.View, d kubeconfigDecision) {
	if d.holds == plan.CredentialInstaller && v.Credential.Token != nil {
		r.event(v, corev1.EventTypeNormal, controlplanev1.EventInstallerCredentialUsed, "Publish",
			"The Secret %s-kubeconfig holds the installer's credential: %s", v.ClusterName, d.note)
	}
}
