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
)

// installerSuffix is what the Assisted Installer adds to the name of a ClusterDeployment, which is that of its control plane, before it
// adds that of kubeconfigs.
const installerSuffix = "-admin"

// observeKubeconfigs reads the two Secrets that hold a kubeconfig. Without install objects there is the Cluster's at most, from before a
// move.
func (r *Reconciler) observeKubeconfigs(ctx context.Context, s *scope) error {
	name := sourceName(s)
	if name == "" {
		return nil
	}
	namespace := s.controlPlane.Namespace
	source, target := &corev1.Secret{}, &corev1.Secret{}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	exists, err := found(source, key, r.InstallerKubeconfigs.Get(ctx, key, source))
	if err != nil {
		return err
	}
	if exists {
		s.installerKubeconfig = source
	}
	key = types.NamespacedName{Namespace: namespace, Name: secret.Name(s.clusterName, secret.Kubeconfig)}
	exists, err = found(target, key, r.Kubeconfigs.Get(ctx, key, target))
	if err != nil {
		return err
	}
	if !exists {
		// The cache holds labelled Secrets only; one that a user made may have no label.
		if exists, err = found(target, key, r.APIReader.Get(ctx, key, target)); err != nil {
			return err
		}
	}
	if exists {
		s.kubeconfig = target
	}
	return nil
}

// observeNamesake looks for the Cluster <control plane>-admin and for a control plane <name> when our Cluster is <name>-admin: the Secret
// <control plane>-admin-kubeconfig, in which the Assisted Installer publishes credentials, is <cluster>-kubeconfig of the one with -admin.
func (r *Reconciler) observeNamesake(ctx context.Context, s *scope) error {
	tell := func(cluster, controlPlane string) {
		s.namesake = fmt.Sprintf(
			"Secret %s is for the kubeconfig of Cluster %s and for the installer's credentials of OpenshiftAssistedControlPlane %s: "+
				"rename one of the two",
			secret.Name(cluster, secret.Kubeconfig),
			cluster,
			controlPlane,
		)
	}
	namespace, other := s.controlPlane.Namespace, s.controlPlane.Name+installerSuffix
	exists, err := s.clusterName == other, error(nil)
	if !exists {
		o := &clusterv1.Cluster{}
		key := types.NamespacedName{Namespace: namespace, Name: other}
		exists, err = found(o, key, r.Client.Get(ctx, key, o))
	}
	if exists {
		tell(other, s.controlPlane.Name)
	}
	name, admin := strings.CutSuffix(s.clusterName, installerSuffix)
	if err != nil || exists || !admin || name == "" {
		return err
	}
	o := &controlplanev1.OpenshiftAssistedControlPlane{}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if exists, err = found(o, key, r.Client.Get(ctx, key, o)); exists {
		tell(s.clusterName, name)
	}
	return err
}
