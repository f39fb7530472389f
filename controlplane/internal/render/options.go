// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// arbiterPool is the name of the arbiters' pool of machines.
const arbiterPool = "arbiter"

// addOptions sets the fields of an AgentClusterInstall that say how the cluster is installed. What is not asked for is left out, so that
// older releases of assisted-service, which do not know all fields, take the object.
func (i Install) addOptions(spec *hiveext.AgentClusterInstallSpec) {
	install := i.ControlPlane.Spec.Install
	spec.SSHPublicKey = install.SSHAuthorizedKey
	spec.APIVIPs, spec.IngressVIPs = install.APIVIPs, install.IngressVIPs
	spec.MastersSchedulable = ptr.Deref(install.SchedulableControlPlane, false)
	spec.Proxy = proxyOf(install.Proxy)
	spec.DiskEncryption = diskEncryptionOf(install.DiskEncryption, view.Arbiters(install) > 0)
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
	if view.PlatformOf(i.ControlPlane.Spec) == controlplanev1.PlatformExternal {
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

func diskEncryptionOf(encryption controlplanev1.DiskEncryptionSpec, arbiters bool) *hiveext.DiskEncryption {
	if encryption.Mode == "" {
		return nil
	}
	spec := &hiveext.DiskEncryption{EnableOn: ptr.To(assisted.EncryptAll), Mode: ptr.To(assisted.EncryptByTPM)}
	if roles := encryptedRoles(encryption.Roles, arbiters); roles != "" {
		spec.EnableOn = ptr.To(roles)
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

// encryptedRoles is the list of roles in the form and order of the AgentClusterInstall's API; empty for all that the cluster has. Lists are
// newer than the values for one role and for all of them, and so only used where they say something else.
func encryptedRoles(roles []controlplanev1.HostRole, arbiters bool) string {
	names := []struct {
		role controlplanev1.HostRole
		name string
	}{
		{controlplanev1.HostRoleControlPlane, assisted.EncryptMasters}, {controlplanev1.HostRoleArbiter, assisted.EncryptArbiters},
		{controlplanev1.HostRoleWorker, assisted.EncryptWorkers},
	}
	var wanted []string
	all := true
	for _, n := range names {
		if slices.Contains(roles, n.role) {
			wanted = append(wanted, n.name)
		} else if n.role != controlplanev1.HostRoleArbiter || arbiters {
			all = false
		}
	}
	if all {
		return ""
	}
	return strings.Join(wanted, ",")
}

// poolsOf says which hosts use hyperthreading: always all pools, because assisted-service takes one that is missing beside the others for
// disabled.
func poolsOf(hyperthreading controlplanev1.HyperthreadingSpec) (*hiveext.AgentMachinePool, []hiveext.AgentMachinePool) {
	if hyperthreading == (controlplanev1.HyperthreadingSpec{}) {
		return nil, nil
	}
	return &hiveext.AgentMachinePool{Name: hiveext.MasterAgentMachinePool, Hyperthreading: modeOf(hyperthreading.ControlPlane)},
		[]hiveext.AgentMachinePool{{Name: hiveext.WorkerAgentMachinePool, Hyperthreading: modeOf(hyperthreading.Worker)}}
}

func modeOf(h controlplanev1.Hyperthreading) hiveext.HyperthreadingMode {
	if h == controlplanev1.HyperthreadingDisabled {
		return hiveext.HyperthreadingDisabled
	}
	return hiveext.HyperthreadingEnabled
}

// newerOptions are the options for which the AgentClusterInstall's type has no field.
func newerOptions(install controlplanev1.InstallSpec) *assisted.NewerInstallSpec {
	newer := &assisted.NewerInstallSpec{NTPSources: install.NTPSources}
	if install.TwoNode == controlplanev1.TwoNodeArbiter && install.Hyperthreading != (controlplanev1.HyperthreadingSpec{}) {
		newer.Arbiter = &hiveext.AgentMachinePool{Name: arbiterPool, Hyperthreading: modeOf(install.Hyperthreading.Arbiter)}
	}
	return newer
}
