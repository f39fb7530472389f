// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capi-openshift/agent-providers/controlplane/internal/plan"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// issuance is the request of a token.
type issuance struct {
	// by are the kubeconfigs to request it with, one after the other, and account says of which the ServiceAccount is made first.
	by []requester
	// into is the kubeconfig that the token is put into.
	into []byte
}

// requester is a kubeconfig with which a token is requested.
type requester struct {
	kubeconfig []byte
	// account: the ServiceAccount is made first.
	account bool
}

// keepsCredential reports whether <cluster>-kubeconfig holds a credential that is looked after: that of an installed cluster whose API has
// answered. One that holds a token already, or is lost, needs it before that: management may have been away for longer than the token
// lives.
func keepsCredential(v *view.View) bool {
	if !plan.Serves(v) || v.Life == view.Mismatch || v.Record == nil || foreignKubeconfig(v) {
		return false
	}
	if v.Life == view.Deleting {
		return v.Kubeconfigs.Token != "" // Nothing is made anew that garbage collection may have deleted.
	}
	lost := v.Kubeconfigs.Cluster == nil && v.InstalledElsewhere() && copyOf(v) != nil
	return v.Initialized() || lost || v.Kubeconfigs.Token != ""
}

// copyOf is the installer's credential as it was copied; nil when there is no copy, or it is somebody else's.
func copyOf(v *view.View) []byte {
	if v.Kubeconfigs.Copy == nil || foreignCopy(v) != "" {
		return nil
	}
	return v.Kubeconfigs.Copy.Data[assisted.KubeconfigKey]
}

// foreignCopy says that a Secret of somebody else's stands where the copy of the installer's credential is to be; it is empty when none
// does. One that has our Cluster's label and no controller has lost its owner.
func foreignCopy(v *view.View) string {
	there := v.Kubeconfigs.Copy
	if there == nil || metav1.IsControlledBy(there, v.ControlPlane) ||
		metav1.GetControllerOf(there) == nil && there.Labels[clusterv1.ClusterNameLabel] == v.ClusterName {
		return ""
	}
	return fmt.Sprintf("Secret %s, which is to hold a copy of the installer's credential, belongs to somebody else: delete or rename it",
		klog.KObj(there))
}

// prepareCredential sets the kubeconfigs of View.Credential from the Secrets that were read.
func prepareCredential(v *view.View) {
	published, token := publishedKubeconfig(v), v.Kubeconfigs.Token
	trust := render.TrustOf(published)
	installer := installerKubeconfig(v, published)
	if installer != nil {
		v.Credential.Installer = trusting(v, installer, trust, "")
	}
	if token == "" {
		return
	}
	v.Credential.Token, v.Credential.Life = published, view.LifeOfTokenIn(v.Kubeconfigs.Cluster)
	if ownSource(v) && installer != nil {
		if data, err := render.WithToken(v.Credential.Installer, token); err == nil {
			v.Credential.Token = data
		}
		return
	}
	v.Credential.Token = trusting(v, published, trust, "")
}

// ownSource reports whether assisted-service publishes the credentials of the cluster here, since it has installed it.
func ownSource(v *view.View) bool { return !v.InstalledElsewhere() && sourceKnown(v) }

// installerKubeconfig is a kubeconfig with the installer's credential; nil when that is not known any more.
func installerKubeconfig(v *view.View, published []byte) []byte {
	switch {
	case ownSource(v):
		data, err := rewritten(v)
		if err != nil {
			return nil
		}
		return data
	case published != nil && v.Kubeconfigs.Token == "":
		if render.CheckKubeconfig(published) == nil {
			return published
		}
	}
	return copied(v)
}

// rewritten is the kubeconfig of assisted-service as it is published.
func rewritten(v *view.View) ([]byte, error) {
	endpoint := v.Cluster.Spec.ControlPlaneEndpoint
	return render.RewriteKubeconfig(v.Kubeconfigs.Installer.Data[assisted.KubeconfigKey], endpoint.Host,
		net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port))), view.APIName(v.ControlPlane.Spec.Install, v.Cluster))
}

// copied is a kubeconfig with the copy of the installer's credential, which calls the server that <cluster>-kubeconfig calls; nil when
// there is no copy.
func copied(v *view.View) []byte {
	data := copyOf(v)
	if data == nil {
		return nil
	}
	if there, err := render.WithCredentialOf(publishedKubeconfig(v), data); err == nil {
		return there
	}
	return data
}

// trusting is a kubeconfig that verifies its server as the cluster asks for: by a name, or the one that <cluster>-kubeconfig has when it is
// empty; and by the authorities of the installer's kubeconfig and those that the cluster tells, or told last.
func trusting(v *view.View, kubeconfig []byte, published render.Trust, name string) []byte {
	known, told := render.TrustOf(kubeconfig), v.Credential.Authorities
	if len(told) == 0 {
		told = published.Authorities
	}
	if name == "" {
		name = known.Name
		if slices.Contains(serverNames(v, nil), published.Name) {
			name = published.Name
		}
	}
	source := known.Authorities
	if data := copyOf(v); data != nil && !ownSource(v) {
		source = render.TrustOf(data).Authorities
	}
	data, err := render.WithTrust(kubeconfig, render.Trust{Name: name, Authorities: render.Authorities(v.Now, source, told)})
	if err != nil {
		return kubeconfig
	}
	return data
}

// decideCredential decides about <cluster>-kubeconfig of an installed cluster, and about the copy of the installer's credential.
func decideCredential(v *view.View) kubeconfigDecision {
	step := plan.DecideCredential(v)
	d := kubeconfigDecision{note: step.Note, at: step.At, holds: step.Publish}
	switch {
	case step.Problem != "" && v.Kubeconfigs.Cluster == nil:
		d.problem = "No Secret is published: " + step.Problem
	case step.Problem != "":
		d.problem = "Nobody can connect with the Secret: " + step.Problem
	}
	if step.Publish == "" {
		d.problem = noCredential(v)
		return d
	}
	token, installer := v.Credential.Token, v.Credential.Installer
	if step.ServerName != "" {
		token, installer = called(v, token, step.ServerName), called(v, installer, step.ServerName)
	}
	wanted := installer
	if step.Publish == plan.CredentialToken {
		wanted = token
	}
	if step.Keep {
		wanted = publishedKubeconfig(v)
	}
	if wanted != nil && (!bytes.Equal(publishedKubeconfig(v), wanted) || !ownsKubeconfig(v)) {
		d.publish = wanted
	}
	d.copy = copyToWrite(v, installer)
	d.issue = issue(step, token, installer)
	if inTheWay := foreignCopy(v); inTheWay != "" && v.WantsToken() {
		d.besideForeignCopy(v, inTheWay)
	}
	d.decideShare(v, publishedKubeconfig(v))
	if v.Life == view.Deleting {
		d.whileDeleting(v)
	}
	return d
}

// besideForeignCopy tells what is in the way of the copy.
func (d *kubeconfigDecision) besideForeignCopy(v *view.View, inTheWay string) {
	if v.Credential.Token == nil {
		d.issue, d.note = nil, "" // A first token would replace what may be all that is left of the installer's credential.
	}
	d.note = strings.TrimPrefix(d.note+"; "+inTheWay, "; ")
	// One without the label is in no cache: no event tells that it has gone.
	if again := v.Now.Add(conflictRetryInterval); d.at.IsZero() || again.Before(d.at) {
		d.at = again
	}
}

// whileDeleting leaves of a decision what others need to reach the cluster, once that has answered: nothing else says here whether it is
// the one that was installed.
func (d *kubeconfigDecision) whileDeleting(v *view.View) {
	d.copy, d.share = nil, nil
	if !plan.Takes(v, v.Credential.TokenAnswer) && !plan.Takes(v, v.Credential.InstallerAnswer) {
		d.publish, d.issue = nil, nil
	}
}

// called is a kubeconfig that verifies its server by another name; nil if there is none.
func called(v *view.View, kubeconfig []byte, name string) []byte {
	if kubeconfig == nil {
		return nil
	}
	return trusting(v, kubeconfig, render.TrustOf(publishedKubeconfig(v)), name)
}

// issue says how a token is requested; nil when none is.
func issue(step plan.CredentialStep, token, installer []byte) *issuance {
	i := &issuance{into: token}
	if step.ByToken {
		i.by = append(i.by, requester{kubeconfig: token})
	}
	if step.ByInstaller {
		i.by, i.into = append(i.by, requester{installer, true}), installer
	}
	if len(i.by) == 0 {
		return nil
	}
	return i
}

// replacesTooEarly reports whether a new token takes the place of one that the cluster refuses before it has ended. One that has ended is
// no reason to warn anybody: so it is after every long outage.
func replacesTooEarly(v *view.View, d kubeconfigDecision) bool {
	ended := v.Credential.Life.Expires
	return v.Credential.Token != nil && d.holds == plan.CredentialInstaller &&
		(v.Credential.AccountMissing != "" || ended.IsZero() || v.Now.Before(ended))
}

// copyToWrite is what the Secret with the copy of the installer's credential has to hold; nil when it is right, or nobody knows better.
func copyToWrite(v *view.View, installer []byte) []byte {
	known := ownSource(v) || v.Credential.Token != nil
	if answer := v.Credential.InstallerAnswer; answer != nil {
		known = known || answer.ClusterID == v.Record.ClusterID
	}
	if !v.WantsToken() || !known || installer == nil || foreignCopy(v) != "" {
		return nil
	}
	if bytes.Equal(copyOf(v), installer) && metav1.IsControlledBy(v.Kubeconfigs.Copy, v.ControlPlane) &&
		v.Kubeconfigs.Copy.Labels[clusterv1.ClusterNameLabel] == v.ClusterName {
		return nil
	}
	return installer
}

// noCredential says why nobody knows how to connect to the installed cluster.
func noCredential(v *view.View) string {
	if !v.InstalledElsewhere() {
		if problem := sourceProblem(v); problem != "" {
			return problem
		}
		if _, err := rewritten(v); err != nil {
			return "Secret " + v.Kubeconfigs.Installer.Name + " cannot be used: " + err.Error()
		}
	}
	if v.Kubeconfigs.Cluster != nil {
		return "Secret " + v.Kubeconfigs.Cluster.Name + " cannot be used: " + defectOf(v)
	}
	return kubeconfigLost(v)
}

// credentialText says which credential of an installed cluster <cluster>-kubeconfig holds.
func credentialText(holds plan.CredentialKind, note string, life view.TokenLife) string {
	switch {
	case holds == plan.CredentialInstaller && note != "":
		return "The Secret holds the installer's credential: " + note
	case holds == plan.CredentialToken:
		text := "The Secret holds a token"
		if !life.Expires.IsZero() {
			text += " that is valid until " + life.Expires.UTC().Format(time.RFC3339)
		}
		if note != "" {
			text += "; " + note
		}
		return text
	default:
		return ""
	}
}

// tokenLifeOf is the life that is recorded on a Secret that may not exist.
func tokenLifeOf(s *corev1.Secret) view.TokenLife {
	if s == nil {
		return view.TokenLife{}
	}
	return view.LifeOfTokenIn(s)
}
