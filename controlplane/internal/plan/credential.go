// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/controlplane/internal/workload"
)

// credentialRetryInterval is how often a token that could not be had is requested again, and a cluster asked that could not be connected
// to: no event tells that it would answer, when the token for it has ended meanwhile.
const credentialRetryInterval = time.Minute

// accountSettles is how long after a token was issued the cache may not show its ServiceAccount yet.
const accountSettles = 10 * time.Second

// CredentialKind is what <cluster>-kubeconfig holds.
type CredentialKind string

const (
	// CredentialToken: a token of the ServiceAccount.
	CredentialToken CredentialKind = "Token"
	// CredentialInstaller: the client certificate of the installer's administrator.
	CredentialInstaller CredentialKind = "Installer"
)

// CredentialStep is what is done about the credential in <cluster>-kubeconfig (DESIGN D34).
type CredentialStep struct {
	// ByToken and ByInstaller: a new token is requested with the present one, and with the installer's credential when that fails.
	ByToken, ByInstaller bool
	// Publish is what the Secret holds when no token is requested, or none can be had; empty when there is nothing that it could hold.
	Publish CredentialKind
	// ServerName is the name by which the server's certificate verifies; empty leaves it as it is.
	ServerName string
	// Note says why the Secret holds the installer's credential, or why the token is not renewed; empty when there is nothing to say.
	Note string
	// Keep: the cluster does not take what the Secret would hold, so that its data stays as it is.
	Keep bool
	// Problem says why nobody can connect with the Secret.
	Problem string
	// At is when the next pass is due.
	At time.Time
}

// Requests reports whether a token is requested.
func (s CredentialStep) Requests() bool { return s.ByToken || s.ByInstaller }

// AsksToken reports whether the cluster is asked what it says to the token: because it is to be renewed, or because there is no connection,
// of which a token that is refused is one cause.
func AsksToken(v *view.View) bool {
	c := v.Credential
	return c.Token != nil && (!c.Connected || tokenDue(v))
}

// AsksInstaller reports the same of the installer's credential. It is asked after the token.
func AsksInstaller(v *view.View) bool {
	c := v.Credential
	switch {
	case c.Installer == nil:
		return false
	case c.Token == nil:
		return v.WantsToken() || !c.Connected
	case v.WantsToken():
		return accountGone(v) || c.TokenAnswer != nil && c.TokenAnswer.Refused
	default:
		return true
	}
}

// accountGone reports whether somebody has deleted the ServiceAccount of the token, or its rights. The cluster may take the token for some
// seconds more. Just after the token was issued, the cache may not show yet what was made for it.
func accountGone(v *view.View) bool {
	return v.Credential.AccountMissing != "" && v.Now.Sub(v.Credential.Life.Issued()) > accountSettles
}

// tokenDue reports whether the token has lived for half of its life, or it is not known how long it lives.
func tokenDue(v *view.View) bool { return !v.Now.Before(v.Credential.Life.RenewAfter) }

// DecideCredential decides what <cluster>-kubeconfig holds, from what the cluster said to the kubeconfigs that there are.
func DecideCredential(v *view.View) CredentialStep {
	c := v.Credential
	s := CredentialStep{Publish: CredentialInstaller, ServerName: serverName(c.InstallerAnswer)}
	if c.Token != nil {
		s.Publish, s.ServerName = CredentialToken, serverName(c.TokenAnswer)
	}
	if c.Token == nil && c.Installer == nil {
		return CredentialStep{}
	}
	switch {
	case !v.WantsToken():
		useInstaller(v, &s)
	case c.Token == nil:
		firstToken(v, &s)
	default:
		renewToken(v, &s)
	}
	answer := c.InstallerAnswer
	if s.Publish == CredentialToken {
		answer = c.TokenAnswer
	}
	s.Keep = answer != nil && !Takes(v, answer)
	if s.Problem == "" && c.Problem != nil {
		s.Note = unanswered(v, s.Note)
	}
	switch {
	case c.AccountMissing != "" && !accountGone(v):
		s.At = v.Now.Add(accountSettles)
	case s.Problem != "" || c.Problem != nil || s.Requests():
		s.At = v.Now.Add(credentialRetryInterval)
	}
	return s
}

// unanswered adds to a note that the cluster does not answer, and why.
func unanswered(v *view.View, note string) string {
	silent := "the cluster does not answer: " + v.Credential.Problem.Error()
	switch {
	case v.WantsToken() && tokenDue(v):
		return "no token can be requested while " + silent
	case note != "":
		return note + "; " + silent
	default:
		return silent
	}
}

// useInstaller puts the installer's credential into the Secret because the user wants it. A token gives way to it once the cluster takes
// it, and is renewed until then.
func useInstaller(v *view.View, s *CredentialStep) {
	c := v.Credential
	if c.Installer == nil {
		renewToken(v, s)
		s.Note = "the installer's credential, which spec.kubeconfig.credential asks for, is not known"
		return
	}
	objection := objectionToInstaller(v, "")
	if c.Token != nil && !Takes(v, c.InstallerAnswer) {
		renewToken(v, s)
		s.Note = cmp.Or(objection, "the cluster has not said yet whether it takes the installer's credential")
		return
	}
	s.Publish, s.Problem, s.ServerName = CredentialInstaller, objection, serverName(c.InstallerAnswer)
	s.Note = "spec.kubeconfig.credential is Installer"
}

// firstToken puts a token into the Secret, which holds the installer's credential or does not exist.
func firstToken(v *view.View, s *CredentialStep) {
	s.Problem = objectionToInstaller(v, "")
	s.ByInstaller = Takes(v, v.Credential.InstallerAnswer)
	s.Note = "no token was requested yet"
}

// renewToken renews the token in the Secret by itself at half of its life, and by the installer's credential when it is refused.
func renewToken(v *view.View, s *CredentialStep) {
	c := v.Credential
	switch {
	case accountGone(v) || c.TokenAnswer != nil && c.TokenAnswer.Refused:
		s.Problem = "the cluster refuses the token, and the installer's credential is not known"
		if c.Installer != nil {
			s.Problem = objectionToInstaller(v, "the token, and ")
		}
		if Takes(v, c.InstallerAnswer) {
			s.ByInstaller, s.Publish, s.ServerName = true, CredentialInstaller, serverName(c.InstallerAnswer)
			s.Note = "the cluster refuses the token"
			if accountGone(v) {
				s.Note = "somebody has removed " + c.AccountMissing
			}
		}
	case !Takes(v, c.TokenAnswer):
		s.Problem = objectionTo(v, c.TokenAnswer, "the token")
	case tokenDue(v):
		s.ByToken, s.ByInstaller = true, c.Installer != nil
	}
	if s.Problem == "" && !tokenDue(v) {
		s.At = c.Life.RenewAfter
	}
}

// objectionToInstaller says why the installer's credential, and others that were tried before, lead nowhere.
func objectionToInstaller(v *view.View, others string) string {
	what := others + "the installer's credential"
	if v.Credential.CopyAnswer != nil {
		what += ", and the copy of it"
	}
	return objectionTo(v, v.Credential.InstallerAnswer, what)
}

// Takes reports whether the cluster that was installed takes the kubeconfig to which it has answered.
func Takes(v *view.View, a *workload.Answer) bool {
	return a != nil && a.ServerName != "" && !a.Refused && v.Record != nil && a.ClusterID == v.Record.ClusterID
}

// objectionTo says why a kubeconfig leads nowhere; it is empty when it leads to the cluster, or the cluster was not asked.
func objectionTo(v *view.View, a *workload.Answer, credential string) string {
	switch {
	case a == nil || Takes(v, a):
		return ""
	case a.ServerName == "":
		return "the certificate of the API does not verify: " + a.Seen
	case a.Refused:
		return "the cluster refuses " + credential
	default:
		return fmt.Sprintf("cluster %s answers, and another one was installed", a.ClusterID)
	}
}

func serverName(a *workload.Answer) string {
	if a == nil {
		return ""
	}
	return a.ServerName
}
