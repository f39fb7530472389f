// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// addOptions sets the fields of an AgentClusterInstall that say how the cluster is installed. What is not asked for is left out, so that older
// releases of assisted-service, which do not know all fields, take the object.
func (i Install) addOptions(spec *hiveext.AgentClusterInstallSpec) {
	install := i.ControlPlane.Spec.Install
	spec.SSHPublicKey = install.SSHAuthorizedKey
	spec.APIVIPs, spec.IngressVIPs = install.APIVIPs, install.IngressVIPs
	spec.MastersSchedulable = ptr.Deref(install.SchedulableControlPlane, false)
	spec.Proxy = proxyOf(install.Proxy)
	spec.DiskEncryption = diskEncryptionOf(install.DiskEncryption)
	spec.ControlPlane, spec.Compute = poolsOf(install.Hyperthreading)
	if install.LoadBalancer.Type != "" {
		spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerType(install.LoadBalancer.Type)}
	}
	for _, ref := range install.ManifestsConfigMapRefs {
		spec.ManifestsConfigMapRefs = append(spec.ManifestsConfigMapRefs, hiveext.ManifestsConfigMapReference{Name: ref.Name})
	}
	if name := install.MirrorRegistryRef.Name; name != "" {
		// Never of another namespace: it is another tenant's (DESIGN D13).
		spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: name, Namespace: i.ControlPlane.Namespace}
	}
	if PlatformOf(i.ControlPlane.Spec) == controlplanev1.PlatformExternal {
		spec.ExternalPlatformSpec = externalOf(install.External)
	}
}

func proxyOf(proxy bootstrapv1.ProxySpec) *hiveext.Proxy {
	if proxy.HTTPProxy == "" && proxy.HTTPSProxy == "" && len(proxy.NoProxy) == 0 {
		return nil
	}
	return &hiveext.Proxy{HTTPProxy: proxy.HTTPProxy, HTTPSProxy: proxy.HTTPSProxy, NoProxy: strings.Join(proxy.NoProxy, ",")}
}

func externalOf(external controlplanev1.ExternalPlatformSpec) *hiveext.ExternalPlatformSpec {
	spec := &hiveext.ExternalPlatformSpec{PlatformName: external.PlatformName}
	if external.CloudControllerManager == controlplanev1.CloudControllerManagerExternal {
		spec.CloudControllerManager = hiveext.CloudControllerManagerTypeExternal
	}
	return spec
}

// tangServer is one Tang server as assisted-service reads it.
type tangServer struct {
	URL        string `json:"url"`
	Thumbprint string `json:"thumbprint"`
}

func diskEncryptionOf(encryption controlplanev1.DiskEncryptionSpec) *hiveext.DiskEncryption {
	if encryption.Mode == "" {
		return nil
	}
	spec := &hiveext.DiskEncryption{EnableOn: ptr.To(assisted.EncryptAll), Mode: ptr.To(assisted.EncryptByTPM)}
	if len(encryption.Roles) == 1 {
		spec.EnableOn = ptr.To(assisted.EncryptWorkers)
		if encryption.Roles[0] == controlplanev1.HostRoleControlPlane {
			spec.EnableOn = ptr.To(assisted.EncryptMasters)
		}
	}
	if encryption.Mode != controlplanev1.DiskEncryptionTang {
		return spec
	}
	servers := make([]tangServer, 0, len(encryption.TangServers))
	for _, server := range encryption.TangServers {
		servers = append(servers, tangServer{URL: server.URL, Thumbprint: server.Thumbprint})
	}
	value, err := json.Marshal(servers)
	if err != nil {
		return spec // Strings can always be encoded.
	}
	spec.Mode, spec.TangServers = ptr.To(assisted.EncryptByTang), string(value)
	return spec
}

// poolsOf says which hosts use hyperthreading: always both pools, because assisted-service takes one that is missing beside the other for disabled.
func poolsOf(hyperthreading controlplanev1.HyperthreadingSpec) (*hiveext.AgentMachinePool, []hiveext.AgentMachinePool) {
	if hyperthreading.ControlPlane == "" && hyperthreading.Worker == "" {
		return nil, nil
	}
	mode := func(h controlplanev1.Hyperthreading) hiveext.HyperthreadingMode {
		if h == controlplanev1.HyperthreadingDisabled {
			return hiveext.HyperthreadingDisabled
		}
		return hiveext.HyperthreadingEnabled
	}
	return &hiveext.AgentMachinePool{Name: hiveext.MasterAgentMachinePool, Hyperthreading: mode(hyperthreading.ControlPlane)},
		[]hiveext.AgentMachinePool{{Name: hiveext.WorkerAgentMachinePool, Hyperthreading: mode(hyperthreading.Worker)}}
}
