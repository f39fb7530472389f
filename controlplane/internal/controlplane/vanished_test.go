// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/view"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// vanish deletes an object past the reconciler.
func (w *world) vanish(o client.Object) {
	w.t.Helper()
	w.must(w.client.Delete(context.Background(), o))
}

func (w *world) imageSets() []hivev1.ClusterImageSet {
	w.t.Helper()
	list := &hivev1.ClusterImageSetList{}
	w.must(w.client.List(context.Background(), list))
	return list.Items
}

// TestClusterImageSetIsMadeAnew: one that is deleted while the objects of the installation exist, before, during and after it.
func TestClusterImageSetIsMadeAnew(t *testing.T) {
	for _, stage := range []int{0, 2, 4} {
		t.Run(fmt.Sprintf("at stage %d", stage), func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 1, 0)
			w.run(nil, func() bool { return w.stage >= stage && w.install() != nil })
			former := w.imageSets()
			g.Expect(former).To(HaveLen(1))
			w.vanish(&former[0])
			w.reconcile()
			anew := w.imageSets()
			g.Expect(anew).To(HaveLen(1))
			g.Expect(anew[0].Spec).To(Equal(former[0].Spec))
			g.Expect(anew[0].UID).NotTo(Equal(former[0].UID))
		})
	}
	t.Run("but none that the user has named", func(t *testing.T) {
		w := newWorld(t, 3, 0)
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Release.ImageSetRef.Name = "mine" })
		w.run(nil, func() bool { return w.install() != nil })
		w.reconcile()
		NewWithT(t).Expect(w.imageSets()).To(BeEmpty())
	})
}

// attempt is the number of the installation that the control plane wants.
func (w *world) attempt() string {
	w.t.Helper()
	return view.Attempt(w.controlPlane())
}

// uidsOfMachines are the UIDs of the Machines, by name.
func (w *world) uidsOfMachines() map[string]types.UID {
	w.t.Helper()
	uids := map[string]types.UID{}
	for _, m := range w.machines() {
		uids[m.Name] = m.UID
	}
	return uids
}

// powerCycle lets assisted-service see that the cluster is gone, and hosts register anew.
func (w *world) powerCycle() {
	w.t.Helper()
	w.service()
	w.must(w.client.DeleteAllOf(context.Background(), &assisted.Agent{}, client.InNamespace(namespace)))
}

// recorded returns the reasons of the events so far.
func (w *world) recorded() []string {
	var reasons []string
	for len(w.events.Events) > 0 {
		reasons = append(reasons, strings.Fields(<-w.events.Events)[1])
	}
	return reasons
}

// installing is a world whose installation has begun.
func installing(t *testing.T, replicas int32, workers int) *world {
	t.Helper()
	w := newWorld(t, replicas, workers)
	w.run(nil, func() bool { return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallingReason })
	w.recorded()
	return w
}

// TestVanishedObjectsOfARepairableCluster: the installation has failed, and its cluster may be repaired by hand. When somebody tidies up
// what is left of the installation, its hosts stay, whatever retries says.
func TestVanishedObjectsOfARepairableCluster(t *testing.T) {
	for name, retries := range map[string]*int32{"no retries": nil, "retries": new(int32(2))} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, 3, 1)
			w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Install.Retries = retries })
			w.failAt = stageFinalizing + 1
			w.run(nil, w.failed)
			w.passes(2)
			before := w.uidsOfMachines()
			w.vanish(w.install())
			w.passes(2)
			g.Expect(w.attempt()).To(Equal("1"))
			g.Expect(w.uidsOfMachines()).To(Equal(before))
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.InstallationFailedReason))
			g.Expect(w.message(controlplanev1.InstalledCondition)).To(And(HavePrefix("AgentClusterInstall cp vanished during attempt 1"),
				ContainSubstring("may hold data"), ContainSubstring(controlplanev1.RetryInstallationAnnotation)))
			cp := w.controlPlane()
			metav1.SetMetaDataAnnotation(&cp.ObjectMeta, controlplanev1.RetryInstallationAnnotation, "")
			w.must(w.client.Update(t.Context(), cp))
			w.reconcile()
			g.Expect(w.attempt()).To(Equal("2"), "the user decides")
		})
	}
}

// TestVanishedInstallObjects: what is deleted after the installation has begun counts as a new attempt, and everything of the old one is
// replaced (DESIGN D18).
func TestVanishedInstallObjects(t *testing.T) {
	objects := map[string]func(*world) []client.Object{
		"ClusterDeployment":   func(w *world) []client.Object { return []client.Object{w.deployment()} },
		"AgentClusterInstall": func(w *world) []client.Object { return []client.Object{w.install()} },
		"both":                func(w *world) []client.Object { return []client.Object{w.deployment(), w.install()} },
	}
	for name, of := range objects {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := installing(t, 3, 1)
			before := w.uidsOfMachines()
			for _, o := range of(w) {
				w.vanish(o)
			}
			w.reconcile()
			g.Expect(w.attempt()).To(Equal("2"))
			g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.RetryingReason))
			g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("vanished during attempt 1"))
			g.Expect(w.recorded()).To(Equal([]string{controlplanev1.EventInstallObjectsLost, controlplanev1.EventRetryStarted}))
			w.reconcile()
			g.Expect(w.machines()).To(BeEmpty(), "the worker that took part goes too: its host is half installed")
			g.Expect(w.deployment()).To(BeNil())
			g.Expect(w.install()).To(BeNil())
			w.powerCycle()
			w.run(nil, w.available)
			g.Expect(w.attempt()).To(Equal("2"), "counted once")
			g.Expect(w.install().Annotations).To(HaveKeyWithValue(controlplanev1.InstallAttemptAnnotation, "2"))
			for name, uid := range w.uidsOfMachines() {
				g.Expect(uid).NotTo(Equal(before[name]), name)
			}
		})
	}

	t.Run("after a failure", func(t *testing.T) {
		w := newWorld(t, 3, 1)
		w.failAt = 3
		w.run(nil, func() bool {
			return w.reason(controlplanev1.InstalledCondition) == controlplanev1.InstallationFailedReason
		})
		w.vanish(w.install())
		w.reconcile()
		NewWithT(t).Expect(w.attempt()).To(Equal("2"))
	})

	t.Run("a manager stops between any two writes", func(t *testing.T) {
		for failing := range 6 {
			g := NewWithT(t)
			w := installing(t, 1, 0)
			w.vanish(w.install())
			w.failWrite(failing)
			for range 5 {
				g.Expect(w.try()).To(Or(Succeed(), MatchError(ContainSubstring("stopped"))))
			}
			w.run(nil, func() bool { return w.install() != nil && len(w.machines()) == 1 })
			g.Expect(w.attempt()).To(Equal("2"), "write %d failed", failing)
			g.Expect(w.install().Annotations).To(HaveKeyWithValue(controlplanev1.InstallAttemptAnnotation, "2"))
		}
	})

	t.Run("the cache still shows the control plane of before", func(t *testing.T) {
		g := NewWithT(t)
		w := installing(t, 1, 0)
		w.vanish(w.install())
		before := w.controlPlane()
		w.reconcile()
		w.r.Client = w.intercepted(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if cp, ok := o.(*controlplanev1.OpenshiftAssistedControlPlane); ok {
					before.DeepCopyInto(cp)
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
		_ = w.try() // What a pass on an old version writes besides may conflict.
		g.Expect(w.attempt()).To(Equal("2"))
	})
}

// failWrite makes the n-th write from now on fail, once, as if the manager had stopped before it.
func (w *world) failWrite(n int) {
	count := 0
	stops := func() error {
		count++
		if count == n+1 {
			return errors.New("stopped")
		}
		return nil
	}
	w.r.Client = w.intercepted(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := stops(); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := stops(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := stops(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := stops(); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

// TestVanishedObjectsThatAreNoNewAttempt: nothing is taken down when nothing was begun, when the cache is old, or when somebody else
// decides.
func TestVanishedObjectsThatAreNoNewAttempt(t *testing.T) {
	unchanged := func(t *testing.T, w *world, before map[string]types.UID) {
		t.Helper()
		g := NewWithT(t)
		for range 3 {
			w.reconcile()
		}
		g.Expect(w.attempt()).To(Equal("1"))
		g.Expect(w.uidsOfMachines()).To(Equal(before))
		g.Expect(w.recorded()).NotTo(ContainElement(controlplanev1.EventInstallObjectsLost))
	}

	t.Run("the installation was held", func(t *testing.T) {
		w := newWorld(t, 3, 1)
		w.run(nil, func() bool { return w.install() != nil && len(w.machines()) == 4 })
		w.vanish(w.install())
		unchanged(t, w, w.uidsOfMachines())
		NewWithT(t).Expect(w.install()).NotTo(BeNil())
	})

	t.Run("day 1 was opened again", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.closeAndHold()
		w.reconcile()
		g.Expect(w.controlPlane().Annotations).To(HaveKey(controlplanev1.InstallationStartedAnnotation))
		g.Expect(w.install().Spec.HoldInstallation).To(BeFalse())
		agent := w.agents()[0]
		w.vanish(&agent)
		for range 4 {
			w.reconcile()
		}
		g.Expect(w.install().Spec.HoldInstallation).To(BeTrue())
		g.Expect(w.controlPlane().Annotations).NotTo(HaveKey(controlplanev1.InstallationStartedAnnotation))
		w.vanish(w.install())
		unchanged(t, w, w.uidsOfMachines())
	})

	t.Run("the cluster is initialized", func(t *testing.T) {
		w := installedWorld(t)
		w.vanish(w.install())
		w.vanish(w.deployment())
		unchanged(t, w, w.uidsOfMachines())
	})

	t.Run("the control plane was moved", func(t *testing.T) {
		w := installing(t, 1, 0)
		before := w.uidsOfMachines()
		cp := w.controlPlane()
		record := view.StartedOf(cp)
		record.ControlPlane = "former"
		cp.Annotations[controlplanev1.InstallationStartedAnnotation] = record.String()
		w.must(w.client.Update(context.Background(), cp))
		w.vanish(w.install())
		w.vanish(w.deployment())
		unchanged(t, w, before)
	})

	t.Run("only the cache misses them", func(t *testing.T) {
		w := installing(t, 1, 0)
		install := w.install()
		w.r.Client = w.intercepted(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := o.(*hiveext.AgentClusterInstall); ok {
					return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
		unchanged(t, w, w.uidsOfMachines())
		NewWithT(t).Expect(w.install().UID).To(Equal(install.UID))
	})

	t.Run("the Cluster was just paused, deleted or replaced", func(t *testing.T) {
		for _, change := range []func(*clusterv1.Cluster){
			func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) },
			func(c *clusterv1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, func(c *clusterv1.Cluster) { c.UID = "another" },
		} {
			w := installing(t, 1, 0)
			w.vanish(w.install())
			w.r.APIReader = w.intercepted(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if cluster, ok := o.(*clusterv1.Cluster); ok {
						change(cluster)
					}
					return err
				},
			})
			unchanged(t, w, w.uidsOfMachines())
		}
	})

	t.Run("the control plane is being deleted", func(t *testing.T) {
		w := installing(t, 1, 0)
		w.vanish(w.install())
		w.must(w.client.Delete(context.Background(), w.controlPlane()))
		w.reconcile()
		NewWithT(t).Expect(w.attempt()).To(Equal("1"))
	})
}
