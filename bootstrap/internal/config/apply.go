// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

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
		return r.createInfraEnv(ctx, s)
	case infraEnvJoin:
		if err := r.joinInfraEnv(ctx, s); err != nil {
			return kube.Explained(err, "InfraEnv "+s.infraEnvName)
		}
	case infraEnvKeep:
	}
	return nil
}

// createInfraEnv makes the InfraEnv, unless another config of the same content was first: the event of its InfraEnv brings the next pass,
// which joins. The configs of a cluster come at once, and each would be refused after the first. So passes that want the same InfraEnv at
// the same time share what comes of one request, and one that comes later looks into the cache again.
func (r *Reconciler) createInfraEnv(ctx context.Context, s *scope) error {
	infraEnv := newInfraEnv(s.cluster, s.infraEnvName, s.config, s.inputs)
	key := client.ObjectKeyFromObject(infraEnv)
	_, err, _ := r.creations.Do(key.String(), func() (any, error) {
		existing, err := kube.GetOrNil[assisted.InfraEnv](ctx, r.Client, key, client.UnsafeDisableDeepCopy)
		if err != nil || existing != nil {
			return nil, err
		}
		err = r.Client.Create(ctx, infraEnv)
		if apierrors.IsAlreadyExists(err) {
			return nil, nil
		}
		if err != nil {
			return nil, kube.Explained(err, "InfraEnv "+infraEnv.Name)
		}
		r.event(s.config, bootstrapv1.EventInfraEnvCreated, "Created InfraEnv %s", infraEnv.Name)
		return nil, nil
	})
	return err
}

// joinInfraEnv registers the config as a user of the InfraEnv. It appends to the list without a lock, because all configs of a cluster join
// at once and would refuse each other. The InfraEnv lives when the answer says so: who deletes it does so in the version of a list without
// the config, and is refused from then on (DESIGN D5).
func (r *Reconciler) joinInfraEnv(ctx context.Context, s *scope) error {
	if len(s.infraEnv.OwnerReferences) == 0 { // There is no list to append to.
		return r.setUsers(ctx, s, []metav1.OwnerReference{userReference(s.config)})
	}
	patch, err := kube.JSONPatch(kube.Operation{Op: "add", Path: "/metadata/ownerReferences/-", Value: userReference(s.config)})
	if err != nil {
		return err
	}
	joined := &assisted.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: s.infraEnv.Namespace, Name: s.infraEnv.Name}}
	if err := r.Client.Patch(ctx, joined, patch); err != nil {
		return err
	}
	// Until the cache shows the user, the next pass would append it once more.
	kind := capicontrollerutil.StructuredObject(assisted.GroupVersion, "InfraEnv")
	r.controller.DeferNextReconcileUntilCacheUpToDate(s.config, kind, joined.ResourceVersion)
	if !joined.DeletionTimestamp.IsZero() {
		resource := schema.GroupResource{Group: assisted.GroupVersion.Group, Resource: "infraenvs"}
		return apierrors.NewConflict(resource, joined.Name, errors.New("it is being deleted"))
	}
	return nil
}

// setUsers replaces the users of the InfraEnv, unless it changed since it was read: a concurrent join or deletion wins, and the next pass
// sees it.
func (r *Reconciler) setUsers(ctx context.Context, s *scope, users []metav1.OwnerReference) error {
	return kube.PatchUnchanged(ctx, r.Client, s.infraEnv, func(e *assisted.InfraEnv) { e.OwnerReferences = users })
}
