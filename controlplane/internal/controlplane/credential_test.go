// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const day = 24 * time.Hour

// optOut makes the user ask for the installer's credential, and optIn for a token.
func (w *world) optOut() {
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Kubeconfig.Credential = controlplanev1.KubeconfigInstaller
	})
}

func (w *world) optIn() {
	w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
		s.Kubeconfig.Credential = controlplanev1.KubeconfigServiceAccount
	})
}

// installerCredentials is the copy of the installer's credential; nil when there is none.
func (w *world) installerCredentials() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "cp-installer-credentials"}, s); err != nil {
		w.must(client.IgnoreNotFound(err))
		return nil
	}
	return s
}

// token is the token in <cluster>-kubeconfig; empty when it holds the installer's credential.
func (w *world) token() string { return render.TokenOf(w.kubeconfig().Data["value"]) }

// passes makes some passes, during which the cluster's API goes on to answer if it does.
func (w *world) passes(n int) {
	w.t.Helper()
	for range n {
		if w.api.ID != "" {
			w.api.Last = w.now
		}
		w.credentials.Lost = w.api.ID == "" || !w.credentials.Takes(w.kubeconfig().Data["value"])
		w.reconcile()
	}
}

// after lets time pass and makes some passes.
func (w *world) after(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	w.passes(3)
}

// tokenWorld is a world of an installed cluster whose kubeconfig holds a token.
func tokenWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1, 0)
	w.run(nil, w.available)
	w.passes(2)
	NewWithT(t).Expect(w.token()).NotTo(BeEmpty())
	return w
}

// checkWorks fails when nobody can connect with <cluster>-kubeconfig, or the condition says otherwise.
func (w *world) checkWorks() {
	w.t.Helper()
	g := NewWithT(w.t)
	g.Expect(w.credentials.Takes(w.kubeconfig().Data["value"])).To(BeTrue())
	condition := conditions.Get(w.controlPlane(), controlplanev1.KubeconfigAvailableCondition)
	g.Expect(condition.Status).To(Equal(metav1.ConditionTrue), condition.Message)
}

func testTokenAfterInstallation(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.run(nil, func() bool {
		return w.reason(controlplanev1.KubeconfigAvailableCondition) == controlplanev1.KubeconfigAvailableReason
	})
	g.Expect(w.token()).To(BeEmpty(), "before the cluster is installed")
	g.Expect(w.credentials.Asked + w.credentials.Requested).To(BeZero())
	w.run(nil, w.available)
	w.passes(2)
	w.checkWorks()
	g.Expect(w.token()).NotTo(BeEmpty())
	g.Expect(string(w.kubeconfig().Data["value"])).NotTo(ContainSubstring("installer"))
	copied := w.installerCredentials()
	g.Expect(string(copied.Data[assisted.KubeconfigKey])).To(And(ContainSubstring("installer"), ContainSubstring("https://192.0.2.5:6443")))
	g.Expect(metav1.IsControlledBy(copied, w.controlPlane())).To(BeTrue(), "it moves with the control plane")
	life := view.LifeOfTokenIn(w.kubeconfig())
	g.Expect(w.message(controlplanev1.KubeconfigAvailableCondition)).
		To(Equal("The Secret holds a token that is valid until " + life.Expires.Format(time.RFC3339)))
}

func testThreeRenewals(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	seen := map[string]bool{}
	for range 3 {
		seen[w.token()] = true
		life, asked := view.LifeOfTokenIn(w.kubeconfig()), w.credentials.Asked
		g.Expect(w.reconcile().RequeueAfter).To(Equal(life.RenewAfter.Sub(w.now)))
		before := w.allVersions()
		w.now = life.RenewAfter.Add(-time.Second)
		w.passes(2)
		g.Expect(w.allVersions()).To(Equal(before), "until half of its life nothing is written")
		g.Expect(w.credentials.Asked).To(Equal(asked), "and nobody asked")
		ensured := w.credentials.Ensured
		w.after(time.Second)
		g.Expect(seen).NotTo(HaveKey(w.token()))
		g.Expect(w.credentials.Ensured).To(Equal(ensured), "it was renewed by the token before")
		g.Expect(w.credentials.Issued).To(Equal(len(seen) + 1))
		w.checkWorks()
	}
}

// allVersions are those of versions and of the Secrets.
func (w *world) allVersions() map[string]string {
	versions := w.versions()
	versions["kubeconfig"], versions["copy"] = w.kubeconfig().ResourceVersion, w.installerCredentials().ResourceVersion
	return versions
}

func testShorterLife(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	w.credentials.MaxLifetime = 2 * time.Hour
	w.run(nil, w.available)
	w.passes(2)
	life := view.LifeOfTokenIn(w.kubeconfig())
	g.Expect(life.Expires.Sub(life.RenewAfter)).To(Equal(time.Hour))
	before := w.token()
	w.after(time.Hour)
	g.Expect(w.token()).NotTo(Equal(before))
}

func testAccountDeleted(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	before := w.token()
	w.credentials.DeleteAccount()
	w.after(2 * time.Minute)
	g.Expect(w.token()).NotTo(Or(BeEmpty(), Equal(before)))
	g.Expect(w.credentials.Account).To(BeTrue())
	w.checkWorks()
	before = w.token()
	w.now = w.now.Add(time.Hour)
	w.credentials.Account, w.credentials.Lost = false, false
	w.reconcile()
	g.Expect(w.token()).NotTo(Equal(before), "the connection may be older than the token, and tells nothing")
}

// testManagementAway: the manager did not run for longer than a token lives.
func testManagementAway(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	before := w.token()
	w.after(8 * day)
	g.Expect(w.token()).NotTo(Or(BeEmpty(), Equal(before)))
	w.checkWorks()
}

// testMovedLate: the control plane is moved, and the target looks at it after the token has ended.
func testMovedLate(t *testing.T) {
	for name, away := range map[string]time.Duration{"at once": time.Hour, "after its renewal": 5 * day, "after the token's end": 8 * day} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			source := installedWorld(t)
			source.passes(2)
			before := source.token()
			w := source.moved()
			w.now = w.now.Add(away)
			w.credentials.Lost, w.api.ID = !w.credentials.Takes(w.kubeconfig().Data["value"]), clusterID
			for range 6 {
				w.connected()
				_ = w.try()
				w.importService()
				w.core()
			}
			w.checkWorks()
			g.Expect(w.initialized()).To(BeTrue())
			same := w.token() == before
			g.Expect(same).To(Equal(away < day))
			shared := &corev1.Secret{}
			w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "cp-admin-kubeconfig"}, shared))
			g.Expect(shared.Data[assisted.KubeconfigKey]).To(Equal(w.kubeconfig().Data["value"]), "assisted-service follows")
			w.after(4 * day)
			w.must(w.client.Get(context.Background(), client.ObjectKeyFromObject(shared), shared))
			g.Expect(shared.Data[assisted.KubeconfigKey]).To(Equal(w.kubeconfig().Data["value"]), "every renewal")
			w.must(w.client.Delete(context.Background(), w.kubeconfig()))
			w.reconcile()
			w.passes(2)
			w.checkWorks()
		})
	}
}

// connected is the ClusterCache, which connects with what <cluster>-kubeconfig holds, and learns which cluster answers.
func (w *world) connected() {
	w.credentials.Lost = !w.credentials.Takes(w.kubeconfig().Data["value"])
	w.api.ID, w.api.Last, w.api.Reported = clusterID, w.now, healthyOperators()
	if w.credentials.Lost {
		w.api.Last, w.api.Reported = time.Time{}, nil
	}
}

// importedWithoutToken is a world whose cluster was moved there with the installer's credential alone.
func importedWithoutToken(t *testing.T) *world {
	t.Helper()
	source := newWorld(t, 3, 1)
	source.optOut()
	source.run(nil, source.available)
	w := source.moved()
	w.optOut()
	w.finishImport()
	return w
}

// testImportedByAnEarlierVersion: a cluster was moved here by a version of the provider that knew no tokens, and the only credential that
// there is must not be lost on the way.
func testImportedByAnEarlierVersion(t *testing.T) {
	g := NewWithT(t)
	w := importedWithoutToken(t)
	only := w.kubeconfig().Data["value"]
	g.Expect(w.installerCredentials()).To(BeNil())
	w.optIn()
	w.passes(3)
	g.Expect(w.token()).NotTo(BeEmpty())
	g.Expect(string(w.installerCredentials().Data[assisted.KubeconfigKey])).To(Equal(string(only)))
	w.checkWorks()
}

func testNoToken(t *testing.T) {
	for name, refuse := range map[string]func(*world){
		"no token is issued":                func(w *world) { w.credentials.RequestErr = errors.New("the API is busy") },
		"the ServiceAccount cannot be made": func(w *world) { w.credentials.AccountErr = errors.New("the API is busy") },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 1, 0)
			refuse(w)
			w.run(nil, w.available)
			w.passes(2)
			g.Expect(w.token()).To(BeEmpty())
			g.Expect(w.reconcile().RequeueAfter).To(Equal(time.Minute))
			g.Expect(w.message(controlplanev1.KubeconfigAvailableCondition)).
				To(Equal("The Secret holds the installer's credential: the API is busy"))
			before := w.kubeconfig().ResourceVersion
			w.passes(2)
			g.Expect(w.kubeconfig().ResourceVersion).To(Equal(before))
			w.checkWorks()
			w.credentials.RequestErr, w.credentials.AccountErr = nil, nil
			w.after(time.Minute)
			g.Expect(w.token()).NotTo(BeEmpty())
			w.credentials.RequestErr = errors.New("the API is busy")
			before = w.token()
			w.after(4 * day)
			g.Expect(w.token()).To(Equal(before), "a token that is not renewed is good to its end")
			g.Expect(w.message(controlplanev1.KubeconfigAvailableCondition)).To(ContainSubstring("the API is busy"))
			w.checkWorks()
			w.after(4 * day)
			g.Expect(w.token()).To(BeEmpty(), "then the installer's credential takes its place")
			w.checkWorks()
			w.credentials.RequestErr, w.credentials.AccountErr = nil, nil
			w.after(time.Minute)
			g.Expect(w.token()).NotTo(BeEmpty())
			w.checkWorks()
		})
	}
}

func testOptOut(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	w.optOut()
	w.passes(2)
	g.Expect(string(w.kubeconfig().Data["value"])).To(ContainSubstring("installer"))
	g.Expect(w.kubeconfig().Annotations).NotTo(HaveKey(controlplanev1.KubeconfigTokenAnnotation))
	g.Expect(w.message(controlplanev1.KubeconfigAvailableCondition)).
		To(Equal("The Secret holds the installer's credential: spec.kubeconfig.credential is Installer"))
	before, asked := w.allVersions(), w.credentials.Asked
	w.after(30 * day)
	g.Expect(w.allVersions()).To(Equal(before))
	g.Expect(w.credentials.Asked).To(Equal(asked))
	w.checkWorks()
	w.optIn()
	w.passes(2)
	g.Expect(w.token()).NotTo(BeEmpty())
	w.checkWorks()
}

// TestTokenStaysWithoutARecord: without the record of the installed cluster nobody knows which cluster a credential would lead to.
func TestTokenStaysWithoutARecord(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	cluster := &clusterv1.Cluster{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: clusterName}, cluster)).To(Succeed())
	v, err := w.r.observe(t.Context(), w.controlPlane(), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(keepsCredential(v)).To(BeTrue())
	v.Record = nil
	g.Expect(keepsCredential(v)).To(BeFalse())
	g.Expect(decideKubeconfig(v)).To(Equal(kubeconfigDecision{}))
}

func TestContractCredential(t *testing.T) {
	t.Run("CP-53 an installed cluster issues a token for days, and the installer's credential is copied", testTokenAfterInstallation)
	t.Run("CP-53 KCP-28 the token is renewed at half its life by itself, three times", testThreeRenewals)
	t.Run("KCP-28 a cluster that shortens the life of tokens is followed", testShorterLife)
	t.Run("CP-53 a ServiceAccount that somebody deleted is made again", testAccountDeleted)
	t.Run("CP-53 a manager that was away for longer than a token lives comes back", testManagementAway)
	t.Run("CP-53 CTL-42 a token moves, and the installer's credential with it", testMovedLate)
	t.Run("CP-53 the only credential of a cluster that was moved by an earlier version is copied first", testImportedByAnEarlierVersion)
	t.Run("CP-53 without a token the installer's credential is used, and the condition says why", testNoToken)
	t.Run("CP-53 the authorities of the API are followed, and nothing is written until they change", testAuthoritiesRotate)
	t.Run("CP-53 a certificate of the user's for the API's name does not cut the connection", testServerName)
	t.Run("CP-53 users may ask for the installer's credential, and back", testOptOut)
}

// TestTokenIsWhatTheCacheShows: nothing is requested while the cache is behind.
func TestTokenIsWhatTheCacheShows(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	w.now = w.now.Add(4 * day)
	behind := w.kubeconfig()
	w.passes(1)
	issued := w.credentials.Issued
	w.r.Kubeconfigs = staleReader{w.client, behind}
	w.passes(2)
	g.Expect(w.credentials.Issued).To(Equal(issued))
}

// staleReader shows one Secret as it was.
type staleReader struct {
	client.Reader
	secret *corev1.Secret
}

func (r staleReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if s, ok := o.(*corev1.Secret); ok && key.Name == r.secret.Name {
		r.secret.DeepCopyInto(s)
		return nil
	}
	return r.Reader.Get(ctx, key, o, opts...)
}

// TestAnotherClusterIssuesNothing: what answers by the kubeconfig is not the cluster that was installed.
func TestAnotherClusterIssuesNothing(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	issued := w.credentials.Issued
	w.credentials.Cluster = func() string { return "another" }
	w.after(4 * day)
	g.Expect(w.credentials.Issued).To(Equal(issued))
	g.Expect(w.message(controlplanev1.KubeconfigAvailableCondition)).
		To(Equal("Nobody can connect with the Secret: cluster another answers, and another one was installed"))
	g.Expect(w.reason(controlplanev1.KubeconfigAvailableCondition)).To(Equal(controlplanev1.KubeconfigNotAvailableReason))
}
