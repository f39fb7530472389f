// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// dataSecretRetry is how long it may go unnoticed that somebody else's Secret of the config's name is gone.
const dataSecretRetry = time.Minute

// mediaToHandOver returns the live ISO's URL that the infrastructure machine lacks, or "". The disk image of boot mode UserData is the
// user's. Until a host has the image a new URL is taken over; afterwards the image is never touched again (METAL3 M3-23).
func mediaToHandOver(s *scope) string {
	if boots(s) != bootstrapv1.BootModeLiveISO || s.infraMachine == nil || metal3.Taken(s.infraMachine, s.hosts) ||
		metal3.HasLiveISO(s.infraMachine, s.infraEnv.Status.ISODownloadURL) {
		return ""
	}
	return s.infraEnv.Status.ISODownloadURL
}

// tooLong reports whether the API version in which the infrastructure machine was read does not take an image URL (METAL3 M3-20).
func tooLong(machine *unstructured.Unstructured, url string) bool {
	return len(url) > metal3.MaxImageURLLength && machine.GroupVersionKind().Version != metal3.UnlimitedVersion
}

// belongsToOther reports whether the Secret of the config's name was made by somebody else. Without an owner it is the config's own after a
// move or a restore (CONTRACT BOOT-22), if the config has published it or the Machine names it, and it is of Cluster API's type and not
// labelled for another Cluster. Any other one is a user's: hosts would boot with what is in it, and it would go with the config.
func belongsToOther(s *scope) bool {
	if s.secret == nil || metav1.IsControlledBy(s.secret, s.config) {
		return false
	}
	cluster, labelled := s.secret.Labels[clusterv1.ClusterNameLabel]
	named := s.config.Status.DataSecretName == s.config.Name || ptr.Deref(s.machine.Spec.Bootstrap.DataSecretName, "") == s.config.Name
	own := named && s.secret.Type == clusterv1.ClusterSecretType && (!labelled || cluster == s.cluster.Name)
	return len(s.secret.OwnerReferences) > 0 || !own
}

// bootModeProblem says why user data would not reach a host; its zero value is that it would, or that the host boots a live ISO.
func bootModeProblem(s *scope) fact.Fact {
	if boots(s) != bootstrapv1.BootModeUserData || s.secret != nil || s.infraMachine == nil || !metal3.IsLiveISO(s.infraMachine) {
		return fact.Fact{}
	}
	return fact.Waiting(
		bootstrapv1.BootModeMismatchReason,
		"spec.boot.mode is %s and the image of %s %s is a live ISO: name a CoreOS disk image in its Metal3MachineTemplate, or use boot mode %s",
		bootstrapv1.BootModeUserData, s.infraMachine.GetKind(), s.infraMachine.GetName(), bootstrapv1.BootModeLiveISO,
	)
}

// needsIgnition reports whether the Secret is made of the discovery ignition, which is fetched for it: the download costs another server
// time, and what it serves is final once it is published.
func needsIgnition(s *scope) bool { return boots(s) == bootstrapv1.BootModeUserData && s.secret == nil }

// decideMedia hands the live ISO to the infrastructure machine; its fact says why it cannot.
func decideMedia(s *scope, d *decision) fact.Fact {
	url := mediaToHandOver(s)
	if tooLong(s.infraMachine, url) && !s.takesLongURLs {
		return fact.Waiting(bootstrapv1.ImageURLTooLongReason,
			"the image URL of InfraEnv %s has %d bytes and the API of %s takes %d: shorten the URL at which assisted-service serves images",
			s.infraEnvName, len(url), s.infraMachine.GetKind(), metal3.MaxImageURLLength)
	}
	d.mediaURL = url
	return fact.Fact{}
}

// decideData decides about the boot medium and the Secret.
func decideData(s *scope, d *decision, published bool) fact.Fact {
	if belongsToOther(s) {
		d.retryAfter = dataSecretRetry
		return fact.Waiting(bootstrapv1.DataSecretConflictReason, "Secret %s belongs to something else: delete it", s.secret.Name)
	}
	ready := d.image.Status == metav1.ConditionTrue
	if ready {
		if problem := decideMedia(s, d); problem.Reason != "" {
			return problem
		}
	}
	if published {
		d.secret = decideRepair(s, d, ready)
		return publishedFact(s)
	}
	if d.mediaURL != "" {
		d.image = pendingFact(s.infraEnvName)
	}
	if f := dataWaitsFor(s, d); f.Reason != "" {
		return f
	}
	d.secret, d.publish, d.fetch = true, true, needsIgnition(s)
	if d.fetch {
		return fact.Waiting(
			bootstrapv1.WaitingForDiscoveryIgnitionReason, "the discovery ignition of InfraEnv %s is being fetched", s.infraEnvName,
		)
	}
	return fact.Done(bootstrapv1.DataSecretAvailableReason)
}

// publishedFact says whether a host can register with the published data. They never change (CONTRACT BOOT-26), so that somebody has to act
// when the InfraEnv is gone, or was made anew, before the host has registered. A Secret that is deleted is made anew, and so is an InfraEnv
// whose ignition no host was given.
func publishedFact(s *scope) fact.Fact {
	if registers(s) {
		return fact.Done(bootstrapv1.DataSecretAvailableReason)
	}
	switch {
	case s.machine.Spec.ProviderID != "" || s.infraMachine != nil && metal3.Taken(s.infraMachine, s.hosts):
		return fact.Ongoing(bootstrapv1.DataSecretAvailableReason,
			"Secret %s has the discovery ignition of an InfraEnv %s that is gone, and the host has been given it: it cannot register; delete "+
				"Machine %s", s.secret.Name, s.infraEnvName, s.machine.Name)
	case s.infraEnv == nil:
		return fact.Done(bootstrapv1.DataSecretAvailableReason)
	default:
		return fact.Ongoing(bootstrapv1.DataSecretAvailableReason,
			"Secret %s has the discovery ignition of an InfraEnv %s that is gone, with which no host can register: delete the Secret, which is "+
				"then made anew", s.secret.Name, s.infraEnvName)
	}
}

// registers reports whether nothing is known against the published data: a host has registered with them before, the InfraEnv exists whose
// discovery ignition they are, or nobody knows which one it was, as with a live ISO. A Machine that is being deleted needs none.
func registers(s *scope) bool {
	if s.secret == nil || s.machine.Status.NodeRef.IsDefined() || s.config.Annotations[bootstrapv1.AgentAnnotation] != "" ||
		!s.machine.DeletionTimestamp.IsZero() {
		return true
	}
	made := s.secret.Annotations[bootstrapv1.InfraEnvUIDAnnotation]
	return made == "" || s.infraEnv != nil && made == string(s.infraEnv.UID)
}

// dataWaitsFor says what has to be so before the Secret is made; its zero value is that all is.
func dataWaitsFor(s *scope, d *decision) fact.Fact {
	switch {
	case d.image.Reason == bootstrapv1.WaitingForClusterInfrastructureReason:
		return d.image
	case d.image.Status != metav1.ConditionTrue:
		return fact.Waiting(bootstrapv1.WaitingForDiscoveryImageReason, "no discovery image yet: %s", d.image.Message)
	case s.infraMachine == nil && metal3.IsMachineRef(s.machine.Spec.InfrastructureRef):
		return fact.Waiting(
			bootstrapv1.WaitingForInfraMachineReason, "%s %s does not exist", s.machine.Spec.InfrastructureRef.Kind,
			s.machine.Spec.InfrastructureRef.Name,
		)
	case bootsPlaceholder(s):
		return fact.Waiting(
			bootstrapv1.WaitingForDiscoveryImageReason, "annotation %s of %s %s was there before the live ISO of InfraEnv %s: remove it. "+
				"To choose a host for a Machine, set spec.consumerRef of the BareMetalHost", metal3.HostAnnotation, s.infraMachine.GetKind(),
			s.infraMachine.GetName(), s.infraEnvName,
		)
	case !s.hooked:
		return fact.Waiting(bootstrapv1.WaitingForDeletionHookReason, "Machine %s has no pre-terminate hook yet", s.machine.Name)
	}
	return bootModeProblem(s)
}

// bootsPlaceholder reports whether Metal3 may still copy an image that is not the live ISO, and which is not touched any more. A Machine
// that names its data had the live ISO when they were published.
func bootsPlaceholder(s *scope) bool {
	return boots(s) == bootstrapv1.BootModeLiveISO && s.infraMachine != nil && ptr.Deref(s.machine.Spec.Bootstrap.DataSecretName, "") == "" &&
		!metal3.HasLiveISO(s.infraMachine, s.infraEnv.Status.ISODownloadURL) && !metal3.ImageCopied(s.infraMachine, s.hosts)
}

// decideRepair reports whether a published Secret is made anew or taken back. The discovery ignition of one that somebody deleted is
// fetched again, which needs the InfraEnv's image.
func decideRepair(s *scope, d *decision, ready bool) bool {
	if s.secret != nil {
		return !intact(s, s.secret)
	}
	if boots(s) != bootstrapv1.BootModeUserData {
		return true
	}
	if !ready || s.infraMachine == nil && metal3.IsMachineRef(s.machine.Spec.InfrastructureRef) {
		return false
	}
	d.fetch = bootModeProblem(s).Reason == ""
	return d.fetch
}
