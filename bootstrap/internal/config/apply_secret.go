// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/discovery"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/ignition"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// applySecret makes the bootstrap data Secret, as soon as what is in it has been fetched.
func (r *Reconciler) applySecret(ctx context.Context, s *scope, fetch bool) kube.Outcome {
	err := r.ensureSecret(ctx, s, fetch)
	if errors.Is(err, discovery.ErrPending) {
		return kube.Awaited()
	}
	return kube.OutcomeOf(err)
}

// ensureSecret creates the bootstrap data Secret, or takes back one that lost its owner. It is named as the config, because Metal3 guesses
// that name in half of all cases (METAL3 M3-4), and its data never changes once it exists (CONTRACT BOOT-26).
func (r *Reconciler) ensureSecret(ctx context.Context, s *scope, fetch bool) error {
	defer r.secrets.forget(s)
	if s.secret != nil {
		return r.repairSecret(ctx, s)
	}
	data, err := r.bootstrapData(ctx, s, fetch)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      s.config.Name,
			Namespace: s.config.Namespace,
			Labels:    map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": data, "format": []byte(ignition.Format)},
	}
	if fetch {
		secret.Annotations = map[string]string{bootstrapv1.InfraEnvUIDAnnotation: string(s.infraEnv.UID)}
	}
	if err := controllerutil.SetControllerReference(s.config, secret, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own bootstrap data Secret %s: %w", secret.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Creating bootstrap data Secret", "Secret", secret.Name)
	if err := r.Client.Create(ctx, secret); err != nil {
		return kube.InOwnWords(err, "bootstrap data Secret "+secret.Name)
	}
	if fetch { // For a live ISO, condition DataSecretAvailable says that the Secret exists.
		r.event(s.config, bootstrapv1.EventDataSecretCreated, "Created bootstrap data Secret %s with the discovery ignition", secret.Name)
	}
	return nil
}

// repairSecret makes the bootstrap data Secret the config's own again.
func (r *Reconciler) repairSecret(ctx context.Context, s *scope) error {
	repaired := s.secret.DeepCopy()
	if err := controllerutil.SetControllerReference(s.config, repaired, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own bootstrap data Secret %s: %w", s.secret.Name, err)
	}
	metav1.SetMetaDataLabel(&repaired.ObjectMeta, clusterv1.ClusterNameLabel, s.cluster.Name)
	if err := r.Client.Patch(ctx, repaired, client.MergeFrom(s.secret)); err != nil {
		return kube.InOwnWords(err, "bootstrap data Secret "+s.secret.Name)
	}
	return nil
}

// bootstrapData is what the Secret holds.
func (r *Reconciler) bootstrapData(ctx context.Context, s *scope, fetch bool) ([]byte, error) {
	if !fetch {
		return ignition.LiveISO()
	}
	data, err := r.Ignitions.Lookup(ctx, client.ObjectKeyFromObject(s.config), artifactURL(s))
	if err != nil {
		return nil, fmt.Errorf("fetch the discovery ignition of InfraEnv %s: %w", s.infraEnvName, err)
	}
	return data, nil
}
