// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// Credential is what is known of the credentials of an initialized cluster (DESIGN D34). The zero value says nothing: the cluster is not
// initialized, or <cluster>-kubeconfig is somebody else's.
type Credential struct {
	// Token is a kubeconfig with the token of <cluster>-kubeconfig, and Installer one with the installer's credential; each is nil when that
	// is not known. Both are as they should be published.
	Token, Installer []byte
	// Life is how long the token lives; its zero value says that this is not known.
	Life TokenLife
	// Connected: the ClusterCache is connected through <cluster>-kubeconfig, or has not tried to connect yet.
	Connected bool
	// AccountMissing names what is missing of the ServiceAccount of the token and of its rights, so that the token is worth nothing; empty
	// when nothing is.
	AccountMissing string
	// Authorities are the certificates by which the cluster's API servers are verified, as PEM; empty when they are not known.
	Authorities []byte
	// TokenAnswer and InstallerAnswer are what the cluster said to the two kubeconfigs in this pass; nil when it was not asked, or did not
	// answer, for which Problem is the reason. CopyAnswer is what it said to the copy of the installer's credential, which is only asked for
	// when the cluster refuses what somebody has put into <cluster>-kubeconfig.
	TokenAnswer, InstallerAnswer, CopyAnswer *workload.Answer
	Problem                                  error
}

// TokenLife is what the annotation KubeconfigTokenAnnotation records.
type TokenLife struct {
	// Expires is when the token ends, and RenewAfter from when on it is renewed.
	Expires    time.Time `json:"expires"`
	RenewAfter time.Time `json:"renewAfter"`
}

// LifeOfToken is the life of a token that was issued just now: it is renewed at half of it.
func LifeOfToken(now, expires time.Time) TokenLife {
	half := max(expires.Sub(now)/2, time.Minute)
	return TokenLife{Expires: expires.UTC().Truncate(time.Second), RenewAfter: now.Add(half).UTC().Truncate(time.Second)}
}

// Issued is when the token was issued.
func (l TokenLife) Issued() time.Time { return l.RenewAfter.Add(-l.Expires.Sub(l.RenewAfter)) }

// String is the annotation's value.
func (l TokenLife) String() string {
	value, err := json.Marshal(l)
	if err != nil {
		return "" // Only years of five digits cannot be encoded.
	}
	return string(value)
}

// LifeOfTokenIn is the life that is recorded on a Secret; zero when none is, or it cannot be read: then the token is renewed.
func LifeOfTokenIn(s *corev1.Secret) TokenLife {
	var life TokenLife
	if err := json.Unmarshal([]byte(s.Annotations[controlplanev1.KubeconfigTokenAnnotation]), &life); err != nil {
		return TokenLife{}
	}
	return life
}

// WantsToken reports whether <cluster>-kubeconfig is to hold a token.
func (v *View) WantsToken() bool {
	return v.ControlPlane.Spec.Kubeconfig.Credential != controlplanev1.KubeconfigInstaller
}

// InstallerCredentialsName is the name of the Secret with a copy of the installer's credential. It has no suffix by which Cluster API would
// take it for a kubeconfig (CONTRACT CP-58).
func InstallerCredentialsName(controlPlane *controlplanev1.OpenshiftAssistedControlPlane) string {
	return controlPlane.Name + InstallerCredentialsSuffix
}

// InstallerCredentialsSuffix is what the names of those Secrets end with.
const InstallerCredentialsSuffix = "-installer-credentials" //nolint:gosec // A part of a name.
