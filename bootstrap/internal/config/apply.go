// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// outcomes are what came of a decision or a deletion, by subject. A subject whose outcome stops the pass leaves those after it untried.
type outcomes struct {
	record, networks, infraEnv, media, secret, deletion kube.Outcome
}

// err is what the workqueue has to know. It tries again, later each time: nothing that is watched changes when a server answers again.
func (o outcomes) err() error {
	for _, outcome := range []kube.Outcome{o.record, o.networks, o.infraEnv, o.media, o.secret, o.deletion} {
		if err := outcome.Err(); err != nil {
			return err
		}
	}
	return nil
}

// apply carries the decision out. Each step is complete in itself: after a crash the next pass sees what was done and goes on from there.
// What the config publishes is written at the end of the pass.
func (r *Reconciler) apply(ctx context.Context, s *scope, d decision) outcomes {
	o := outcomes{}
	if o.record = r.record(ctx, s, d); o.record.Stops() {
		return o
	}
	if o.networks = kube.OutcomeOf(r.applyNetworks(ctx, s, d.networks)); o.networks.Stops() {
		return o
	}
	if o.infraEnv = kube.OutcomeOf(r.applyInfraEnv(ctx, s, d.infraEnv)); o.infraEnv.Stops() {
		return o
	}
	if d.mediaURL != "" {
		if o.media = kube.OutcomeOf(r.handOverMedia(ctx, s, d.mediaURL)); o.media.Stops() {
			return o
		}
	}
	if d.secret {
		o.secret = r.applySecret(ctx, s, d.fetch)
	}
	return o
}

// record writes the name of the InfraEnv to the config before anything is made, so that a later change of the spec cannot make a second one
// (DESIGN D5), and with it the finalizer of a config that is taken up (CONTRACT BOOT-35).
func (r *Reconciler) record(ctx context.Context, s *scope, d decision) kube.Outcome {
	if d.record == "" && !s.fresh() {
		return kube.Outcome{}
	}
	if s.fresh() {
		controllerutil.AddFinalizer(s.config, bootstrapv1.ConfigFinalizer)
	}
	setRecord(s.config, d)
	outcome := r.saveRecords(ctx, s)
	if outcome.Done() && d.otherOSImage != "" {
		r.event(s.config, bootstrapv1.EventOSImageOfOtherRelease, "%s", d.otherOSImage)
	}
	return outcome
}

// setRecord sets the name of the InfraEnv on the config, and the version of its OS image.
func setRecord(config *bootstrapv1.OpenshiftAssistedConfig, d decision) {
	if d.record == "" {
		return
	}
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.InfraEnvAnnotation, d.record)
	delete(config.Annotations, bootstrapv1.OSImageVersionAnnotation) // That of an InfraEnv whose record somebody has removed.
	if d.osImageVersion != "" {
		config.Annotations[bootstrapv1.OSImageVersionAnnotation] = d.osImageVersion
	}
}

func (r *Reconciler) applyInfraEnv(ctx context.Context, s *scope, step infraEnvStep) error {
	switch step {
	case infraEnvCreate:
		infraEnv := newInfraEnv(s.cluster, s.infraEnvName, s.config, s.inputs)
		err := r.Client.Create(ctx, infraEnv)
		if apierrors.IsAlreadyExists(err) {
			return nil // Another config of the same content was first; its event brings the next pass, which joins.
		}
		if err != nil {
			return kube.Explained(err, "InfraEnv "+infraEnv.Name)
		}
		r.event(s.config, bootstrapv1.EventInfraEnvCreated, "Created InfraEnv %s", infraEnv.Name)
	case infraEnvJoin:
		users := append(otherUsers(s.infraEnv, s.config), userReference(s.config))
		if err := r.setUsers(ctx, s, users); err != nil {
			return kube.Explained(err, "InfraEnv "+s.infraEnvName)
		}
	case infraEnvKeep:
	}
	return nil
}

// setUsers replaces the users of the InfraEnv, unless it changed since it was read: a concurrent join or deletion wins, and the next pass
// sees it.
func (r *Reconciler) setUsers(ctx context.Context, s *scope, users []metav1.OwnerReference) error {
	return kube.PatchUnchanged(ctx, r.Client, s.infraEnv, func(e *assisted.InfraEnv) { e.OwnerReferences = users })
}
