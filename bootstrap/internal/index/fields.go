// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// Fields by which Agents are found.
const (
	// AgentInfraEnv is the InfraEnv that the host registered through.
	AgentInfraEnv = "agent.infraEnv"
	// AgentClaim is the claim of the Machine that the Agent is claimed for.
	AgentClaim = "agent.claim"
	// AgentMAC is each hardware address that the host reports.
	AgentMAC = "agent.mac"
	// AgentSerial is the serial number that the host reports, normalised.
	AgentSerial = "agent.serial"
	// AgentStranger is the InfraEnv of an Agent that is claimed for no Machine and says itself that no host is recognised in it.
	AgentStranger = "agent.stranger"
)

// Fields by which BareMetalHosts are found.
const (
	// HostConsumer is the name of the object that consumes the host.
	HostConsumer = "host.consumer"
	// HostBoot is the hardware address that the host boots from.
	HostBoot = "host.boot"
	// HostMAC is the same, and each address that inspection found.
	HostMAC = "host.mac"
	// HostSerial is the serial number that inspection found, normalised.
	HostSerial = "host.serial"
	// HostVouched is the Agent that somebody vouches for.
	HostVouched = "host.vouched"
)

// Fields by which Machines are found.
const (
	// MachineConfig is the OpenshiftAssistedConfig of the Machine.
	MachineConfig = "machine.config"
	// MachineInfra is the Metal3Machine of the Machine.
	MachineInfra = "machine.infra"
)

// Fields by which configs are found.
const (
	// ConfigCluster is the Cluster that the config's label names.
	ConfigCluster = "config.cluster"
	// ConfigOwner is the UID of each owner.
	ConfigOwner = "config.owner"
	// ConfigInfraEnv is the InfraEnv that the config records.
	ConfigInfraEnv = "config.infraEnv"
	// ConfigUnsettled is the same of a config that may have to join its InfraEnv still, or to leave it.
	ConfigUnsettled = "config.unsettled"
	// ConfigAlone is the same of a config whose host is recognised by the InfraEnv alone.
	ConfigAlone = "config.alone"
	// ConfigUnrecognized is the same of a config whose host is not recognised yet.
	ConfigUnrecognized = "config.unrecognized"
	// ConfigAgent is the Agent that the config records.
	ConfigAgent = "config.agent"
	// ConfigNetworks is NetworksUnpublished or NetworksPublished of a config with static networking that may still get a host, and InNetworks
	// of the InfraEnv that it records.
	ConfigNetworks = "config.networks"
)

const (
	// NetworksUnpublished: the config has handed out no medium yet, and what its hosts lack may be why.
	NetworksUnpublished = "unpublished"
	// NetworksPublished: it has, and a host that appears gets its network still.
	NetworksPublished = "published"
)

// InNetworks is the value of ConfigNetworks for an InfraEnv.
func InNetworks(infraEnv string) string { return "infraEnv/" + infraEnv }

// Fields by which objects of a cluster are found; the value is the name of the Cluster.
const (
	// InstallCluster finds AgentClusterInstalls.
	InstallCluster = "install.cluster"
	// DeploymentCluster finds ClusterDeployments.
	DeploymentCluster = "deployment.cluster"
)

// Field is one way to find objects of a kind.
type Field struct {
	// Kind is an object of the kind.
	Kind client.Object
	// CRD is the one without which the kind is not served; empty for kinds that are always served.
	CRD string
	// Name is one of the constants above.
	Name string
	// Values are the values by which an object is found.
	Values client.IndexerFunc
}

// Gate runs what needs a CRD as soon as it is served.
type Gate interface {
	When(crd string, do func() error) error
}

// Register makes the cache keep all fields. It comes before the first watch on any of the kinds.
func Register(ctx context.Context, gate Gate, cache client.FieldIndexer) error {
	for _, field := range Fields() {
		register := func() error {
			if err := cache.IndexField(ctx, field.Kind, field.Name, field.Values); err != nil {
				return fmt.Errorf("index %s: %w", field.Name, err)
			}
			return nil
		}
		if field.CRD == "" {
			if err := register(); err != nil {
				return err
			}
			continue
		}
		if err := gate.When(field.CRD, register); err != nil {
			return err
		}
	}
	return nil
}

// Fields are all fields.
func Fields() []Field {
	agents := func(name string, values func(*assisted.Agent) []string) Field {
		return Field{Kind: &assisted.Agent{}, CRD: assisted.CRDAgents, Name: name, Values: of(values)}
	}
	hosts := func(name string, values func(*bmov1alpha1.BareMetalHost) []string) Field {
		return Field{Kind: &bmov1alpha1.BareMetalHost{}, CRD: metal3.CRDBareMetalHosts, Name: name, Values: of(values)}
	}
	machines := func(name string, values func(*clusterv1.Machine) []string) Field {
		return Field{Kind: &clusterv1.Machine{}, Name: name, Values: of(values)}
	}
	configs := func(name string, values func(*bootstrapv1.OpenshiftAssistedConfig) []string) Field {
		return Field{Kind: &bootstrapv1.OpenshiftAssistedConfig{}, Name: name, Values: of(values)}
	}
	return []Field{
		agents(AgentInfraEnv, func(a *assisted.Agent) []string { return known(a.Labels[assisted.InfraEnvLabel]) }),
		agents(AgentClaim, func(a *assisted.Agent) []string { return known(a.Annotations[bootstrapv1.ClaimAnnotation]) }),
		agents(AgentMAC, (*assisted.Agent).MACAddresses),
		agents(AgentSerial, func(a *assisted.Agent) []string { return known(serialOf(a)) }),
		agents(AgentStranger, func(a *assisted.Agent) []string { return known(strangerIn(a)) }),
		hosts(HostConsumer, consumerOf),
		hosts(HostBoot, func(h *bmov1alpha1.BareMetalHost) []string { return known(metal3.BootMAC(h)) }),
		hosts(HostMAC, func(h *bmov1alpha1.BareMetalHost) []string {
			return append(metal3.InspectedMACs(h), known(metal3.BootMAC(h))...)
		}),
		hosts(HostSerial, func(h *bmov1alpha1.BareMetalHost) []string { return known(metal3.SerialNumber(h)) }),
		hosts(HostVouched, func(h *bmov1alpha1.BareMetalHost) []string {
			return known(h.Annotations[bootstrapv1.VouchedAgentAnnotation])
		}),
		machines(MachineConfig, func(m *clusterv1.Machine) []string { return known(ConfigOf(m)) }),
		machines(MachineInfra, infraOf),
		configs(ConfigCluster, labelled[*bootstrapv1.OpenshiftAssistedConfig]),
		configs(ConfigOwner, owners),
		configs(ConfigInfraEnv, func(c *bootstrapv1.OpenshiftAssistedConfig) []string { return known(infraEnv(c)) }),
		configs(ConfigUnsettled, infraEnvIf(unsettled)),
		configs(ConfigAlone, infraEnvIf(alone)),
		configs(ConfigUnrecognized, infraEnvIf(unrecognized)),
		configs(ConfigAgent, func(c *bootstrapv1.OpenshiftAssistedConfig) []string {
			return known(c.Annotations[bootstrapv1.AgentAnnotation])
		}),
		configs(ConfigNetworks, networks),
		{
			Kind: &hiveext.AgentClusterInstall{}, CRD: assisted.CRDAgentClusterInstalls, Name: InstallCluster,
			Values: of(labelled[*hiveext.AgentClusterInstall]),
		},
		{
			Kind: &hivev1.ClusterDeployment{}, CRD: assisted.CRDClusterDeployments, Name: DeploymentCluster,
			Values: of(labelled[*hivev1.ClusterDeployment]),
		},
	}
}

// of makes an index function of one for a kind.
func of[T client.Object](values func(T) []string) client.IndexerFunc {
	return func(o client.Object) []string {
		if typed, ok := o.(T); ok {
			return values(typed)
		}
		return nil
	}
}

func known(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func labelled[T client.Object](o T) []string { return known(o.GetLabels()[clusterv1.ClusterNameLabel]) }

// serialOf is the serial number that a host reports, normalised; empty when there is no real one.
func serialOf(agent *assisted.Agent) string {
	return metal3.NormalizeSerial(agent.Status.Inventory.SystemVendor.SerialNumber)
}

// ConfigOf is the name of a Machine's OpenshiftAssistedConfig; empty when its configuration is of another kind.
func ConfigOf(machine *clusterv1.Machine) string {
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Kind != "OpenshiftAssistedConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return ""
	}
	return ref.Name
}

// strangerIn is the InfraEnv of an Agent in which no host is recognised. The agent controller notes that on the Agent (package agent).
func strangerIn(agent *assisted.Agent) string {
	if agent.Annotations[bootstrapv1.ClaimAnnotation] != "" || agent.Annotations[bootstrapv1.RecognitionAnnotation] == "" {
		return ""
	}
	return agent.Labels[assisted.InfraEnvLabel]
}

func consumerOf(host *bmov1alpha1.BareMetalHost) []string {
	if host.Spec.ConsumerRef == nil {
		return nil
	}
	return known(host.Spec.ConsumerRef.Name)
}

func infraOf(machine *clusterv1.Machine) []string {
	if ref := machine.Spec.InfrastructureRef; metal3.IsMachineRef(ref) {
		return known(ref.Name)
	}
	return nil
}

func owners(config *bootstrapv1.OpenshiftAssistedConfig) []string {
	uids := make([]string, 0, len(config.OwnerReferences))
	for _, ref := range config.OwnerReferences {
		uids = append(uids, string(ref.UID))
	}
	return uids
}

func infraEnv(config *bootstrapv1.OpenshiftAssistedConfig) string {
	return config.Annotations[bootstrapv1.InfraEnvAnnotation]
}

func infraEnvIf(is func(*bootstrapv1.OpenshiftAssistedConfig) bool) func(*bootstrapv1.OpenshiftAssistedConfig) []string {
	return func(config *bootstrapv1.OpenshiftAssistedConfig) []string {
		if !is(config) {
			return nil
		}
		return known(infraEnv(config))
	}
}

func unsettled(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	return !config.DeletionTimestamp.IsZero() || !published(config)
}

func published(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	return ptr.Deref(config.Status.Initialization.DataSecretCreated, false)
}

func alone(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	return config.Spec.HostIdentity == bootstrapv1.HostIdentityInfraEnv
}

func unrecognized(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	return !alone(config) && !conditions.IsTrue(config, bootstrapv1.HostRecognizedCondition)
}

func networks(config *bootstrapv1.OpenshiftAssistedConfig) []string {
	if config.Spec.StaticNetworking.Source != bootstrapv1.StaticNetworkingBareMetalHosts ||
		conditions.IsTrue(config, bootstrapv1.HostRecognizedCondition) {
		return nil
	}
	values := []string{NetworksUnpublished}
	if published(config) {
		values = []string{NetworksPublished}
	}
	if name := infraEnv(config); name != "" {
		values = append(values, InNetworks(name))
	}
	return values
}
