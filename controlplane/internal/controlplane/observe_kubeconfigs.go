// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// installerSuffix is what the Assisted Installer adds to the name of a ClusterDeployment, which is that of its control plane, before it
// adds that of kubeconfigs.
const installerSuffix = "-admin"

// observeKubeconfigs reads the two Secrets that hold a kubeconfig. Without install objects there is the Cluster's at most, from before a
// move.
func (r *Reconciler) observeKubeconfigs(ctx context.Context, v *view.View) error {
	name := sourceName(v)
	if name == "" || v.Life == view.Deleting && !plan.Serves(v) {
		return nil
	}
	namespace := v.ControlPlane.Namespace
	key, err := types.NamespacedName{Namespace: namespace, Name: name}, error(nil)
	if v.Kubeconfigs.Installer, err = kube.GetOrNil[corev1.Secret](ctx, r.InstallerKubeconfigs, key); err != nil {
		return err
	}
	key.Name = secret.Name(v.ClusterName, secret.Kubeconfig)
	if v.Kubeconfigs.Cluster, err = kube.GetOrNil[corev1.Secret](ctx, r.Kubeconfigs, key); err != nil || v.Kubeconfigs.Cluster != nil {
		return err
	}
	// The cache holds labelled Secrets only; one that a user made may have no label.
	v.Kubeconfigs.Cluster, err = kube.GetOrNil[corev1.Secret](ctx, r.APIReader, key)
	return err
}

// observeNamesake looks for the Cluster <control plane>-admin and for a control plane <name> when our Cluster is <name>-admin: the Secret
// <control plane>-admin-kubeconfig, in which the Assisted Installer publishes credentials, is <cluster>-kubeconfig of the one with -admin.
func (r *Reconciler) observeNamesake(ctx context.Context, v *view.View) error {
	tell := func(cluster, controlPlane string) {
		v.Kubeconfigs.Namesake = fmt.Sprintf(
			"Secret %s is for the kubeconfig of Cluster %s and for the installer's credentials of OpenshiftAssistedControlPlane %s: "+
				"rename one of the two",
			secret.Name(cluster, secret.Kubeconfig),
			cluster,
			controlPlane,
		)
	}
	namespace, other := v.ControlPlane.Namespace, v.ControlPlane.Name+installerSuffix
	exists, err := v.ClusterName == other, error(nil)
	if !exists {
		exists, err = kube.Get(ctx, r.Client, types.NamespacedName{Namespace: namespace, Name: other}, &clusterv1.Cluster{})
	}
	if exists {
		tell(other, v.ControlPlane.Name)
	}
	name, admin := strings.CutSuffix(v.ClusterName, installerSuffix)
	if err != nil || exists || !admin || name == "" {
		return err
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if exists, err = kube.Get(ctx, r.Client, key, &controlplanev1.OpenshiftAssistedControlPlane{}); exists {
		tell(v.ClusterName, name)
	}
	return err
}
