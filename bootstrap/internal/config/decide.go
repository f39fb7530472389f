// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
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

// decision is what a pass does for a config that lives, by subject and in this order, and what the conditions say of it. Its zero value
// decides that there is nothing to do; result tells that from a pass that could not decide.
type decision struct {
	// record is the name of the InfraEnv to record on the config, before all else; empty when it is recorded.
	record string
	// osImageVersion is the version of the OS image to record with it; empty is the service's default, or the config's own.
	osImageVersion string
	// otherOSImage says that the image is of another release than the cluster runs; empty when it is not.
	otherOSImage string
	// networks is what is done about its NMStateConfigs.
	networks networkPlan
	// infraEnv is what is done about the InfraEnv.
	infraEnv infraEnvStep
	// mediaURL is the live ISO to hand to the infrastructure machine; empty when there is nothing to write.
	mediaURL string
	// secret is true when the bootstrap data Secret has to be created or repaired.
	secret bool
	// fetch is true when the Secret is made of the discovery ignition, which has to be fetched first.
	fetch bool
	// publish is true when the Secret's name has to be published, once the Secret is as it should be.
	publish bool

	// retryAfter is when to look again for what is not watched, 0 for never: ConfigMaps and Secrets of the user's. A watch would cache those
	// of all namespaces.
	retryAfter time.Duration

	// image is what the condition DiscoveryImageReady says.
	image fact.Fact
	// dataSecret is what the condition DataSecretAvailable says; of a Secret that is to be made, until it is made.
	dataSecret fact.Fact
}

// trustBundleRetry is how long a ConfigMap that exists now may go unnoticed.
const trustBundleRetry = 30 * time.Second

// decide says what the pass does. The order of its steps is what keeps a Machine from escaping: an InfraEnv that counts the config among
// its users, its live ISO on the infrastructure machine, the deletion hook on the Machine, and only then the Secret's name (DESIGN D4,
// D19). The Secret's name waits for a pass that has read the live ISO from the cache: Metal3 reads the infrastructure machine from a cache
// too, and what it reads there when it sees the name is what the host boots.
func decide(s *scope) decision {
	published := ptr.Deref(s.config.Status.Initialization.DataSecretCreated, false)
	if !needsMedia(s) && (s.infraEnv == nil || !kube.OwnedBy(s.infraEnv, s.config)) {
		// The Machine was moved here with its data, or its InfraEnv has gone since: status is rebuilt, a Secret that lost its owner is taken
		// back, and no medium is made, nor that of a later Machine used (CONTRACT BOOT-22, BOOT-34, DESIGN D22).
		return decision{
			secret: s.secret != nil && !intact(s, s.secret) && !belongsToOther(s), publish: !published,
			image: fact.Done(bootstrapv1.DiscoveryImageNotNeededReason), dataSecret: publishedFact(s),
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
		d.record, d.osImageVersion, d.otherOSImage = s.infraEnvName, s.osImageVersion, otherOSImage(s)
	}
	if s.infraEnv != nil {
		return decideExistingInfraEnv(s, d)
	}
	if networks, wait := decideNetworks(s, d); wait {
		return networks
	}
	d.infraEnv = infraEnvCreate
	return pendingFact(s.infraEnvName)
}

// pendingFact has one text for all steps from an InfraEnv that is being made to its image on the infrastructure machine. Each takes a
// moment, and a text of its own would be a write more.
func pendingFact(infraEnv string) fact.Fact {
	return fact.Waiting(
		bootstrapv1.InfraEnvPendingReason,
		"the image of InfraEnv %s is being made by assisted-service and handed over",
		infraEnv,
	)
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
		return pendingFact(infraEnv.Name)
	}
}
