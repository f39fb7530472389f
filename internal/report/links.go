// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// DefaultDocs is where the documentation of the newest version is.
const DefaultDocs = "https://github.com/capi-openshift/agent-providers/blob/main/docs"

// Link leads into the documentation.
type Link struct{ Text, URL string }

const (
	conditionsPage      = "/reference/conditions.md#"
	troubleshootingPage = "/troubleshooting.md#"

	kindCluster      = "Cluster"
	kindControlPlane = "OpenshiftAssistedControlPlane"
	kindInstall      = "AgentClusterInstall"
	kindMachine      = "Machine"
	kindConfig       = "OpenshiftAssistedConfig"
	kindAgent        = "Agent"
	kindHost         = "BareMetalHost"
)

// conditionAnchors are the sections of docs/reference/conditions.md whose names are not the condition's. The control plane's Deleting is
// the second of that name.
var conditionAnchors = map[string]string{
	kindControlPlane + "/" + controlplanev1.DeletingCondition: "deleting-1",
	kindMachine + "/" + machineUpToDate: "reasons-of-the-condition-uptodate-that-the-control-plane-provider-sets-on-its-machines-" +
		"contract-cp-45",
	kindMachine + "/" + machineOwnerRemediated: "these-are-reasons-of-the-condition-ownerremediated-of-a-machine-that-a-machinehealthcheck-" +
		"found-unhealthy-they-are-those-of-cluster-apis-own-control-plane-provider-design-d26",
	kindMachine + "/" + controlplanev1.MachineEtcdMemberHealthyCondition: "etcdmemberhealthy",
}

// documented are the conditions of our own kinds that the page of conditions has a section for, named like the condition.
var documented = map[string][]string{
	kindConfig: {
		bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.HostHealthyCondition,
		bootstrapv1.HostRecognizedCondition, bootstrapv1.AgentInstalledCondition, bootstrapv1.DeletingCondition,
	},
	kindControlPlane: {
		controlplanev1.AvailableCondition, controlplanev1.InitializedCondition, controlplanev1.InstalledCondition,
		controlplanev1.InstallationMatchesSpecCondition, controlplanev1.KubeconfigAvailableCondition, controlplanev1.VersionsMatchCondition,
		controlplanev1.ReleaseResolvedCondition, controlplanev1.EtcdClusterHealthyCondition,
		controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.MachinesReadyCondition,
		controlplanev1.MachinesUpToDateCondition, controlplanev1.RollingOutCondition, controlplanev1.ScalingUpCondition,
		controlplanev1.ScalingDownCondition, controlplanev1.RemediatingCondition, controlplanev1.UpgradingCondition,
	},
}

// eventAnchors are the sections about events, by the kind of the object that they regard.
var eventAnchors = map[string]string{
	kindConfig:       "reasons-of-the-events-that-the-bootstrap-manager-records",
	kindControlPlane: "reasons-of-the-events-that-the-control-plane-manager-records",
}

// advice is the section of docs/troubleshooting.md about a reason.
var advice = map[string]string{
	bootstrapv1.AgentNotRecognizedReason:      "a-host-reports-another-mac-address-than-its-baremetalhost",
	bootstrapv1.SeveralAgentsReason:           "two-machines-report-one-identity",
	bootstrapv1.SeveralHostsReason:            "two-machines-report-one-identity",
	bootstrapv1.DuplicateSerialNumberReason:   "two-hosts-have-one-serial-number",
	bootstrapv1.HostNeverRegisteredReason:     "a-control-plane-host-never-boots",
	bootstrapv1.EventHostRebooted:             "a-host-registers-only-when-it-is-power-cycled",
	bootstrapv1.HostErrorReason:               "a-baremetalhost-cannot-be-provisioned",
	bootstrapv1.NoHostAvailableReason:         "the-inspection-of-hosts-fails",
	bootstrapv1.AgentDisconnectedReason:       "a-host-falls-silent-before-the-installation",
	bootstrapv1.AgentPendingUserActionReason:  "a-host-boots-the-discovery-image-again",
	bootstrapv1.AgentNeedsAttentionReason:     "assisted-service-refuses-to-bind-a-host",
	bootstrapv1.AgentLostReason:               "an-agent-disappears",
	bootstrapv1.WaitingForHostReleaseReason:   "a-host-cannot-be-freed",
	bootstrapv1.AgentPreparationFailedReason:  "the-installation-cannot-be-prepared",
	bootstrapv1.AgentInstallationFailedReason: "the-installation-fails",
	checkReason: "a-check-on-the-cluster-fails-for-a-while",
	bootstrapv1.AgentValidationsFailingReason:       "a-check-on-the-cluster-fails-for-a-while",
	controlplanev1.RetryWaitingReason:               "the-installation-fails",
	controlplanev1.RetriesExhaustedReason:           "the-installation-fails",
	controlplanev1.SpecNotSyncedReason:              "the-manifests-of-the-installation-cannot-be-made",
	controlplanev1.ConnectionDownReason:             "the-installed-clusters-api-does-not-answer-for-a-while",
	controlplanev1.EtcdClusterNotHealthyReason:      "etcd-has-lost-its-quorum",
	controlplanev1.WaitingForOrphanedMachinesReason: "the-deletion-waits-for-orphaned-machines",
}

// checkConditions are the conditions that repeat the failing checks of assisted-service, by the object that has the checks.
var checkConditions = map[string]struct{ kind, condition string }{
	kindAgent:   {kindConfig, bootstrapv1.AgentInstalledCondition},
	kindInstall: {kindControlPlane, controlplanev1.InstalledCondition},
}

// linker makes links into the documentation.
type linker struct{ docs string }

// condition leads to the condition's section; it is empty when there is none.
func (l linker) condition(kind, condition string) string {
	anchor, special := conditionAnchors[kind+"/"+condition]
	if !special {
		for _, known := range documented[kind] {
			if known == condition {
				anchor = strings.ToLower(condition)
			}
		}
	}
	if anchor == "" {
		return ""
	}
	return l.docs + conditionsPage + anchor
}

// of returns the links for a fault.
func (l linker) of(f *Fault) []Link {
	var links []Link
	if anchor := advice[f.Reason]; anchor != "" {
		links = append(links, Link{"what to do", l.docs + troubleshootingPage + anchor})
	}
	reference := l.condition(f.Kind, f.What)
	if repeated, ok := checkConditions[f.Kind]; ok && f.Reason == checkReason {
		reference = l.condition(repeated.kind, repeated.condition)
	}
	if anchor := eventAnchors[f.Kind]; f.Event && anchor != "" {
		reference = l.docs + conditionsPage + anchor
	}
	if reference != "" {
		links = append(links, Link{"what it means", reference})
	}
	return links
}
