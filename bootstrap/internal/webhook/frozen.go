// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
)

const (
	mediaFrozen = "cannot be changed: the discovery media of a config are made once, as it is when it is created; change its template, or " +
		"the control plane's openshiftAssistedConfigSpec, and replace the Machine"
	hostFrozen = "cannot be changed any more: the Machine's host was recognised and is given to the Assisted Installer as it was asked for; " +
		"change its template, or the control plane's openshiftAssistedConfigSpec, and replace the Machine"
	diskFrozen = "is immutable once the host is bound to the cluster, because its disk has been chosen: change its template, or the control " +
		"plane's openshiftAssistedConfigSpec, and replace the Machine"
)

// frozenField is a field of a config before and after an update.
type frozenField struct {
	path          *field.Path
	before, after any
}

// frozen refuses changes that would have no effect, because the provider has used the field already. The description of each field ends
// with its window, which says until when the field can change. To write a default down, or a set in another order, is no change. Templates
// may change: they are for configs that are made later (CONTRACT BOOT-40).
func frozen(before, after *bootstrapv1.OpenshiftAssistedConfig) field.ErrorList {
	spec := field.NewPath("spec")
	had, has := before.Spec.Effective(), after.Spec.Effective()
	errs := unchanged(mediaFields(spec, had, has), mediaFrozen)
	if before.Annotations[bootstrapv1.AgentAnnotation] != "" {
		errs = append(errs, unchanged(hostFields(spec, had, has), hostFrozen)...)
	}
	if before.Annotations[bootstrapv1.InstallationDiskAnnotation] != "" {
		hints := spec.Child("installation", "rootDeviceHints")
		errs = append(
			errs, unchanged([]frozenField{{hints, had.Installation.RootDeviceHints, has.Installation.RootDeviceHints}}, diskFrozen)...)
	}
	return errs
}

func unchanged(fields []frozenField, why string) field.ErrorList {
	var errs field.ErrorList
	for _, f := range fields {
		if !equality.Semantic.DeepEqual(f.before, f.after) {
			errs = append(errs, field.Forbidden(f.path, why))
		}
	}
	return errs
}

// mediaFields decide what the host boots, and how it is recognised then.
func mediaFields(spec *field.Path, before, after bootstrapv1.OpenshiftAssistedConfigSpec) []frozenField {
	boot, discovery := spec.Child("boot"), spec.Child("discovery")
	return []frozenField{
		{boot.Child("mode"), before.Boot.Mode, after.Boot.Mode},
		{boot.Child("imageType"), before.Boot.ImageType, after.Boot.ImageType},
		{boot.Child("osImageVersion"), before.Boot.OSImageVersion, after.Boot.OSImageVersion},
		{discovery.Child("kernelArguments"), before.Discovery.KernelArguments, after.Discovery.KernelArguments},
		{discovery.Child("ignition"), before.Discovery.Ignition, after.Discovery.Ignition},
		{spec.Child("pullSecretRef"), before.PullSecretRef, after.PullSecretRef},
		{spec.Child("sshAuthorizedKey"), before.SSHAuthorizedKey, after.SSHAuthorizedKey},
		{spec.Child("proxy"), before.Proxy, after.Proxy},
		{spec.Child("additionalNTPSources"), before.AdditionalNTPSources, after.AdditionalNTPSources},
		{spec.Child("ntpSources"), before.NTPSources, after.NTPSources},
		{spec.Child("additionalTrustBundle"), before.AdditionalTrustBundle, after.AdditionalTrustBundle},
		{spec.Child("additionalTrustBundleRef"), before.AdditionalTrustBundleRef, after.AdditionalTrustBundleRef},
		{spec.Child("mirrorRegistryRef"), before.MirrorRegistryRef, after.MirrorRegistryRef},
		{spec.Child("cpuArchitecture"), before.CPUArchitecture, after.CPUArchitecture},
		{spec.Child("nmStateConfigSelector"), before.NMStateConfigSelector, after.NMStateConfigSelector},
		{spec.Child("staticNetworking"), before.StaticNetworking, after.StaticNetworking},
		{spec.Child("networkDiscoveryDelaySeconds"), before.NetworkDiscoveryDelaySeconds, after.NetworkDiscoveryDelaySeconds},
		{spec.Child("hostIdentity"), before.HostIdentity, after.HostIdentity},
	}
}

// hostFields reach the Agent when it is bound (DESIGN D8).
func hostFields(spec *field.Path, before, after bootstrapv1.OpenshiftAssistedConfigSpec) []frozenField {
	registration, installation := spec.Child("nodeRegistration"), spec.Child("installation")
	return []frozenField{
		{registration.Child("name"), before.NodeRegistration.Name, after.NodeRegistration.Name},
		{registration.Child("labels"), before.NodeRegistration.Labels, after.NodeRegistration.Labels},
		{registration.Child("machineConfigPool"), before.NodeRegistration.MachineConfigPool, after.NodeRegistration.MachineConfigPool},
		{installation.Child("kernelArguments"), before.Installation.KernelArguments, after.Installation.KernelArguments},
		{installation.Child("deletedKernelArguments"), before.Installation.DeletedKernelArguments, after.Installation.DeletedKernelArguments},
		{installation.Child("ignition"), before.Installation.Ignition, after.Installation.Ignition},
	}
}
