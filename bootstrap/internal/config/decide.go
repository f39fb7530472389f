// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/discovery"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// infraEnvStep is what is done about the InfraEnv in a pass.
type infraEnvStep int

const (
	infraEnvKeep infraEnvStep = iota
	// infraEnvCreate makes the InfraEnv.
	infraEnvCreate
	// infraEnvJoin registers the config as a user of it.
	infraEnvJoin
)

// decision is what a pass does, in this order, and what the conditions say afterwards.
type decision struct {
	// record is the name of the InfraEnv to record on the config; empty when it is recorded. Until then nothing else is done.
	record string
	// networks is what is done about its NMStateConfigs.
	networks networkPlan
	// infraEnv is what is done about the InfraEnv.
	infraEnv infraEnvStep
	// mediaURL is the live ISO to hand to the infrastructure machine; empty when there is nothing to write.
	mediaURL string
	// fetch is true when the discovery ignition is all that is missing: observe fetches it and the pass decides anew.
	fetch bool
	// secret is true when the bootstrap data Secret has to be created or repaired.
	secret bool
	// publish is true when the Secret's name has to be published.
	publish bool

	// retryAfter is when to look again for what is not watched, 0 for never: ConfigMaps and Secrets of the user's. A watch would cache those
	// of all namespaces.
	retryAfter time.Duration

	image      fact.Fact
	dataSecret fact.Fact
}

// dataSecretRetry is how long it may go unnoticed that somebody else's Secret of the config's name is gone.
const dataSecretRetry = time.Minute

// trustBundleRetry is how long a ConfigMap that exists now may go unnoticed.
const trustBundleRetry = 30 * time.Second

// decide says what the pass does. The order of its steps is what keeps a Machine from escaping: an InfraEnv that counts the config among
// its users, its live ISO on the infrastructure machine, the deletion hook on the Machine, and only then the Secret's name (DESIGN D4,
// D19).
func decide(s *scope) decision {
	published := ptr.Deref(s.config.Status.Initialization.DataSecretCreated, false)
	if !needsMedia(s) && (s.infraEnv == nil || !kube.OwnedBy(s.infraEnv, s.config)) {
		// The Machine was moved here with its data: status is rebuilt, a Secret that lost its owner is taken back, and no medium is made, nor
		// that of a later Machine used (CONTRACT BOOT-22, BOOT-34, DESIGN D22).
		return decision{
			secret: s.secret != nil && !intact(s, s.secret) && !belongsToOther(s), publish: !published,
			image: fact.Done(bootstrapv1.DiscoveryImageNotNeededReason), dataSecret: fact.Done(bootstrapv1.DataSecretAvailableReason),
		}
	}
	if refused := refuseInfrastructure(s); refused.Reason != "" && !published {
		return decision{image: refused, dataSecret: refused}
	}
	d := decision{}
	d.image = decideInfraEnv(s, &d)
	d.dataSecret = decideData(s, &d, published)
	return d
}

// needsMedia reports whether a host may still boot what the config publishes: core has not taken the data over, or no host was chosen.
func needsMedia(s *scope) bool {
	if ptr.Deref(s.machine.Spec.Bootstrap.DataSecretName, "") == "" {
		return true
	}
	if !metal3.IsMachineRef(s.machine.Spec.InfrastructureRef) {
		return s.machine.Spec.ProviderID == ""
	}
	return s.infraMachine != nil && !metal3.Taken(s.infraMachine, s.hosts)
}

// refuseInfrastructure says what of the config cannot work with infrastructure of others than Metal3; its zero value is that all can. Such
// a provider hands user data to its machines and knows no BareMetalHosts.
func refuseInfrastructure(s *scope) fact.Fact {
	ref, spec := s.machine.Spec.InfrastructureRef, s.config.Spec
	if metal3.IsMachineRef(ref) {
		return fact.Fact{}
	}
	var wanted []string
	if boots(s) != bootstrapv1.BootModeUserData {
		wanted = append(wanted, fmt.Sprintf("spec.boot.mode: %s", bootstrapv1.BootModeUserData))
	}
	if spec.HostIdentity != bootstrapv1.HostIdentityInfraEnv {
		wanted = append(wanted, fmt.Sprintf("spec.hostIdentity: %s", bootstrapv1.HostIdentityInfraEnv))
	}
	if spec.NodeRegistration.Name == bootstrapv1.NodeNameBareMetalHost {
		wanted = append(wanted, fmt.Sprintf("spec.nodeRegistration.name: %s", bootstrapv1.NodeNameMachine))
	}
	if spec.StaticNetworking.Source != "" {
		wanted = append(wanted, "no spec.staticNetworking")
	}
	if len(wanted) == 0 {
		return fact.Fact{}
	}
	return fact.Waiting(bootstrapv1.InfraMachineNotSupportedReason,
		"a live ISO and BareMetalHosts exist for Metal3Machines only, not for %s %s: set %s in the template and delete Machine %s",
		ref.Kind, ref.Name, strings.Join(wanted, ", "), s.machine.Name)
}

// decideInfraEnv decides about the InfraEnv and says whether it has an image.
func decideInfraEnv(s *scope, d *decision) fact.Fact {
	switch {
	case !s.machine.DeletionTimestamp.IsZero() && s.infraEnv == nil:
		return fact.Waiting(bootstrapv1.MachineDeletingReason, "Machine %s is being deleted: no medium is made for it", s.machine.Name)
	case !s.cluster.DeletionTimestamp.IsZero() && s.infraEnv == nil:
		return fact.Waiting(
			bootstrapv1.ClusterDeletingReason, "Cluster %s is being deleted: no medium is made for Machine %s", s.cluster.Name, s.machine.Name,
		)
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return fact.Waiting(bootstrapv1.WaitingForClusterInfrastructureReason, "Cluster %s has no infrastructure yet", s.cluster.Name)
	case len(s.missingCRDs) > 0:
		return fact.Waiting(
			bootstrapv1.WaitingForCRDsReason, "CRDs %s are not served: install hive, assisted-service and Metal3", strings.Join(s.missingCRDs, ", "),
		)
	case s.trustBundleProblem.Reason != "":
		d.retryAfter = trustBundleRetry
		return s.trustBundleProblem
	case s.infraEnvName == "",
		s.infraEnv == nil && s.pullSecret == "": // The latter: what was recorded is gone, and so is what named its pull secret.
		return fact.Waiting(
			bootstrapv1.WaitingForPullSecretReason,
			"set spec.pullSecretRef, or wait for the control plane's ClusterDeployment, whose pull secret is used else",
		)
	}
	if s.config.Annotations[bootstrapv1.InfraEnvAnnotation] == "" {
		d.record = s.infraEnvName
	}
	if s.infraEnv != nil {
		return decideExistingInfraEnv(s, d)
	}
	if networks, wait := decideNetworks(s, d); wait {
		return networks
	}
	d.infraEnv = infraEnvCreate
	return fact.Waiting(bootstrapv1.InfraEnvPendingReason, "InfraEnv %s is being made", s.infraEnvName)
}

// decideExistingInfraEnv joins the InfraEnv if it is usable, and says whether it has an image with everything in it.
func decideExistingInfraEnv(s *scope, d *decision) fact.Fact {
	if s.infraEnv.Labels[bootstrapv1.InfraEnvClusterLabel] != s.cluster.Name {
		return fact.Waiting(
			bootstrapv1.InfraEnvConflictReason, "InfraEnv %s was not made for Cluster %s: delete or rename it", s.infraEnvName, s.cluster.Name,
		)
	}
	if !s.infraEnv.DeletionTimestamp.IsZero() {
		return fact.Waiting(bootstrapv1.InfraEnvDeletingReason, "InfraEnv %s is being deleted and will be made anew", s.infraEnvName)
	}
	if !kube.OwnedBy(s.infraEnv, s.config) {
		d.infraEnv = infraEnvJoin
	}
	if dropped := droppedFields(s.config, s.infraEnv); len(dropped) > 0 {
		return fact.Waiting(
			bootstrapv1.InfraEnvNotSupportedReason,
			"the installed assisted-service has no InfraEnv.spec.%s: update it, or do without in the template, and delete Machine %s",
			strings.Join(dropped, " and spec."), s.machine.Name,
		)
	}
	networks, wait := decideNetworks(s, d)
	if image := imageFact(s.infraEnv, artifactURL(s)); !wait || image.Reason == bootstrapv1.InfraEnvFailedReason {
		return image
	}
	return networks
}

// boots tells the config's boot mode.
func boots(s *scope) bootstrapv1.BootMode {
	return cmp.Or(s.config.Spec.Boot.Mode, bootstrapv1.BootModeLiveISO)
}

// artifactURL is where what the config's boot mode needs of the InfraEnv is served.
func artifactURL(s *scope) string {
	if boots(s) == bootstrapv1.BootModeUserData {
		return s.infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL
	}
	return s.infraEnv.Status.ISODownloadURL
}

// imageFact says whether the InfraEnv has an image. The URL counts only together with the condition: after an input error it may be stale
// (ASSISTED 8.8 rule 9).
func imageFact(infraEnv *assisted.InfraEnv, url string) fact.Fact {
	created := assisted.FindCondition(infraEnv.Status.Conditions, assisted.ConditionImageCreated)
	switch {
	case created.Is("True") && url != "":
		return fact.Done(bootstrapv1.DiscoveryImageReadyReason)
	case created.Is("False", assisted.ReasonImageCreationError):
		return fact.Waiting(bootstrapv1.InfraEnvFailedReason, "InfraEnv %s: %s", infraEnv.Name, created.Message)
	default:
		return fact.Waiting(bootstrapv1.InfraEnvPendingReason, "assisted-service has not made the image of InfraEnv %s yet", infraEnv.Name)
	}
}

// mediaToHandOver returns the live ISO's URL that the infrastructure machine lacks, or "". The disk image of boot mode UserData is the
// user's. Until a host is chosen a new URL is taken over; afterwards the image is never touched again (METAL3 M3-23).
func mediaToHandOver(s *scope) string {
	if boots(s) != bootstrapv1.BootModeLiveISO || s.infraMachine == nil || metal3.Taken(s.infraMachine, s.hosts) ||
		metal3.HasLiveISO(s.infraMachine, s.infraEnv.Status.ISODownloadURL) {
		return ""
	}
	return s.infraEnv.Status.ISODownloadURL
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

// missingUserData says what keeps the bootstrap data of a host that boots a disk image from being made; ok is true when nothing does.
func missingUserData(s *scope, d *decision) (missing fact.Fact, ok bool) {
	if boots(s) != bootstrapv1.BootModeUserData || s.secret != nil {
		return fact.Fact{}, true
	}
	if s.infraMachine != nil && metal3.IsLiveISO(s.infraMachine) {
		return fact.Waiting(
			bootstrapv1.BootModeMismatchReason,
			"spec.boot.mode is %s and the image of %s %s is a live ISO: name a CoreOS disk image in its Metal3MachineTemplate, or use boot mode %s",
			bootstrapv1.BootModeUserData, s.infraMachine.GetKind(), s.infraMachine.GetName(), bootstrapv1.BootModeLiveISO,
		), false
	}
	if s.userData != nil {
		return fact.Fact{}, true
	}
	var problem *discovery.Error
	switch {
	case s.userDataErr == nil:
		d.fetch = true
		return fact.Waiting(
			bootstrapv1.WaitingForDiscoveryIgnitionReason, "the discovery ignition of InfraEnv %s is being fetched", s.infraEnvName,
		), false
	case errors.As(s.userDataErr, &problem):
		reason := bootstrapv1.DiscoveryIgnitionUnreachableReason
		if problem.Invalid {
			reason = bootstrapv1.DiscoveryIgnitionInvalidReason
		}
		return fact.Waiting(reason, "discovery ignition of InfraEnv %s: %s", s.infraEnvName, problem.Message), false
	default:
		return fact.Waiting(
			bootstrapv1.DiscoveryIgnitionUnreachableReason, "the discovery ignition of InfraEnv %s cannot be fetched; the manager's log says why",
			s.infraEnvName,
		), false
	}
}

// decideData decides about the boot medium and the Secret.
func decideData(s *scope, d *decision, published bool) fact.Fact {
	if belongsToOther(s) {
		d.retryAfter = dataSecretRetry
		return fact.Waiting(bootstrapv1.DataSecretConflictReason, "Secret %s belongs to something else: delete it", s.secret.Name)
	}
	ready := d.image.Status == metav1.ConditionTrue && d.infraEnv == infraEnvKeep && d.record == ""
	if ready {
		d.mediaURL = mediaToHandOver(s)
	}
	if published {
		d.secret = decideRepair(s, d, ready)
		return fact.Done(bootstrapv1.DataSecretAvailableReason)
	}
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
	case s.machine.Annotations[bootstrapv1.AgentDeletionHook] == "":
		return fact.Waiting(bootstrapv1.WaitingForDeletionHookReason, "Machine %s has no pre-terminate hook yet", s.machine.Name)
	case !ready || d.mediaURL != "":
		return fact.Waiting(bootstrapv1.WaitingForDiscoveryImageReason, "the discovery image is being handed to %s %s",
			s.machine.Spec.InfrastructureRef.Kind, s.machine.Spec.InfrastructureRef.Name)
	}
	if missing, ok := missingUserData(s, d); !ok {
		return missing
	}
	d.secret, d.publish = true, true
	return fact.Done(bootstrapv1.DataSecretAvailableReason)
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
	_, ok := missingUserData(s, d)
	return ok
}

// deletion is what a pass does about a config that is being deleted, and what the condition Deleting says.
type deletion struct {
	// leave is true when the config gives up its InfraEnv, which goes with its last user.
	leave bool
	// finish is true when the finalizer goes.
	finish bool

	deleting fact.Fact
}

// decideDeletion needs neither the Machine nor the Cluster, so that a vanished owner leaves no stuck object (DESIGN D12, CONTRACT BOOT-36).
func decideDeletion(s *scope) deletion {
	if s.machine != nil && s.machine.DeletionTimestamp.IsZero() {
		return deletion{
			deleting: fact.Ongoing(
				bootstrapv1.WaitingForMachineReason, "Machine %s lives and its host needs the InfraEnv: delete the Machine", s.machine.Name,
			),
		}
	}
	if len(s.claimed) > 0 {
		// The host controller deletes them, or the agent controller if the Machine is gone.
		return deletion{deleting: fact.Ongoing(bootstrapv1.WaitingForAgentDeletionReason, "Agent %s of the Machine exists", s.claimed[0].Name)}
	}
	if s.infraEnv == nil || !kube.OwnedBy(s.infraEnv, s.config) {
		return deletion{finish: true, deleting: fact.Done(bootstrapv1.DeletionCompletedReason)}
	}
	return deletion{
		leave:    s.infraEnv.DeletionTimestamp.IsZero(),
		deleting: fact.Ongoing(bootstrapv1.WaitingForInfraEnvDeletionReason, "InfraEnv %s is being given up", s.infraEnv.Name),
	}
}
