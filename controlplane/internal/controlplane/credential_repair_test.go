// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// kubeconfigCondition is what the control plane says of <cluster>-kubeconfig.
func (w *world) kubeconfigCondition() *metav1.Condition {
	return conditions.Get(w.controlPlane(), controlplanev1.KubeconfigAvailableCondition)
}

// holding puts a kubeconfig of the user's into a Secret.
func (w *world) holding(s *corev1.Secret, key, token string) []byte {
	w.t.Helper()
	data := []byte(strings.Replace(kubeconfigOf("user"), `"token":"t"`, `"token":"`+token+`"`, 1))
	s.Data[key] = data
	w.must(w.client.Update(context.Background(), s))
	return data
}

// TestRefusedCopyIsNotUsed: what the cluster does not take replaces nothing, and both credentials are told of.
func TestRefusedCopyIsNotUsed(t *testing.T) {
	imported := func(t *testing.T) *world {
		t.Helper()
		source := installedWorld(t)
		source.passes(2)
		w := source.moved()
		w.finishImport()
		w.passes(3)
		w.checkWorks()
		return w
	}
	t.Run("one that is taken is used", func(t *testing.T) {
		g, w := NewWithT(t), imported(t)
		w.holding(w.kubeconfig(), "value", "nobody's")
		w.passes(3)
		g.Expect(w.token()).To(HavePrefix("issued-token-"))
		w.checkWorks()
	})
	t.Run("one that is refused is not", func(t *testing.T) {
		g, w := NewWithT(t), imported(t)
		w.holding(w.installerCredentials(), assisted.KubeconfigKey, "of another cluster")
		theirs := w.holding(w.kubeconfig(), "value", "nobody's")
		w.passes(3)
		g.Expect(string(w.kubeconfig().Data["value"])).To(Equal(string(theirs)))
		g.Expect(w.kubeconfigCondition()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message",
			Equal("Nobody can connect with the Secret: the cluster refuses the installer's credential, and the copy of it"))))
	})
	t.Run("one that is refused is not published where nothing is", func(t *testing.T) {
		g, w := NewWithT(t), imported(t)
		w.holding(w.installerCredentials(), assisted.KubeconfigKey, "of another cluster")
		w.must(w.client.Delete(t.Context(), w.kubeconfig()))
		w.credentials.Lost = true
		w.reconcile()
		w.reconcile()
		list := &corev1.SecretList{}
		w.must(w.client.List(t.Context(), list))
		g.Expect(list.Items).NotTo(ContainElement(HaveField("Name", clusterName+"-kubeconfig")))
		g.Expect(w.kubeconfigCondition()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message",
			Equal("No Secret is published: the cluster refuses the installer's credential"))))
	})
}

// TestRightsDeleted: a token without its ClusterRoleBinding is still known to the cluster, which forbids it everything.
func TestRightsDeleted(t *testing.T) {
	for name, lost := range map[string]bool{"while there is a connection": false, "when the connection has gone": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := tokenWorld(t)
			before := w.token()
			w.now = w.now.Add(time.Hour)
			w.recorded()
			w.credentials.Bound, w.credentials.Lost = false, lost
			g.Expect(w.credentials.Takes(w.kubeconfig().Data["value"])).To(BeFalse())
			w.reconcile()
			g.Expect(w.token()).NotTo(Or(BeEmpty(), Equal(before)))
			g.Expect(w.recorded()).To(ContainElement(controlplanev1.EventKubeconfigTokenReplaced))
			w.passes(1)
			w.checkWorks()
		})
	}
}

// TestEventOfATokenThatIsRefused: that a token has ended, as it does while the data centre is off, is no reason to warn anybody. That one
// is refused before its end is.
func TestEventOfATokenThatIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		refuse     func(w *world)
		told, kept string
	}{
		"it has ended": {
			func(w *world) { w.now = view.LifeOfTokenIn(w.kubeconfig()).Expires },
			controlplanev1.EventKubeconfigTokenIssued, controlplanev1.EventKubeconfigTokenReplaced,
		},
		"before its end": {
			func(w *world) {
				w.now = w.now.Add(time.Hour)
				w.credentials.DeleteAccount()
			},
			controlplanev1.EventKubeconfigTokenReplaced, controlplanev1.EventKubeconfigTokenIssued,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := tokenWorld(t)
			before := w.token()
			w.recorded()
			tt.refuse(w)
			g.Expect(w.credentials.Takes(w.kubeconfig().Data["value"])).To(BeFalse())
			w.passes(3)
			g.Expect(w.token()).NotTo(Or(BeEmpty(), Equal(before)))
			g.Expect(w.recorded()).To(And(ContainElement(tt.told), Not(ContainElement(tt.kept))))
			w.checkWorks()
		})
	}
}

// TestSilenceIsTold: why the cluster is not asked for the next token.
func TestSilenceIsTold(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	w.now = w.now.Add(4 * day)
	w.api.ID = ""
	w.reconcile()
	w.reconcile()
	g.Expect(w.kubeconfigCondition().Message).To(MatchRegexp("^The Secret holds a token that is valid until [^;]*; " +
		"no token can be requested while the cluster does not answer: connection refused$"))
}

// TestForeignCopy: a Secret of somebody else's that has the name of the copy is never written, and keeps nothing from being published.
func TestForeignCopy(t *testing.T) {
	for name, tt := range map[string]struct{ labels map[string]string }{
		"that our cache does not hold": {nil},
		"that our cache holds":         {map[string]string{clusterv1.ClusterNameLabel: "another"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 1, 0)
			w.r.Kubeconfigs = labelled{w.client}
			theirs := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-installer-credentials", Labels: tt.labels},
				Data:       map[string][]byte{"password": []byte("theirs")},
			}
			w.must(w.client.Create(t.Context(), theirs))
			w.run(nil, w.available)
			w.passes(3)
			w.checkWorks()
			g.Expect(w.token()).To(BeEmpty(), "the installer's credential may be lost with a token in its place")
			g.Expect(w.kubeconfigCondition().Message).To(Equal("The Secret holds the installer's credential: Secret " +
				"ns/cp-installer-credentials, which is to hold a copy of the installer's credential, belongs to somebody else: delete or rename it"))
			source := &corev1.Secret{}
			w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "cp-admin-kubeconfig"}, source))
			source.Data[assisted.KubeconfigKey] = []byte(kubeconfigOf("rotated"))
			w.must(w.client.Update(t.Context(), source))
			w.passes(1)
			g.Expect(string(w.kubeconfig().Data["value"])).To(ContainSubstring("rotated"), "what changes is published")
			g.Expect(w.installerCredentials().Data).To(Equal(theirs.Data))
			w.must(w.client.Delete(t.Context(), w.installerCredentials()))
			w.after(time.Minute)
			g.Expect(w.token()).NotTo(BeEmpty())
		})
	}
	t.Run("beside a token", func(t *testing.T) {
		g := NewWithT(t)
		w := tokenWorld(t)
		before := w.token()
		w.must(w.client.Delete(t.Context(), w.installerCredentials()))
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-installer-credentials"}}
		w.must(w.client.Create(t.Context(), theirs))
		w.after(4 * day)
		g.Expect(w.token()).NotTo(Equal(before), "it is renewed")
		g.Expect(w.installerCredentials().Data).To(BeEmpty())
		w.passes(1)
		g.Expect(w.kubeconfigCondition().Message).To(ContainSubstring("; Secret ns/cp-installer-credentials, which is to hold"))
		g.Expect(w.reconcile().RequeueAfter).To(Equal(time.Minute), "no event tells that it goes")
		w.must(w.client.Delete(t.Context(), theirs))
		w.passes(1)
		g.Expect(string(w.installerCredentials().Data[assisted.KubeconfigKey])).To(ContainSubstring("installer"))
	})
}

// labelled is a cache that holds the Secrets of Clusters only.
type labelled struct{ client.Reader }

func (r labelled) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	if o.GetLabels()[clusterv1.ClusterNameLabel] == "" {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return nil
}

// TestLabelOfTheCopyComesBack: without it the cache does not hold the copy.
func TestLabelOfTheCopyComesBack(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	w.r.Kubeconfigs = labelled{w.client}
	copied := w.installerCredentials()
	copied.Labels = nil
	w.must(w.client.Update(t.Context(), copied))
	w.passes(1)
	g.Expect(w.installerCredentials().Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, clusterName))
	w.checkWorks()
}

// TestTokenIsRenewedBesideACopyThatCannotBeWritten: somebody keeps the copy from being changed. The token would end otherwise.
func TestTokenIsRenewedBesideACopyThatCannotBeWritten(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	copied := w.installerCredentials()
	copied.Labels = nil
	w.must(w.client.Update(t.Context(), copied))
	w.r.Client = w.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if o.GetName() == copied.Name {
				return apierrors.NewForbidden(corev1.Resource("secrets"), o.GetName(), errors.New("it is immutable"))
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	before := w.token()
	w.now = w.now.Add(4 * day)
	_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	g.Expect(err).To(MatchError(ContainSubstring("it is immutable")))
	g.Expect(w.token()).NotTo(Or(BeEmpty(), Equal(before)))
	for range 2 { // The pass that renews the token, and one that has nothing to renew.
		g.Expect(w.kubeconfigCondition()).To(And(HaveField("Status", metav1.ConditionTrue),
			HaveField("Message", And(HavePrefix("The Secret holds a token that is valid until "), ContainSubstring("it is immutable")))))
		_ = w.try()
	}
}

// TestRefusedCopyIsTold: an admission policy of the user's keeps the copy from being created. There is no token then, and the condition
// says why.
func TestRefusedCopyIsTold(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	inTheWay := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-installer-credentials"}}
	w.must(w.client.Create(t.Context(), inTheWay))
	w.run(nil, w.available)
	w.must(w.client.Delete(t.Context(), inTheWay))
	w.refuse = func(o client.Object) error {
		if o.GetName() == inTheWay.Name {
			return apierrors.NewForbidden(corev1.Resource("secrets"), o.GetName(), errors.New("no copies of credentials here"))
		}
		return nil
	}
	g.Expect(w.try()).To(MatchError(ContainSubstring("no copies of credentials here")))
	g.Expect(w.token()).To(BeEmpty())
	g.Expect(w.kubeconfigCondition()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", And(
		HavePrefix("The Secret holds the installer's credential: "), ContainSubstring("no copies of credentials here"),
		ContainSubstring("create Secret ns/cp-installer-credentials")))))
	w.refuse = nil
	w.passes(3)
	g.Expect(w.token()).NotTo(BeEmpty())
	g.Expect(w.kubeconfigCondition().Message).NotTo(ContainSubstring("no copies"))
}

// TestChangedWhileATokenIsRequested: what somebody writes into <cluster>-kubeconfig meanwhile is not overwritten unseen.
func TestChangedWhileATokenIsRequested(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	w.now = w.now.Add(4 * day)
	w.recorded()
	var theirs []byte
	w.r.Client = w.intercepted(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if theirs == nil && o.GetName() == clusterName+"-kubeconfig" {
				theirs = w.holding(w.kubeconfig(), "value", "t")
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	w.reconcile()
	g.Expect(w.credentials.Issued).To(Equal(2))
	g.Expect(string(w.kubeconfig().Data["value"])).To(Equal(string(theirs)))
	g.Expect(w.recorded()).NotTo(ContainElement(controlplanev1.EventKubeconfigTokenIssued), "nobody has that token")
	w.r.Client = w.client
	w.passes(2)
	g.Expect(w.token()).To(HavePrefix("issued-token-"), "the next pass has seen it")
	w.checkWorks()
}

// TestChangedWithoutALabel: no event tells of a change of a Secret that no cache holds, so that the pass is tried again.
func TestChangedWithoutALabel(t *testing.T) {
	for _, name := range []string{clusterName + "-kubeconfig", "cp-installer-credentials"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := tokenWorld(t)
			w.r.Kubeconfigs = labelled{w.client}
			s := &corev1.Secret{}
			w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s))
			s.Labels = nil
			w.must(w.client.Update(t.Context(), s))
			w.r.Client = w.intercepted(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if o.GetName() == name {
						return apierrors.NewConflict(corev1.Resource("secrets"), name, nil)
					}
					return c.Patch(ctx, o, p, opts...)
				},
			})
			g.Expect(w.try()).To(MatchError(ContainSubstring("Secret ns/" + name + ": it has changed since it was read")))
			w.r.Client = w.client
			w.reconcile()
			w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s))
			g.Expect(s.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, clusterName))
			w.checkWorks()
		})
	}
}

// TestAnotherClusterWhileDeleting: nothing is written that another cluster has told, or beside it.
func TestAnotherClusterWhileDeleting(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 1)
	w.run(nil, w.available)
	w.passes(2)
	w.must(w.client.Delete(t.Context(), w.controlPlane()))
	w.passes(1)
	before := w.kubeconfig().ResourceVersion
	w.api.ID, w.credentials.Bundle = "another", w.authority("another", 30*day)
	for _, passed := range []time.Duration{0, 4 * day} {
		w.after(passed)
		g.Expect(w.kubeconfig().ResourceVersion).To(Equal(before))
	}
}

// TestCredentialWhileDeleting: as long as the deletion waits for workers, the cluster is there for others.
func TestCredentialWhileDeleting(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 1)
	w.run(nil, w.available)
	w.passes(2)
	w.must(w.client.Delete(t.Context(), w.controlPlane()))
	before := w.token()
	w.after(4 * day)
	g.Expect(w.reason(controlplanev1.DeletingCondition)).To(Equal(controlplanev1.WaitingForWorkersDeletionReason))
	g.Expect(w.token()).NotTo(Or(BeEmpty(), Equal(before)))
	w.checkWorks()
	life := view.LifeOfTokenIn(w.kubeconfig())
	g.Expect(w.kubeconfigCondition().Message).To(ContainSubstring(life.Expires.Format(time.RFC3339)))
	g.Expect(w.reconcile().RequeueAfter).To(Equal(life.RenewAfter.Sub(w.now)))
	w.must(w.client.Delete(t.Context(), w.kubeconfig()))
	w.reconcile()
	list := &corev1.SecretList{}
	w.must(w.client.List(t.Context(), list))
	g.Expect(list.Items).NotTo(ContainElement(HaveField("Name", clusterName+"-kubeconfig")), "garbage collection may have deleted it")
}

// TestCredentialWhilePaused: nothing is renewed, and afterwards the manager comes back, however long it was.
func TestCredentialWhilePaused(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	pause := func(paused bool) {
		cluster := &clusterv1.Cluster{}
		w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: clusterName}, cluster))
		cluster.Spec.Paused = &paused
		w.must(w.client.Update(t.Context(), cluster))
	}
	before := w.token()
	pause(true)
	w.after(8 * day)
	g.Expect(w.token()).To(Equal(before))
	g.Expect(w.credentials.Issued).To(Equal(1))
	pause(false)
	w.passes(3)
	g.Expect(w.token()).NotTo(Or(BeEmpty(), Equal(before)))
	w.checkWorks()
}
