// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
)

// beforeInstallation are the fields of spec.install that are changeable before the installation only: assisted-service refuses them, or
// takes no notice, once it has begun (ASSISTED 1.3).
var beforeInstallation = []struct {
	name  string
	value func(controlplanev1.InstallSpec) any
}{
	{"apiVIPs", func(i controlplanev1.InstallSpec) any { return i.APIVIPs }},
	{"ingressVIPs", func(i controlplanev1.InstallSpec) any { return i.IngressVIPs }},
	{"loadBalancer", func(i controlplanev1.InstallSpec) any { return i.LoadBalancer }},
	{"schedulableControlPlane", func(i controlplanev1.InstallSpec) any { return i.SchedulableControlPlane }},
	{"networking", func(i controlplanev1.InstallSpec) any { return render.NetworksOf(i, 0, nil, nil).Render() }},
	{"sshAuthorizedKey", func(i controlplanev1.InstallSpec) any { return i.SSHAuthorizedKey }},
	{"proxy", func(i controlplanev1.InstallSpec) any { return i.Proxy }},
	{"ntpSources", func(i controlplanev1.InstallSpec) any { return i.NTPSources }},
	{"diskEncryption", func(i controlplanev1.InstallSpec) any { return i.DiskEncryption }},
	{"manifestsConfigMapRefs", func(i controlplanev1.InstallSpec) any { return i.ManifestsConfigMapRefs }},
	{"mirrorRegistryRef", func(i controlplanev1.InstallSpec) any { return i.MirrorRegistryRef }},
	{"hyperthreading", func(i controlplanev1.InstallSpec) any { return i.Hyperthreading }},
	{"holdInstallation", func(i controlplanev1.InstallSpec) any { return i.HoldInstallation }},
	{"capabilities", func(i controlplanev1.InstallSpec) any { return i.Capabilities }},
	{"featureSet", func(i controlplanev1.InstallSpec) any { return i.FeatureSet }},
	{"fips", func(i controlplanev1.InstallSpec) any { return i.FIPS }},
	{"cpuPartitioning", func(i controlplanev1.InstallSpec) any { return i.CPUPartitioning }},
	{"configOverrides", func(i controlplanev1.InstallSpec) any { return string(i.ConfigOverrides.Raw) }},
	{"ignoredValidations", func(i controlplanev1.InstallSpec) any { return i.IgnoredValidations }},
	{"workerWaitTimeoutSeconds", func(i controlplanev1.InstallSpec) any { return i.WorkerWaitTimeoutSeconds }},
}

// validateWindows refuses changes that the installation would take no notice of. What means the same is no change: a refusal would keep
// everything else in the same manifest from being applied too.
func validateWindows(former, cp *controlplanev1.OpenshiftAssistedControlPlane, spec *field.Path) field.ErrorList {
	errs := append(validateClusterName(former, cp, spec.Child("install", "clusterName")), validateReleaseWindow(former, cp, spec)...)
	phase := begun(former)
	if phase == "" {
		return errs
	}
	form := renderedForm
	if ptr.Deref(former.Status.Initialization.ControlPlaneInitialized, false) {
		form = controlplanev1.InstallSpec.Effective
	}
	before, after := form(former.Spec.Install), form(cp.Spec.Install)
	for _, f := range beforeInstallation {
		if !equality.Semantic.DeepEqual(f.value(before), f.value(after)) {
			errs = append(
				errs, field.Forbidden(spec.Child("install", f.name), "is changeable before the installation only: the installation is in phase "+phase),
			)
		}
	}
	return errs
}

// validateClusterName refuses another name of the OpenShift cluster. The default may be written or left out, which no rule of the CRD can
// tell: it is the name of the Cluster.
func validateClusterName(former, cp *controlplanev1.OpenshiftAssistedControlPlane, path *field.Path) field.ErrorList {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: ownerCluster(former)}}
	had, has := view.OpenshiftClusterName(former.Spec.Install, cluster), view.OpenshiftClusterName(cp.Spec.Install, cluster)
	if had == has {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "is immutable: names and certificates of the cluster are made of it")}
}

// ownerCluster is the name of the Cluster that owns a control plane; empty until one does.
func ownerCluster(cp *controlplanev1.OpenshiftAssistedControlPlane) string {
	i := slices.IndexFunc(cp.OwnerReferences, func(ref metav1.OwnerReference) bool {
		group, err := schema.ParseGroupVersion(ref.APIVersion)
		return err == nil && group.Group == clusterv1.GroupVersion.Group && ref.Kind == clusterv1.ClusterKind
	})
	if i < 0 {
		return ""
	}
	return cp.OwnerReferences[i].Name
}

// renderedForm has the effective form of those fields only whose forms all make the same AgentClusterInstall. While the installation runs,
// another AgentClusterInstall is what the condition InstallationMatchesSpec takes for a change that came too late.
func renderedForm(install controlplanev1.InstallSpec) controlplanev1.InstallSpec {
	effective := install.Effective()
	install.SchedulableControlPlane, install.HoldInstallation = effective.SchedulableControlPlane, effective.HoldInstallation
	install.FIPS, install.WorkerWaitTimeoutSeconds = effective.FIPS, effective.WorkerWaitTimeoutSeconds
	install.DiskEncryption.Roles = effective.DiskEncryption.Roles
	return install
}

// validateReleaseWindow refuses another release while the service installs the one that it has registered the cluster with. Afterwards it
// changes together with spec.version when Cluster API upgrades a topology (CONTRACT CP-73), and for another attempt. The architecture of an
// installed cluster stays what it is: a cluster cannot be upgraded to the image of another one.
func validateReleaseWindow(former, cp *controlplanev1.OpenshiftAssistedControlPlane, spec *field.Path) field.ErrorList {
	architecture := spec.Child("openshiftAssistedConfigSpec", "cpuArchitecture")
	switch {
	case installed(former) && architectureChoosesImage(former, cp):
		return field.ErrorList{field.Forbidden(architecture, fmt.Sprintf(
			"is fixed while spec.release is not set, because it chooses the image that the installed cluster is upgraded to: to have hosts of "+
				"several architectures, set spec.release.image to an image for all of them first, such as %s:%s-multi; workers have "+
				"an architecture of their own in their OpenshiftAssistedConfigTemplate", view.DefaultReleaseRepository, cp.Spec.DistributionVersion))}
	case installed(former) && leavesSeveralArchitectures(former, cp):
		return field.ErrorList{field.Forbidden(spec.Child("release"), fmt.Sprintf(
			"must not be removed: the cluster has an image for several architectures, and the public image of %s that would take its place "+
				"is for %s alone: set spec.release.image to an image for all of them, such as %s:%[1]s-multi",
			cp.Spec.DistributionVersion, cp.Spec.OpenshiftAssistedConfigSpec.Architecture(), view.DefaultReleaseRepository))}
	case installed(former) || former.Status.Install.Phase == controlplanev1.InstallPhaseFailed:
		return nil
	}
	const reason = "is fixed until the cluster is installed, because assisted-service has registered the cluster with its release: " +
		"to install another release, delete the Cluster and create it again"
	var errs field.ErrorList
	if former.Spec.DistributionVersion != cp.Spec.DistributionVersion {
		errs = append(errs, field.Forbidden(spec.Child("distributionVersion"), reason))
	}
	if former.Spec.Release != cp.Spec.Release {
		errs = append(errs, field.Forbidden(spec.Child("release"), reason))
	}
	if len(errs) == 0 && architectureChoosesImage(former, cp) {
		errs = append(errs, field.Forbidden(architecture, "chooses the release, which "+reason))
	}
	return errs
}

// architectureChoosesImage reports whether a change of the architecture makes the release image another one: where spec.release is set, and
// of OKD, the image is the same for all architectures.
func architectureChoosesImage(former, cp *controlplanev1.OpenshiftAssistedControlPlane) bool {
	unchanged := cp.Spec
	unchanged.OpenshiftAssistedConfigSpec.CPUArchitecture = former.Spec.OpenshiftAssistedConfigSpec.CPUArchitecture
	return cp.Spec.Release.ImageSetRef.Name == "" && view.ReleaseImage(unchanged) != view.ReleaseImage(cp.Spec)
}

// leavesSeveralArchitectures reports whether a release image that is known to be for several architectures gives way to the default, which
// is for one. The cluster would be upgraded to it, and its hosts of the others to operating systems that they cannot run.
func leavesSeveralArchitectures(former, cp *controlplanev1.OpenshiftAssistedControlPlane) bool {
	check := plan.ArchitectureCheck{Spec: former.Spec, Resolved: former.Status.Release}
	return check.Several() && cp.Spec.Release == (controlplanev1.ReleaseSpec{})
}

// installed reports whether the cluster is: a control plane that was moved has no status yet, and the record of its cluster. The record of
// an earlier attempt is that of a cluster that was lost: the wanted attempt installs another one.
func installed(cp *controlplanev1.OpenshiftAssistedControlPlane) bool {
	_, recorded := view.InstalledOf(cp)
	return recorded || ptr.Deref(cp.Status.Initialization.ControlPlaneInitialized, false)
}

// begun is the phase of an installation that has begun; empty before, and once it has failed, when the next attempt can be another one.
func begun(cp *controlplanev1.OpenshiftAssistedControlPlane) string {
	if installed(cp) {
		return cmp.Or(cp.Status.Install.Phase, controlplanev1.InstallPhaseCompleted)
	}
	switch cp.Status.Install.Phase {
	case controlplanev1.InstallPhasePreparing,
		controlplanev1.InstallPhaseInstalling,
		controlplanev1.InstallPhaseFinalizing,
		controlplanev1.InstallPhaseCompleted:
		return cp.Status.Install.Phase
	default:
		return ""
	}
}
