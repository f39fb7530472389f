// SPDX-License-Identifier: Apache-2.0

// Package release finds out what a release image is: its digest, its version and the Kubernetes version in it (DESIGN D10). Nothing waits
// for it. A Resolver asks registries beside the reconciler, wakes it when there is an answer, and tries again less and less often.
package release

import (
	"errors"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/manager"
)

// Release is what an image is.
type Release struct {
	// Digest is the digest of what the image's name stands for, of the list where there are images of several architectures.
	Digest string
	// Version is the version of the release, for example 4.20.4.
	Version string
	// KubernetesVersion is the version of Kubernetes in it, for example v1.33.5.
	KubernetesVersion string
	// Architectures are those that the release is for, in the spelling of the Assisted Installer and in order; none when it does not tell.
	Architectures []bootstrapv1.CPUArchitecture
}

// The reasons why an image is not resolved. Their texts are shown to users, so nothing that changes between attempts is in them.
var (
	// ErrPullSecret: the pull secret is missing or no docker configuration.
	ErrPullSecret = errors.New("the pull secret cannot be used")
	// ErrTrustBundle: the additional certificates of the cluster are missing or no certificates.
	ErrTrustBundle = errors.New("the additional trust bundle cannot be used")
	// ErrCAFile: the manager's own file of certificates is missing or holds none.
	ErrCAFile = errors.New("the manager cannot use the file of its flag --" + manager.FlagRegistryCAFile)
	// ErrMirrors: what says where the mirrors of the cluster are is missing or cannot be used.
	ErrMirrors = errors.New("the mirrors of spec.install.mirrorRegistryRef cannot be used")
	// ErrMirrorsFile: the manager's own file of mirrors is missing or cannot be used.
	ErrMirrorsFile = errors.New("the manager cannot use the file of its flag --" + manager.FlagRegistriesConfFile)
	// ErrManagementMirrors: the management cluster is OpenShift, and names a mirror in a way that cannot be used.
	ErrManagementMirrors = errors.New("the ImageDigestMirrorSets and ImageTagMirrorSets of the management cluster cannot be used")
	// ErrManagementCluster: the credentials or mirrors for the registry could not be read. It says nothing about the image.
	ErrManagementCluster = errors.New("the management cluster did not let the manager read the credentials or mirrors for the registry")
	// ErrBlocked: the registry must not be asked, and has no mirror for such a name.
	ErrBlocked = errors.New("the registry is blocked and has no mirror for the image: mirrors of an ImageDigestMirrorSet, and with " +
		"mirror-by-digest-only, are for images by digest")
	// ErrUnauthorized: the registry wants other credentials.
	ErrUnauthorized = errors.New("the registry refuses the credentials of the pull secret")
	// ErrNotFound: the registry does not have the image.
	ErrNotFound = errors.New("the registry does not have the image")
	// ErrCertificate: the registry's certificate is not trusted.
	ErrCertificate = errors.New(
		"the certificate of the registry is not trusted: add its CA to openshiftAssistedConfigSpec.additionalTrustBundle, or to " +
			"the file of the manager's flag --" + manager.FlagRegistryCAFile,
	)
	// ErrTimeout: the registry is too slow.
	ErrTimeout = errors.New("the registry did not answer in time")
	// ErrUnreachable: there is no connection to the registry, or it has a problem of its own.
	ErrUnreachable = errors.New("the registry cannot be reached")
	// ErrNoRelease: the image is something else.
	ErrNoRelease = errors.New("the image is no OpenShift release")
)
