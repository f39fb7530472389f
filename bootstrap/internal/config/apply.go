// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/fact"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/ignition"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// apply carries the decision out. Each step is complete in itself: after a crash the next pass sees what was done and goes on from there.
func (r *Reconciler) apply(ctx context.Context, s *scope) error {
	if s.decision.record != "" {
		// Nothing is made before the name is recorded, so that a later change of the spec cannot make a second InfraEnv (DESIGN D5). The patch at
		// the end of the pass records it, and triggers the pass that goes on. A patch of its own would change the resource version beneath that
		// one, which would then fail with a conflict as soon as the host controller writes too.
		metav1.SetMetaDataAnnotation(&s.config.ObjectMeta, bootstrapv1.InfraEnvAnnotation, s.decision.record)
		return nil
	}
	if err := r.applyNetworks(ctx, s); err != nil {
		return err
	}
	if err := r.applyInfraEnv(ctx, s); err != nil {
		return err
	}
	if s.decision.mediaURL != "" {
		if err := r.handOverMedia(ctx, s); err != nil {
			return err
		}
	}
	if s.decision.secret {
		if err := r.ensureSecret(ctx, s); err != nil {
			return err
		}
	}
	if s.decision.publish {
		// Name and flag go out in one patch, after the Secret exists (CONTRACT BOOT-25).
		s.config.Status.DataSecretName = ptr.Deref(s.machine.Spec.Bootstrap.DataSecretName, s.config.Name)
		s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
	}
	// The workqueue tries again, later each time: nothing that is watched changes when a server answers again.
	return s.userDataErr
}

func (r *Reconciler) applyInfraEnv(ctx context.Context, s *scope) error {
	switch s.decision.infraEnv {
	case infraEnvCreate:
		infraEnv := newInfraEnv(s.cluster, s.infraEnvName, s.config, s.inputs)
		err := r.Client.Create(ctx, infraEnv)
		if apierrors.IsAlreadyExists(err) {
			return nil // Another config of the same content was first; its event brings the next pass, which joins.
		}
		if err != nil {
			return fmt.Errorf("create InfraEnv %s: %w", infraEnv.Name, err)
		}
		r.event(s.config, bootstrapv1.EventInfraEnvCreated, "Created InfraEnv %s", infraEnv.Name)
	case infraEnvJoin:
		users := append(otherUsers(s.infraEnv, s.config), userReference(s.config))
		if err := r.setUsers(ctx, s, users); err != nil {
			return fmt.Errorf("join InfraEnv %s: %w", s.infraEnvName, err)
		}
	case infraEnvKeep:
	}
	return nil
}

// setUsers replaces the users of the InfraEnv, unless it changed since it was read: a concurrent join or deletion wins, and the next pass
// sees it.
func (r *Reconciler) setUsers(ctx context.Context, s *scope, users []metav1.OwnerReference) error {
	before := s.infraEnv.DeepCopy()
	s.infraEnv.OwnerReferences = users
	return r.Client.Patch(ctx, s.infraEnv, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// errImageURLTooLong: no served version of the infrastructure machine takes an image URL of this length.
var errImageURLTooLong = errors.New("image URL is too long for every served version of the infrastructure machine")

// handOverMedia writes the live ISO to the infrastructure machine.
func (r *Reconciler) handOverMedia(ctx context.Context, s *scope) error {
	machine, err := r.writableAs(s.infraMachine, s.decision.mediaURL)
	if errors.Is(err, errImageURLTooLong) {
		s.decision.dataSecret = fact.Waiting(bootstrapv1.ImageURLTooLongReason,
			"the image URL of InfraEnv %s has %d bytes and the API of %s takes %d: shorten the URL at which assisted-service serves images",
			s.infraEnvName, len(s.decision.mediaURL), s.infraMachine.GetKind(), metal3.MaxImageURLLength)
		return nil
	}
	if err != nil {
		return err
	}
	before := machine.DeepCopy()
	if err := metal3.SetLiveISO(machine, s.decision.mediaURL); err != nil {
		return err
	}
	err = r.Client.Patch(ctx, machine, client.MergeFrom(before))
	if apierrors.IsInvalid(err) {
		// The API server's message quotes the URL, which lets its reader boot into the cluster (docs/security.md).
		return fmt.Errorf(
			"the API server refused the live ISO of InfraEnv %s on %s %s: look for other required fields of spec.image", s.infraEnvName,
			machine.GetKind(), machine.GetName(),
		)
	}
	if err != nil {
		return fmt.Errorf("write the live ISO to %s %s: %w", machine.GetKind(), machine.GetName(), err)
	}
	note := ""
	if !metal3.IsLiveISO(s.infraMachine) {
		// Somebody who meant boot mode UserData sees it here.
		note = fmt.Sprintf(", in place of the disk image that its template names: spec.boot.mode is %s", bootstrapv1.BootModeLiveISO)
	}
	r.event(
		s.config, bootstrapv1.EventBootMediaPublished, "Wrote the live ISO of InfraEnv %s to %s %s%s", s.infraEnvName, machine.GetKind(),
		machine.GetName(), note,
	)
	return nil
}

// writableAs returns the infrastructure machine in an API version that takes a URL of this length (METAL3 M3-20): v1beta2 has a limit and
// v1beta1 has none. The spec of the copy is empty but for what the patch sets, since field names differ between the versions.
func (r *Reconciler) writableAs(machine *unstructured.Unstructured, url string) (*unstructured.Unstructured, error) {
	gvk := machine.GroupVersionKind()
	if len(url) <= metal3.MaxImageURLLength || gvk.Version == "v1beta1" {
		return machine.DeepCopy(), nil
	}
	mapping, err := r.Client.RESTMapper().RESTMapping(gvk.GroupKind(), "v1beta1")
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("look up served versions of %s: %w", gvk.Kind, err)
	}
	if err != nil || mapping.GroupVersionKind.Version != "v1beta1" {
		return nil, errImageURLTooLong
	}
	older := &unstructured.Unstructured{}
	older.SetGroupVersionKind(gvk.GroupKind().WithVersion("v1beta1"))
	older.SetNamespace(machine.GetNamespace())
	older.SetName(machine.GetName())
	return older, nil
}

// ensureSecret creates the bootstrap data Secret, or takes back one that lost its owner. It is named as the config, because Metal3 guesses
// that name in half of all cases (METAL3 M3-4), and its data never changes once it exists (CONTRACT BOOT-26).
func (r *Reconciler) ensureSecret(ctx context.Context, s *scope) error {
	defer r.secrets.forget(s)
	if s.secret != nil {
		before := s.secret.DeepCopy()
		if err := controllerutil.SetControllerReference(s.config, s.secret, r.Client.Scheme()); err != nil {
			return fmt.Errorf("own bootstrap data Secret %s: %w", s.secret.Name, err)
		}
		metav1.SetMetaDataLabel(&s.secret.ObjectMeta, clusterv1.ClusterNameLabel, s.cluster.Name)
		if err := r.Client.Patch(ctx, s.secret, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("repair bootstrap data Secret %s: %w", s.secret.Name, err)
		}
		return nil
	}
	data, err := bootstrapData(s)
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
	if err := controllerutil.SetControllerReference(s.config, secret, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own bootstrap data Secret %s: %w", secret.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Creating bootstrap data Secret", "Secret", secret.Name)
	if err := r.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("create bootstrap data Secret %s: %w", secret.Name, err)
	}
	r.event(s.config, bootstrapv1.EventDataSecretCreated, "Created bootstrap data Secret %s", secret.Name)
	return nil
}

// bootstrapData is what the Secret holds.
func bootstrapData(s *scope) ([]byte, error) {
	if boots(s) == bootstrapv1.BootModeUserData {
		return s.userData, nil
	}
	return ignition.LiveISO()
}

// applyDeletion gives the InfraEnv up and lets the config go.
func (r *Reconciler) applyDeletion(ctx context.Context, s *scope) error {
	if s.deletion.leave {
		if err := r.leaveInfraEnv(ctx, s); err != nil {
			return err
		}
	}
	if s.deletion.finish {
		controllerutil.RemoveFinalizer(s.config, bootstrapv1.ConfigFinalizer)
	}
	return nil
}

// leaveInfraEnv removes the config from the users of its InfraEnv, or deletes the InfraEnv when it is the last one. Both fail with a
// conflict if somebody joined meanwhile.
func (r *Reconciler) leaveInfraEnv(ctx context.Context, s *scope) error {
	others := otherUsers(s.infraEnv, s.config)
	if len(others) > 0 {
		if err := r.setUsers(ctx, s, others); err != nil {
			return fmt.Errorf("leave InfraEnv %s: %w", s.infraEnv.Name, err)
		}
		return nil
	}
	return kube.DeleteUnchanged(ctx, r.Client, s.infraEnv, "its last config is being deleted")
}
