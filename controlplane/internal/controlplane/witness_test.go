// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// deleteControlPlane deletes a control plane without workers, and lets it go.
func (w *world) deleteControlPlane() {
	w.t.Helper()
	w.must(w.client.Delete(context.Background(), w.controlPlane()))
	for range 6 {
		w.reconcile()
	}
	if w.controlPlane().Name != "" {
		w.t.Fatal("the control plane is still there")
	}
}

// TestForeignImageSetIsKept: a ClusterImageSet that somebody made under the name of ours is not deleted with the control plane.
func TestForeignImageSetIsKept(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.run(nil, w.available)
	w.vanish(&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: view.ImageSetName(key)}})
	foreign := &hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: view.ImageSetName(key),
		},
		Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "registry.example.com/theirs"},
	}
	w.must(w.client.Create(context.Background(), foreign))
	w.deleteControlPlane()
	NewWithT(t).Expect(w.imageSets()).To(ConsistOf(HaveField("UID", foreign.UID)))
}

// TestDeletesNameTheObject: what is deleted is the very object that was read. When the cache is behind, an object of the same name may have
// taken its place, and the API server keeps that one only if the request carries the UID of the other.
func TestDeletesNameTheObject(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	kinds := map[string]bool{}
	w.r.Client = w.intercepted(
		interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			options := client.DeleteOptions{}
			options.ApplyOptions(opts)
			if options.Preconditions == nil || options.Preconditions.UID == nil {
				t.Errorf("%T %s is deleted by its name alone", o, o.GetName())
			} else {
				NewWithT(t).Expect(*options.Preconditions.UID).To(And(Not(BeEmpty()), Equal(o.GetUID())))
			}
			kinds[fmt.Sprintf("%T", o)] = true
			return c.Delete(ctx, o, opts...)
		}},
	)
	w.deleteControlPlane()
	NewWithT(t).Expect(kinds).To(HaveLen(4), "Machines, ClusterDeployment, AgentClusterInstall and ClusterImageSet")
}

// TestKubeconfigFollowsTheInstaller: the service replaces the content of its Secret when the installation completes, and clients that were
// given the first one would not trust the cluster.
func TestKubeconfigFollowsTheInstaller(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.optOut()
	w.run(nil, w.available)
	g := NewWithT(t)
	g.Expect(string(w.kubeconfig().Data["value"])).To(ContainSubstring("installer"))
	source := &corev1.Secret{}
	w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "cp-admin-kubeconfig"}, source))
	source.Data[assisted.KubeconfigKey] = []byte(kubeconfigOf("completed"))
	w.must(w.client.Update(context.Background(), source))
	w.reconcile()
	g.Expect(string(w.kubeconfig().Data["value"])).To(And(ContainSubstring("completed"), Not(ContainSubstring("installer"))))
}

// published is the content of <cluster>-kubeconfig.
func (w *world) published() string { return string(w.kubeconfig().Data["value"]) }

// TestCompletedKubeconfig: what the service adds to its kubeconfig at the end of the installation is published together with the token. It
// is published alone while the cluster does not answer, and when something is wrong with what is published.
func TestCompletedKubeconfig(t *testing.T) {
	for name, damage := range map[string]func(*corev1.Secret){
		"the Secret has lost its label": func(s *corev1.Secret) { s.Labels = nil },
		"the Secret has lost its owner": func(s *corev1.Secret) { s.OwnerReferences = nil },
		"the Secret is empty":           func(s *corev1.Secret) { s.Data = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 0)
			w.run(nil, func() bool { return w.stage == stageFinalizing })
			w.service()
			published := w.kubeconfig()
			damage(published)
			w.must(w.client.Update(context.Background(), published))
			w.reconcile()
			NewWithT(t).Expect(w.published()).To(ContainSubstring("installer-completed"))
		})
	}
	t.Run("the cluster answers", func(t *testing.T) {
		g := NewWithT(t)
		w := completed(t)
		g.Expect(w.published()).To(And(ContainSubstring("installer"), Not(ContainSubstring("completed"))))
		added := w.authority("ingress", 100*day)
		w.trusts(added)
		w.workload()
		w.reconcile()
		g.Expect(w.token()).NotTo(BeEmpty())
		g.Expect(w.config().CAData).To(Equal(added))
	})
	t.Run("the installer's credential cannot be copied", func(t *testing.T) {
		g := NewWithT(t)
		w := completed(t)
		w.refuse = func(o client.Object) error {
			if o.GetName() == "cp-installer-credentials" {
				return apierrors.NewForbidden(corev1.Resource("secrets"), o.GetName(), errors.New("no copies of credentials here"))
			}
			return nil
		}
		w.workload()
		g.Expect(w.try()).To(MatchError(ContainSubstring("no copies of credentials here")))
		g.Expect(w.published()).To(ContainSubstring("installer-completed"))
		g.Expect(w.token()).To(BeEmpty(), "it would replace what may be all that is left")
	})
	t.Run("the cluster does not answer", func(t *testing.T) {
		w := completed(t)
		w.reconcile()
		NewWithT(t).Expect(w.published()).To(ContainSubstring("installer-completed"))
	})
}
