// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/host"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
	"github.com/capi-openshift/agent-providers/internal/tracing"
	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
)

// TestUnreadableInfrastructure: an infrastructure machine that cannot be read uses up the pass. The config shows its conditions all the
// same, and it goes when it is deleted.
func TestUnreadableInfrastructure(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kind    string
		deleted bool
		unread  bool
		reason  string
	}{
		{name: "a Metal3Machine", kind: metal3.MachineKind, unread: true, reason: bootstrapv1.ReadFailedReason},
		{name: "a machine of others, which is never read", kind: "DevMachine", reason: bootstrapv1.InfraMachineNotSupportedReason},
		{name: "a Metal3Machine, and the config is deleted", kind: metal3.MachineKind, deleted: true},
		{name: "a machine of others, and the config is deleted", kind: "DevMachine", deleted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithCancel(t.Context())
			c := newClient(t, tt.kind, tt.deleted, func() error {
				cancel() // The time of the pass is over.
				return context.DeadlineExceeded
			})
			r := &Reconciler{
				Client: c, Gate: &manager.Gate{}, Recorder: events.NewFakeRecorder(10), secrets: newSecrets(c, clock.RealClock{}),
				Hosts: &hosts{}, controller: capicontrollerutil.NewFakeController(), Now: time.Now,
			}
			key := client.ObjectKey{Namespace: "ns", Name: "m-0"}
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			config := &bootstrapv1.OpenshiftAssistedConfig{}
			if tt.deleted {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(apierrors.IsNotFound(c.Get(t.Context(), key, config))).To(BeTrue())
				return
			}
			g.Expect(err != nil).To(Equal(tt.unread))
			g.Expect(c.Get(t.Context(), key, config)).To(Succeed())
			g.Expect(conditions.Get(config, clusterv1.ReadyCondition)).NotTo(BeNil())
			g.Expect(conditions.GetReason(config, bootstrapv1.DataSecretAvailableCondition)).To(Equal(tt.reason))
			observed := config.Generation
			if tt.unread {
				observed = 0
			}
			g.Expect(config.Status.ObservedGeneration).To(Equal(observed), "what was not decided about was not observed")
		})
	}
}

// hosts counts what the controller asks of the hosts of configs.
type hosts struct {
	passes, releases int
	again            time.Duration
}

func (h *hosts) Watch(context.Context, ctrl.Manager, capicontrollerutil.Controller) error { return nil }

func (h *hosts) Pass(
	_ context.Context, config *bootstrapv1.OpenshiftAssistedConfig, _ mapping.Owners, _ func(context.Context) kube.Outcome,
) (host.Came, error) {
	h.passes++
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.AgentAnnotation, "a-0")
	fact.Waiting(bootstrapv1.AgentBindingReason, "Agent a-0").Set(config, bootstrapv1.AgentInstalledCondition)
	return host.Came{LookAgain: h.again}, nil
}

func (h *hosts) Release(context.Context, types.NamespacedName) error {
	h.releases++
	return nil
}

// TestTrace: the first pass that writes to the config notes itself with what it writes, and a pass that writes nothing else does not. Later
// passes are linked to the first. None of them writes more than it does without a trace.
func TestTrace(t *testing.T) {
	g, spans := NewWithT(t), tracingtest.New()
	notFound := func() error { return apierrors.NewNotFound(schema.GroupResource{}, "m-0") }
	key, config := client.ObjectKey{Namespace: "ns", Name: "m-0"}, &bootstrapv1.OpenshiftAssistedConfig{}
	story := func(ctx context.Context) (writes []int) {
		c, count := newClient(t, metal3.MachineKind, false, notFound), 0
		g.Expect(c.Get(t.Context(), key, config)).To(Succeed())
		config.Finalizers = nil
		g.Expect(c.Update(t.Context(), config)).To(Succeed())
		r := &Reconciler{
			Client: interceptor.NewClient(c.(client.WithWatch), countWrites(func() { count++ })), Gate: &manager.Gate{},
			Recorder: events.NewFakeRecorder(10), secrets: newSecrets(c, clock.RealClock{}), Hosts: &hosts{}, Ignitions: &fakeIgnitions{},
			controller: capicontrollerutil.NewFakeController(), Now: time.Now,
		}
		passes := tracing.Passes(ctx, func() string { return "openshiftassistedconfig" }, r)
		for range 3 {
			count = 0
			_, err := passes.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			g.Expect(err).NotTo(HaveOccurred())
			writes = append(writes, count)
		}
		g.Expect(c.Get(t.Context(), key, config)).To(Succeed())
		return writes
	}
	untraced := story(t.Context())
	g.Expect(config.Annotations).NotTo(HaveKey(bootstrapv1.TraceAnnotation))
	g.Expect(story(spans.Context(t.Context()))).To(Equal(untraced))
	passes := spans.Named("openshiftassistedconfig")
	g.Expect(passes).To(HaveLen(3))
	first := passes[0].SpanContext
	g.Expect(config.Annotations).To(
		HaveKeyWithValue(bootstrapv1.TraceAnnotation, fmt.Sprintf("00-%s-%s-01", first.TraceID(), first.SpanID())))
	g.Expect(passes[0].Links).To(BeEmpty())
	for _, later := range passes[1:] {
		g.Expect(later.Links).To(HaveLen(1))
		g.Expect(later.Links[0].SpanContext.SpanID()).To(Equal(first.SpanID()))
	}
}

// TestHostsPass: what the host's pass sets is written together with what the controller sets itself, in a patch of metadata and one of
// status. A new config has its finalizer before, and one that is paused, or of another manager, has no such pass.
func TestHostsPass(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*bootstrapv1.OpenshiftAssistedConfig)
		filter   string
		vanished bool
		want     hosts
		writes   int
	}{
		"taken up": {want: hosts{passes: 1}, writes: 2},
		"without a finalizer": {
			change: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Finalizers = nil }, want: hosts{passes: 1}, writes: 3,
		},
		"paused":              {change: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Annotations = paused }, writes: 1},
		"of another manager":  {filter: "other"},
		"vanished":            {vanished: true, want: hosts{releases: 1}},
		"without its Machine": {change: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.OwnerReferences = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			c := newClient(t, metal3.MachineKind, false, func() error { return apierrors.NewNotFound(schema.GroupResource{}, "m-0") })
			key, config := client.ObjectKey{Namespace: "ns", Name: "m-0"}, &bootstrapv1.OpenshiftAssistedConfig{}
			g.Expect(c.Get(ctx, key, config)).To(Succeed())
			if tt.vanished {
				config.Finalizers = nil
				g.Expect(c.Update(ctx, config)).To(Succeed())
				g.Expect(c.Delete(ctx, config)).To(Succeed())
			} else if tt.change != nil {
				tt.change(config)
				g.Expect(c.Update(ctx, config)).To(Succeed())
			}
			writes, asked, fetched := 0, &hosts{again: time.Minute}, &fakeIgnitions{}
			counted := interceptor.NewClient(c.(client.WithWatch), countWrites(func() { writes++ }))
			r := &Reconciler{
				Client: counted, Gate: &manager.Gate{}, Recorder: events.NewFakeRecorder(10),
				secrets: newSecrets(c, clock.RealClock{}), WatchFilter: tt.filter, Hosts: asked, Ignitions: fetched,
				controller: capicontrollerutil.NewFakeController(), Now: time.Now,
			}
			came, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(*asked).To(Equal(hosts{passes: tt.want.passes, releases: tt.want.releases, again: time.Minute}))
			g.Expect(writes).To(Equal(tt.writes))
			g.Expect(fetched.forgotten).To(Equal(tt.want.releases), "only a config that is gone")
			if tt.want.passes == 0 {
				return
			}
			g.Expect(came.RequeueAfter).To(Equal(time.Minute))
			g.Expect(c.Get(ctx, key, config)).To(Succeed())
			g.Expect(config.Annotations).To(HaveKeyWithValue(bootstrapv1.AgentAnnotation, "a-0"))
			g.Expect(conditions.GetMessage(config, clusterv1.ReadyCondition)).To(ContainSubstring("AgentInstalled: Agent a-0"))
			g.Expect(conditions.GetReason(config, clusterv1.PausedCondition)).To(Equal(clusterv1.NotPausedReason))
		})
	}
}

var paused = map[string]string{clusterv1.PausedAnnotation: "true"}

// TestHostIsLookedAtInTime: a config of which something cannot be read is tried again later each time, but not after the time at which its
// host is to be looked at.
func TestHostIsLookedAtInTime(t *testing.T) {
	for again, want := range map[time.Duration]time.Duration{0: 0, time.Second: time.Second, time.Hour: retryAfterError} {
		t.Run(again.String(), func(t *testing.T) {
			g := NewWithT(t)
			c := newClient(t, metal3.MachineKind, false, func() error { return errors.New("no answer") })
			r := &Reconciler{
				Client: c, Gate: &manager.Gate{}, Recorder: events.NewFakeRecorder(10), secrets: newSecrets(c, clock.RealClock{}),
				Hosts: &hosts{again: again}, controller: capicontrollerutil.NewFakeController(), Now: time.Now,
			}
			came, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m-0"}})
			g.Expect(err == nil).To(Equal(want > 0))
			g.Expect(came.RequeueAfter).To(Equal(want))
		})
	}
}

// TestCacheThatIsFilledLate: after a start of the manager, nothing is written while its cache is being filled. Only when that takes longer
// than a minute does a config say so.
func TestCacheThatIsFilledLate(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c := newClient(t, metal3.MachineKind, false, func() error { return apierrors.NewTimeoutError("the cache is not filled", 1) })
	now, key := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), client.ObjectKey{Namespace: "ns", Name: "m-0"}
	r := &Reconciler{
		Client: c, Gate: &manager.Gate{}, Recorder: events.NewFakeRecorder(10), secrets: newSecrets(c, clock.RealClock{}),
		Hosts: &hosts{}, controller: capicontrollerutil.NewFakeController(), Now: func() time.Time { return now },
	}
	read := func() *bootstrapv1.OpenshiftAssistedConfig {
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		g.Expect(c.Get(ctx, key, config)).To(Succeed())
		return config
	}
	before := read()
	for range 4 {
		came, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(came.RequeueAfter).To(Equal(manager.FillingRetryInterval))
		now = now.Add(manager.FillingTime / 4)
	}
	g.Expect(read().Status).To(Equal(before.Status))
	_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
	g.Expect(err).To(MatchError(ContainSubstring("the cache is not filled")))
	g.Expect(conditions.GetMessage(read(), clusterv1.ReadyCondition)).To(ContainSubstring("the cache is not filled"))
}

// newClient returns a client with a config, its Machine with infrastructure of a kind, and its Cluster. Requests fail when their context
// has ended, and reads of infrastructure as the test says.
func newClient(t *testing.T, kind string, deleted bool, read func() error) client.Client {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme,
	} {
		g.Expect(add(scheme)).To(Succeed())
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-0", Namespace: "ns", UID: "machine-uid"}}
	machine.Spec.ClusterName = "demo"
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: metal3.InfrastructureGroup, Kind: kind, Name: "m-0"}
	config := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name:       "m-0",
			Namespace:  "ns",
			Generation: 1,
			Finalizers: []string{bootstrapv1.ConfigFinalizer},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m-0", UID: "machine-uid"},
			},
		},
	}
	config.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason},
	}
	if deleted {
		config.DeletionTimestamp = ptr.To(metav1.Now())
		machine.DeletionTimestamp, machine.Finalizers = config.DeletionTimestamp, []string{clusterv1.MachineFinalizer}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns"}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: metal3.CRDMachines, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine, config, cluster, crd).WithStatusSubresource(config).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, infra := o.(*unstructured.Unstructured); infra {
					return read()
				}
				return c.Get(ctx, key, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return c.Patch(ctx, o, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch,
				opts ...client.SubResourcePatchOption) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, o, patch, opts...)
			},
		}).Build()
}
