// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// applyNetworks brings the NMStateConfigs of the InfraEnv up to date. It runs before the InfraEnv is made, so that its first image has them
// all.
func (r *Reconciler) applyNetworks(ctx context.Context, s *scope, plan networkPlan) error {
	for i := range plan.remove {
		config := &plan.remove[i]
		if err := kube.DeleteUnchanged(ctx, r.Client, config, "its BareMetalHost has no network data any more"); err != nil {
			return err
		}
		r.eventAbout(
			s.config, config, bootstrapv1.EventNMStateConfigDeleted,
			"Deleted NMStateConfig %s: its BareMetalHost has no network data any more", config.Name,
		)
	}
	for i := range plan.write {
		if err := r.writeNetwork(ctx, s, &plan.write[i]); err != nil {
			return err
		}
	}
	for i := range plan.adopt {
		config := &plan.adopt[i]
		err := kube.Patch(ctx, r.Client, config, func(c *assisted.NMStateConfig) {
			c.OwnerReferences = []metav1.OwnerReference{infraEnvReference(s.infraEnv)}
		})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("give NMStateConfig %s to InfraEnv %s: %w", config.Name, s.infraEnv.Name, err)
		}
	}
	return nil
}

// writeNetwork makes an NMStateConfig, or changes the one that exists, and notes which image it is not in yet. Errors of the API server are
// not passed on as they are where they may quote the document, which comes from a Secret.
func (r *Reconciler) writeNetwork(ctx context.Context, s *scope, config *assisted.NMStateConfig) error {
	host := config.Annotations[bootstrapv1.NMStateHostAnnotation]
	ctrl.LoggerFrom(ctx).Info("Writing NMStateConfig", "NMStateConfig", config.Name, "BareMetalHost", host)
	noteImage(s, config)
	err := r.createOrPatchNetwork(ctx, s, config)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // Another config of the same InfraEnv was first; its event brings the next pass.
	case apierrors.IsInvalid(err):
		return kube.Refusal(
			fmt.Sprintf("the API server refused NMStateConfig %s: correct the network data of BareMetalHost %s", config.Name, host),
		)
	case err != nil:
		return kube.InOwnWords(err, "NMStateConfig "+config.Name)
	}
	r.eventAbout(s.config, config, bootstrapv1.EventNMStateConfigWritten, "Wrote NMStateConfig %s of BareMetalHost %s", config.Name, host)
	return nil
}

func (r *Reconciler) createOrPatchNetwork(ctx context.Context, s *scope, config *assisted.NMStateConfig) error {
	at := slices.IndexFunc(s.nmstates, func(c assisted.NMStateConfig) bool { return c.Name == config.Name })
	if at >= 0 {
		return r.Client.Patch(ctx, config, client.MergeFromWithOptions(&s.nmstates[at], client.MergeFromWithOptimisticLock{}))
	}
	// Owned by the config until there is an InfraEnv, so that it never stays behind.
	config.OwnerReferences = []metav1.OwnerReference{userReference(s.config)}
	if s.infraEnv != nil {
		config.OwnerReferences = []metav1.OwnerReference{infraEnvReference(s.infraEnv)}
	}
	return r.Client.Create(ctx, config)
}
