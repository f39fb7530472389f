// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// TestInfraEnvIsRecordedFirst: the config has its finalizer and the name of its InfraEnv before anything is made; if somebody has changed
// the config since it was read, nothing is recorded and nothing made.
func TestInfraEnvIsRecordedFirst(t *testing.T) {
	for name, stale := range map[string]bool{"as it was read": false, "changed since": true} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, assisted.AddToScheme} {
				g.Expect(add(scheme)).To(Succeed())
			}
			s := prepared()
			s.infraEnv, s.config.Namespace, s.config.Annotations, s.config.Finalizers = nil, "ns", nil, nil
			key, live := client.ObjectKeyFromObject(s.config), &bootstrapv1.OpenshiftAssistedConfig{}
			var recorded []string
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.config).WithStatusSubresource(s.config).
				WithInterceptorFuncs(interceptor.Funcs{
					Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
						g.Expect(c.Get(ctx, key, live)).To(Succeed())
						recorded = append(slices.Clone(live.Finalizers), live.Annotations[bootstrapv1.InfraEnvAnnotation])
						return c.Create(ctx, o, opts...)
					},
				}).Build()
			g.Expect(c.Get(ctx, key, s.config)).To(Succeed())
			s.read, s.first = s.config.DeepCopy(), s.config.DeepCopy()
			if stale {
				g.Expect(c.Get(ctx, key, live)).To(Succeed())
				metav1.SetMetaDataLabel(&live.ObjectMeta, "example.com/by", "another controller")
				g.Expect(c.Update(ctx, live)).To(Succeed())
			}

			waitsForHost(s.config) // As the host's pass says.
			d := decide(s)
			r := &Reconciler{
				Client: c, Recorder: events.NewFakeRecorder(10), controller: capicontrollerutil.NewFakeController(),
				secrets: newSecrets(nil, clock.RealClock{}),
			}
			o := r.apply(ctx, s, d)
			g.Expect(o.err()).NotTo(HaveOccurred())
			setStatus(s, result{decision: &d, outcomes: o})
			g.Expect(r.patchConfig(ctx, s, result{decision: &d, outcomes: o})).To(Succeed())

			infraEnvs := &assisted.InfraEnvList{}
			g.Expect(c.List(ctx, infraEnvs)).To(Succeed())
			g.Expect(c.Get(ctx, key, live)).To(Succeed())
			if stale {
				g.Expect(infraEnvs.Items).To(BeEmpty())
				g.Expect(live.Annotations).To(BeEmpty())
				g.Expect(live.Finalizers).To(BeEmpty())
				return
			}
			g.Expect(recorded).To(Equal([]string{bootstrapv1.ConfigFinalizer, "demo-x"}))
			g.Expect(infraEnvs.Items).To(HaveLen(1))
			g.Expect(live.Status.Conditions).To(BeEmpty(), "a later pass says that the image is made, or being made")
			s.config, s.read, s.first, s.now = live, live.DeepCopy(), live.DeepCopy(), s.now.Add(firstStatusWithin)
			waitsForHost(s.config)
			setStatus(s, result{decision: &d, outcomes: o})
			g.Expect(r.patchConfig(ctx, s, result{decision: &d, outcomes: o})).To(Succeed())
			g.Expect(c.Get(ctx, key, live)).To(Succeed())
			g.Expect(live.Status.Conditions).NotTo(BeEmpty())
		})
	}
}

// hubOf is a management cluster with objects, whose creations and patches are counted.
func hubOf(t *testing.T, written *atomic.Int32, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, assisted.AddToScheme} {
		NewWithT(t).Expect(add(scheme)).To(Succeed())
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			written.Add(1)
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			written.Add(1)
			return c.Patch(ctx, o, patch, opts...)
		},
	}).Build()
}

// userOf is a config without an InfraEnv.
func userOf(name string) *scope {
	s := prepared()
	s.infraEnv, s.config.Namespace, s.config.Name, s.config.UID = nil, "ns", name, types.UID("uid of "+name)
	return s
}

// TestConfigsMakeOneInfraEnv: the configs of a cluster want the same InfraEnv at the same time, and none of them is refused.
func TestConfigsMakeOneInfraEnv(t *testing.T) {
	g := NewWithT(t)
	written := &atomic.Int32{}
	c := hubOf(t, written)
	r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10), controller: capicontrollerutil.NewFakeController()}
	var passes sync.WaitGroup
	for _, name := range []string{"m-0", "m-1", "m-2", "m-3", "m-4"} {
		passes.Go(func() { g.Expect(r.applyInfraEnv(t.Context(), userOf(name), infraEnvCreate)).To(Succeed()) })
	}
	passes.Wait()
	g.Expect(written.Load()).To(BeEquivalentTo(1))
	made := &assisted.InfraEnvList{}
	g.Expect(c.List(t.Context(), made)).To(Succeed())
	g.Expect(made.Items).To(HaveExactElements(HaveField("OwnerReferences", HaveLen(1))))
}

// TestConfigsJoinAnInfraEnv: configs that have read the same InfraEnv join it with one write each. None joins one that is being deleted,
// which the cache does not show yet: its image would be handed over.
func TestConfigsJoinAnInfraEnv(t *testing.T) {
	for name, test := range map[string]struct {
		users    []metav1.OwnerReference
		deleted  bool
		joins    int
		outdated bool
	}{
		"with a user":           {users: []metav1.OwnerReference{userReference(userOf("m-0").config)}, joins: 3},
		"without users":         {joins: 1},
		"that is being deleted": {users: []metav1.OwnerReference{userReference(userOf("m-0").config)}, deleted: true, joins: 1, outdated: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			infraEnv := &assisted.InfraEnv{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "demo-x", OwnerReferences: test.users, Finalizers: []string{"example.com/service"},
			}}
			written := &atomic.Int32{}
			c := hubOf(t, written, infraEnv)
			cached := &assisted.InfraEnv{}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(infraEnv), cached)).To(Succeed())
			if test.deleted {
				g.Expect(c.Delete(t.Context(), cached.DeepCopy())).To(Succeed())
			}
			r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10), controller: capicontrollerutil.NewFakeController()}
			for _, user := range []string{"m-1", "m-2", "m-3"}[:test.joins] {
				s := userOf(user)
				s.infraEnv = cached
				outcome := kube.OutcomeOf(r.applyInfraEnv(t.Context(), s, infraEnvJoin))
				g.Expect(outcome.Done()).To(Equal(!test.outdated))
				g.Expect(outcome.Outdated()).To(Equal(test.outdated))
			}
			g.Expect(written.Load()).To(BeEquivalentTo(test.joins))
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(infraEnv), cached)).To(Succeed())
			g.Expect(cached.OwnerReferences).To(HaveLen(len(test.users) + test.joins))
		})
	}
}

// TestChangedNetworkStays: an NMStateConfig that was written anew since it was read is not deleted for what it was.
func TestChangedNetworkStays(t *testing.T) {
	g := NewWithT(t)
	read := &assisted.NMStateConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-host-0"}}
	c := hubOf(t, &atomic.Int32{}, read)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(read), read)).To(Succeed())
	changed := read.DeepCopy()
	changed.Annotations = map[string]string{bootstrapv1.NMStateHostAnnotation: "host-0"}
	g.Expect(c.Update(t.Context(), changed)).To(Succeed())
	r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10)}
	err := r.applyNetworks(t.Context(), userOf("m-0"), networkPlan{remove: []assisted.NMStateConfig{*read}})
	g.Expect(kube.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(read), read)).To(Succeed())
}
