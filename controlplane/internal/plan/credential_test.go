// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// credentialCase is what is known of the credentials of a cluster, and what follows.
type credentialCase struct {
	given                    view.Credential
	installer                bool
	asksToken, asksInstaller bool
	want                     plan.CredentialStep
}

var (
	fresh = view.TokenLife{RenewAfter: noon.Add(time.Hour), Expires: noon.Add(3 * time.Hour)}
	due   = view.TokenLife{RenewAfter: noon, Expires: noon.Add(time.Hour)}
	retry = noon.Add(time.Minute)

	takes     = &workload.Answer{ServerName: "api", ClusterID: "id"}
	refuses   = &workload.Answer{ServerName: "api", Refused: true}
	shows     = &workload.Answer{Seen: "a certificate"}
	isAnother = &workload.Answer{ServerName: "api", ClusterID: "another"}

	tokenData, installerData = []byte("token"), []byte("installer")
)

var credentialCases = map[string]credentialCase{
	"nothing is known": {view.Credential{Connected: true}, false, false, false, plan.CredentialStep{}},
	"the first token": {
		view.Credential{Installer: installerData, Connected: true, InstallerAnswer: takes},
		false,
		false,
		true,
		plan.CredentialStep{
			ByInstaller: true,
			Publish:     plan.CredentialInstaller,
			ServerName:  "api",
			Note:        "no token was requested yet",
			At:          retry,
		},
	},
	"no first token of another cluster": {
		view.Credential{Installer: installerData, Connected: true, InstallerAnswer: isAnother}, false, false, true,
		plan.CredentialStep{Keep: true, Publish: plan.CredentialInstaller, ServerName: "api", Note: "no token was requested yet", At: retry,
			Problem: "cluster another answers, and another one was installed"},
	},
	"no first token while the cluster does not answer": {
		view.Credential{Installer: installerData, Problem: errors.New("refused")}, false, false, true,
		plan.CredentialStep{Publish: plan.CredentialInstaller, At: retry,
			Note: "no token can be requested while the cluster does not answer: refused"},
	},
	"a token in the first half of its life": {
		view.Credential{Token: tokenData, Installer: installerData, Life: fresh, Connected: true}, false, false, false,
		plan.CredentialStep{Publish: plan.CredentialToken, At: fresh.RenewAfter},
	},
	"a token in the second half": {
		view.Credential{Token: tokenData, Installer: installerData, Life: due, Connected: true, TokenAnswer: takes}, false, true, false,
		plan.CredentialStep{ByToken: true, ByInstaller: true, Publish: plan.CredentialToken, ServerName: "api", At: retry},
	},
	"a token whose life is not known": {
		view.Credential{Token: tokenData, Connected: true, TokenAnswer: takes}, false, true, false,
		plan.CredentialStep{ByToken: true, Publish: plan.CredentialToken, ServerName: "api", At: retry},
	},
	"no connection, and the token is taken": {
		view.Credential{Token: tokenData, Installer: installerData, Life: fresh, TokenAnswer: takes}, false, true, false,
		plan.CredentialStep{Publish: plan.CredentialToken, ServerName: "api", At: fresh.RenewAfter},
	},
	"no connection, and no answer": {
		view.Credential{Token: tokenData, Installer: installerData, Life: fresh, Problem: errors.New("down")}, false, true, false,
		plan.CredentialStep{Publish: plan.CredentialToken, At: retry, Note: "the cluster does not answer: down"},
	},
	"a token that is refused": {
		view.Credential{Token: tokenData, Installer: installerData, Life: fresh, TokenAnswer: refuses, InstallerAnswer: takes},
		false,
		true,
		true,
		plan.CredentialStep{
			ByInstaller: true,
			Publish:     plan.CredentialInstaller,
			ServerName:  "api",
			Note:        "the cluster refuses the token",
			At:          retry,
		},
	},
	"a ServiceAccount that was deleted": {
		view.Credential{
			Token: tokenData, Installer: installerData, Life: fresh, Connected: true, AccountMissing: "its ServiceAccount", InstallerAnswer: takes,
		},
		false,
		false,
		true,
		plan.CredentialStep{
			ByInstaller: true,
			Publish:     plan.CredentialInstaller,
			ServerName:  "api",
			Note:        "somebody has removed its ServiceAccount",
			At:          retry,
		},
	},
	"a ServiceAccount that the cache does not show yet": {
		view.Credential{Token: tokenData, Installer: installerData, Connected: true, AccountMissing: "its ServiceAccount",
			Life: view.TokenLife{RenewAfter: noon.Add(time.Hour), Expires: noon.Add(2 * time.Hour).Add(-time.Second)}},
		false, false, false,
		plan.CredentialStep{Publish: plan.CredentialToken, At: noon.Add(10 * time.Second)},
	},
	"both are refused": {
		view.Credential{
			Token:           tokenData,
			Installer:       installerData,
			Life:            fresh,
			TokenAnswer:     refuses,
			InstallerAnswer: refuses,
		},
		false,
		true,
		true,
		plan.CredentialStep{Keep: true, Publish: plan.CredentialToken, ServerName: "api", At: retry,
			Problem: "the cluster refuses the token, and the installer's credential"},
	},
	"a token that is refused, and nothing else is known": {
		view.Credential{Token: tokenData, Life: fresh, TokenAnswer: refuses}, false, true, false,
		plan.CredentialStep{Keep: true, Publish: plan.CredentialToken, ServerName: "api", At: retry,
			Problem: "the cluster refuses the token, and the installer's credential is not known"},
	},
	"a certificate that does not verify": {
		view.Credential{Token: tokenData, Installer: installerData, Life: fresh, TokenAnswer: shows}, false, true, false,
		plan.CredentialStep{Keep: true, Publish: plan.CredentialToken, At: retry,
			Problem: "the certificate of the API does not verify: a certificate"},
	},
	"a credential and its copy are refused": {
		view.Credential{Installer: installerData, Connected: true, InstallerAnswer: refuses, CopyAnswer: refuses}, false, false, true,
		plan.CredentialStep{Keep: true, Publish: plan.CredentialInstaller, ServerName: "api", Note: "no token was requested yet", At: retry,
			Problem: "the cluster refuses the installer's credential, and the copy of it"},
	},
	"opted out": {
		view.Credential{Installer: installerData, Connected: true}, true, false, false,
		plan.CredentialStep{Publish: plan.CredentialInstaller, Note: "spec.kubeconfig.credential is Installer"},
	},
	"opted out, without a connection": {
		view.Credential{Installer: installerData, InstallerAnswer: takes}, true, false, true,
		plan.CredentialStep{Publish: plan.CredentialInstaller, ServerName: "api", Note: "spec.kubeconfig.credential is Installer"},
	},
	"opting out": {
		view.Credential{Token: tokenData, Installer: installerData, Life: due, Connected: true, InstallerAnswer: takes}, true, true, true,
		plan.CredentialStep{Publish: plan.CredentialInstaller, ServerName: "api", Note: "spec.kubeconfig.credential is Installer"},
	},
	"opting out for a credential that is refused": {
		view.Credential{Token: tokenData, Installer: installerData, Life: fresh, Connected: true, InstallerAnswer: refuses}, true, false, true,
		plan.CredentialStep{Publish: plan.CredentialToken, At: fresh.RenewAfter, Note: "the cluster refuses the installer's credential"},
	},
	"opting out for a credential that is refused, when the token is to be renewed": {
		view.Credential{
			Token: tokenData, Installer: installerData, Life: due, Connected: true, TokenAnswer: takes, InstallerAnswer: refuses,
		},
		true, true, true,
		plan.CredentialStep{ByToken: true, ByInstaller: true, Publish: plan.CredentialToken, ServerName: "api", At: retry,
			Note: "the cluster refuses the installer's credential"},
	},
	"opting out for a credential that the cluster was not asked about": {
		view.Credential{Token: tokenData, Installer: installerData, Life: fresh, Connected: true, Problem: errors.New("down")}, true, false, true,
		plan.CredentialStep{Publish: plan.CredentialToken, At: retry,
			Note: "the cluster has not said yet whether it takes the installer's credential; the cluster does not answer: down"},
	},
	"opting out for a credential that is not known": {
		view.Credential{Token: tokenData, Life: fresh, Connected: true}, true, false, false,
		plan.CredentialStep{Publish: plan.CredentialToken, At: fresh.RenewAfter,
			Note: "the installer's credential, which spec.kubeconfig.credential asks for, is not known"},
	},
}

func TestDecideCredential(t *testing.T) {
	for name, tt := range credentialCases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := &view.View{
				ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}, Now: noon, Record: &view.Installed{ClusterID: "id"},
				Credential: tt.given,
			}
			if tt.installer {
				v.ControlPlane.Spec.Kubeconfig.Credential = controlplanev1.KubeconfigInstaller
			}
			g.Expect(plan.AsksToken(v)).To(Equal(tt.asksToken), "asks the token")
			g.Expect(plan.AsksInstaller(v)).To(Equal(tt.asksInstaller), "asks the installer's credential")
			g.Expect(plan.DecideCredential(v)).To(Equal(tt.want))
		})
	}
}
