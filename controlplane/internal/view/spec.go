// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// Arbiters is the number of arbiters of an installation.
func Arbiters(install controlplanev1.InstallSpec) int {
	if install.TwoNode == controlplanev1.TwoNodeArbiter {
		return 1
	}
	return 0
}

// ConfigKind is the kind of the configs that the control plane's Machines refer to.
const ConfigKind = "OpenshiftAssistedConfig"

const (
	// DefaultReleaseRepository is where the public release images are (DESIGN D10).
	DefaultReleaseRepository = "quay.io/openshift-release-dev/ocp-release"

	// okdReleaseRepository is where those of OKD are since it is built on CentOS Stream CoreOS, which okdVersionMark tells.
	okdReleaseRepository = "quay.io/okd/scos-release"
	okdVersionMark       = "-okd-scos."

	// attemptFirst is the number of the first installation.
	attemptFirst = "1"
)

// Attempt is the number of the installation that a control plane wants, from its annotation; "1" when it has none (DESIGN D18).
func Attempt(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) string {
	if attempt := controlPlane.Annotations[controlplanev1.InstallAttemptAnnotation]; attempt != "" {
		return attempt
	}
	return attemptFirst
}

// AttemptOf is the number of the installation that an object of a control plane was made for, from its annotation; empty when it has none.
func AttemptOf(o metav1.Object) string {
	return o.GetAnnotations()[controlplanev1.InstallAttemptAnnotation]
}

// AttemptNumber is an attempt as a number, which tells the order of two. What is no number, and every attempt is one from 1 on, is 0.
func AttemptNumber(attempt string) int {
	number, err := strconv.Atoi(attempt)
	if err != nil {
		return 0
	}
	return max(number, 0)
}

// ReleaseImage is the image that is installed when no ClusterImageSet is named: spec.release.image, or the public image of
// spec.distributionVersion for the hosts' architecture (DESIGN D10).
func ReleaseImage(spec controlplanev1.OpenshiftAssistedControlPlaneSpec) string {
	if spec.Release.Image != "" {
		return spec.Release.Image
	}
	if strings.Contains(spec.DistributionVersion, okdVersionMark) {
		return okdReleaseRepository + ":" + spec.DistributionVersion
	}
	return fmt.Sprintf("%s:%s-%s", DefaultReleaseRepository, spec.DistributionVersion, spec.OpenshiftAssistedConfigSpec.Architecture())
}

// OpenshiftClusterName is the name of the OpenShift cluster.
func OpenshiftClusterName(spec controlplanev1.InstallSpec, cluster *clusterv1.Cluster) string {
	if spec.ClusterName != "" {
		return spec.ClusterName
	}
	return cluster.Name
}

// APIName is the DNS name of the installed cluster's API, which its certificate is made for.
func APIName(spec controlplanev1.InstallSpec, cluster *clusterv1.Cluster) string {
	return "api." + OpenshiftClusterName(spec, cluster) + "." + spec.BaseDomain
}

// InternalAPIName is the DNS name by which the hosts of the installed cluster call its API. A certificate of the user's cannot take its
// place there: OpenShift does not allow it.
func InternalAPIName(spec controlplanev1.InstallSpec, cluster *clusterv1.Cluster) string {
	return "api-int." + OpenshiftClusterName(spec, cluster) + "." + spec.BaseDomain
}

// ServesEndpoint reports whether the installed cluster may answer at the Cluster's control-plane endpoint: an address has to be one of the
// API's where the cluster brings its own. What a name resolves to, only the management cluster's DNS knows (CONTRACT CP-6).
func ServesEndpoint(spec controlplanev1.InstallSpec, host string) bool {
	endpoint, err := netip.ParseAddr(host)
	if err != nil || len(spec.APIVIPs) == 0 {
		return true
	}
	return slices.ContainsFunc(spec.APIVIPs, func(vip string) bool {
		address, err := netip.ParseAddr(vip)
		return err == nil && address.Unmap() == endpoint.Unmap()
	})
}

// PlatformOf is the platform of the cluster, with its default.
func PlatformOf(spec controlplanev1.OpenshiftAssistedControlPlaneSpec) controlplanev1.Platform {
	switch {
	case spec.Install.Platform != "":
		return spec.Install.Platform
	case ptr.Deref(spec.Replicas, 0) == 1:
		return controlplanev1.PlatformNone
	default:
		return controlplanev1.PlatformBareMetal
	}
}

// ControllerReference is the owner reference of Machines and of the kubeconfig, which move with their control plane.
func ControllerReference(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) metav1.OwnerReference {
	return *metav1.NewControllerRef(controlPlane, controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlane"))
}
