// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const (
	// hashLength is how much of the hash is in an InfraEnv's name: 40 bits, for the few machine templates of one Cluster.
	hashLength = 10

	// maxPrefixLength keeps an InfraEnv's name within 63 characters: assisted-service puts it into a label of every Agent.
	maxPrefixLength = 63 - 1 - hashLength
)

// infraEnvName is the name of the InfraEnv for a config: one per Cluster and content, or, with host identity InfraEnv, one per config
// (DESIGN D5, D6). It never changes for the same input: a golden test pins it.
func infraEnvName(clusterName string, config *bootstrapv1.OpenshiftAssistedConfig, in inputs) (string, error) {
	content := struct {
		Cluster string                `json:"cluster"`
		Config  string                `json:"config,omitempty"`
		Network string                `json:"network,omitempty"`
		Spec    assisted.InfraEnvSpec `json:"spec"`
	}{Cluster: clusterName, Network: string(config.Spec.StaticNetworking.Source), Spec: infraEnvSpec(config, in)}
	if config.Spec.HostIdentity == bootstrapv1.HostIdentityInfraEnv {
		content.Config = config.Name
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("hash the discovery settings of %s: %w", config.Name, err)
	}
	sum := sha256.Sum256(data)
	prefix := clusterName
	if len(prefix) > maxPrefixLength {
		prefix = strings.TrimRight(prefix[:maxPrefixLength], "-.")
	}
	return prefix + "-" + hex.EncodeToString(sum[:])[:hashLength], nil
}

// imageTypes are the types of live ISOs in the service's words.
var imageTypes = map[bootstrapv1.ImageType]string{
	bootstrapv1.ImageTypeMinimal: assisted.ImageTypeMinimal, bootstrapv1.ImageTypeFull: assisted.ImageTypeFull,
}

// inputs are what an InfraEnv is made of besides the config.
type inputs struct {
	// pullSecret is the name of the Secret used during discovery.
	pullSecret string
	// trustBundle is what the ConfigMap of spec.additionalTrustBundleRef holds.
	trustBundle string
	// osImageVersion is the version of the OS image that was chosen for the config; empty is the service's default.
	osImageVersion string
}

// infraEnvSpec is the discovery-relevant part of a config's spec in assisted-service's terms.
func infraEnvSpec(config *bootstrapv1.OpenshiftAssistedConfig, in inputs) assisted.InfraEnvSpec {
	spec := &config.Spec
	result := assisted.InfraEnvSpec{
		PullSecretRef:              &corev1.LocalObjectReference{Name: in.pullSecret},
		SSHAuthorizedKey:           spec.SSHAuthorizedKey,
		AdditionalNTPSources:       spec.AdditionalNTPSources,
		AdditionalTrustBundle:      cmp.Or(spec.AdditionalTrustBundle, in.trustBundle),
		NTPSources:                 spec.NTPSources,
		CPUArchitecture:            string(spec.Architecture()),
		NMStateConfigLabelSelector: spec.NMStateConfigSelector,
	}
	if name := spec.MirrorRegistryRef.Name; name != "" {
		result.MirrorRegistryRef = &assisted.ConfigMapReference{Name: name, Namespace: config.Namespace}
	}
	result.NetworkDiscoveryDelaySeconds = int64(spec.NetworkDiscoveryDelaySeconds)
	result.ImageType = imageTypes[spec.Boot.ImageType]
	result.OSImageVersion = cmp.Or(spec.Boot.OSImageVersion, in.osImageVersion)
	result.IgnitionConfigOverride = spec.Discovery.Ignition
	for _, argument := range spec.Discovery.KernelArguments {
		result.KernelArguments = append(
			result.KernelArguments, assisted.KernelArgument{Operation: assisted.KernelArgumentAppend, Value: argument},
		)
	}
	if p := spec.Proxy; p.HTTPProxy != "" || p.HTTPSProxy != "" || len(p.NoProxy) > 0 {
		result.Proxy = &assisted.Proxy{HTTPProxy: p.HTTPProxy, HTTPSProxy: p.HTTPSProxy, NoProxy: strings.Join(p.NoProxy, ",")}
	}
	return result
}

// newInfraEnv is the InfraEnv for a config, with the config as its first user.
func newInfraEnv(cluster *clusterv1.Cluster, name string, config *bootstrapv1.OpenshiftAssistedConfig, in inputs) *assisted.InfraEnv {
	infraEnv := &assisted.InfraEnv{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       config.Namespace,
			Labels:          map[string]string{bootstrapv1.InfraEnvClusterLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{userReference(config)},
		},
		Spec: infraEnvSpec(config, in),
	}
	if config.Spec.StaticNetworking.Source == bootstrapv1.StaticNetworkingBareMetalHosts {
		infraEnv.Spec.NMStateConfigLabelSelector = nmstateSelector(cluster.UID, name)
	}
	return infraEnv
}

// userReference registers a config as a user of an InfraEnv. Owner references are that register: joining and leaving go through the
// InfraEnv's resource version, so that the last user cannot delete it while another one joins (DESIGN D5).
func userReference(config *bootstrapv1.OpenshiftAssistedConfig) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: bootstrapv1.GroupVersion.String(),
		Kind:       "OpenshiftAssistedConfig",
		Name:       config.Name,
		UID:        config.UID,
	}
}

// otherUsers are the owner references of an InfraEnv but for the config's.
func otherUsers(infraEnv *assisted.InfraEnv, config *bootstrapv1.OpenshiftAssistedConfig) []metav1.OwnerReference {
	var others []metav1.OwnerReference
	for _, ref := range infraEnv.OwnerReferences {
		if ref.UID != config.UID {
			others = append(others, ref)
		}
	}
	return others
}

// droppedFields are the fields that a config asks for and its InfraEnv has lost, because the CRD of an older assisted-service does not have
// them.
func droppedFields(config *bootstrapv1.OpenshiftAssistedConfig, infraEnv *assisted.InfraEnv) []string {
	want, have := infraEnvSpec(config, inputs{}), infraEnv.Spec
	var dropped []string
	if len(want.NTPSources) > 0 && len(have.NTPSources) == 0 {
		dropped = append(dropped, "ntpSources")
	}
	if want.MirrorRegistryRef != nil && have.MirrorRegistryRef == nil {
		dropped = append(dropped, "mirrorRegistryRef")
	}
	if want.NetworkDiscoveryDelaySeconds > 0 && have.NetworkDiscoveryDelaySeconds == 0 {
		dropped = append(dropped, "networkDiscoveryDelaySeconds")
	}
	return dropped
}
