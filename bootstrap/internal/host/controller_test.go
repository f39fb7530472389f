// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/index/indextest"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/mapping"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/manager"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// leaving is a Machine that core holds at its pre-terminate hooks, its Cluster, and its config, where neither
// its infrastructure machine nor any CRD of assisted-service exists any more.
func leaving() (*clusterv1.Machine, *clusterv1.Cluster, *bootstrapv1.OpenshiftAssistedConfig) {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m-0", Namespace: "ns", UID: "machine-uid", DeletionTimestamp: ptr.To(later),
			Finalizers: []string{clusterv1.MachineFinalizer}, Annotations: map[string]string{bootstrapv1.AgentDeletionHook: "x"}},
	}
	machine.Spec.ClusterName = "demo"
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "OpenshiftAssistedConfig", Name: "m-0",
	}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: metal3.InfrastructureGroup, Kind: metal3.MachineKind, Name: "m-0",
	}
	machine.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineDeletingCondition, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason},
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns"}}
	config := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "m-0", Namespace: "ns", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m-0", UID: "machine-uid"}}},
	}
	return machine, cluster, config
}

// TestReconcileLetsGo: who may take the hook off a Machine that leaves, and when (CONTRACT BOOT-36, BOOT-41, BOOT-42, CTL-43).
func TestReconcileLetsGo(t *testing.T) {
	tests := []struct {
		name        string
		paused      bool
		configGone  bool
		clusterGone bool
		metal3Gone  bool
		filter      string
		hooked      bool
	}{
		{name: "its config exists"},
		{name: "its Cluster is gone", clusterGone: true},
		{name: "Metal3's CRDs are gone", metal3Gone: true},
		{name: "its config vanished", configGone: true},
		{name: "its config vanished and its Cluster too", configGone: true, clusterGone: true},
		{name: "paused, and its config vanished", paused: true, configGone: true, hooked: true},
		{name: "of another manager, and its config vanished", filter: "other", configGone: true, hooked: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			machine, cluster, config := leaving()
			cluster.Spec.Paused = ptr.To(tt.paused)
			objects := []client.Object{machine}
			if !tt.metal3Gone {
				objects = append(objects, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
					Name: metal3.CRDMachines, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}}})
			}
			if !tt.clusterGone {
				objects = append(objects, cluster)
			}
			if !tt.configGone {
				objects = append(objects, config)
			}
			c := indextest.Builder(objects...).Build()
			r := &Reconciler{Client: c, APIReader: c, Gate: &manager.Gate{}, WatchFilter: tt.filter, Now: time.Now}
			g.Expect(passOrRelease(t, r, config, tt.configGone)).To(Succeed())
			g.Expect(c.Get(context.Background(), client.ObjectKeyFromObject(machine), machine)).To(Succeed())
			_, hooked := machine.Annotations[bootstrapv1.AgentDeletionHook]
			g.Expect(hooked).To(Equal(tt.hooked))
		})
	}
}

// passOrRelease does what the controller of configs does for a config, or for one that has vanished.
func passOrRelease(t *testing.T, r *Reconciler, config *bootstrapv1.OpenshiftAssistedConfig, vanished bool) error {
	t.Helper()
	if vanished {
		return r.Release(t.Context(), client.ObjectKeyFromObject(config))
	}
	owners, err := mapping.OwnersOf(t.Context(), r.Client, config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = r.Pass(t.Context(), config, owners, func(context.Context) kube.Outcome { return kube.OutcomeOf(nil) })
	return err
}

// TestHookStaysWhileTheCacheIsStale: an Agent that registered a moment ago, claimed or not, keeps the host from being freed (DESIGN D19).
func TestHookStaysWhileTheCacheIsStale(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*assisted.Agent)
		hooked bool
	}{
		"claimed":                  {func(*assisted.Agent) {}, true},
		"not claimed yet":          {func(a *assisted.Agent) { a.Annotations = nil }, true},
		"of another host":          {func(a *assisted.Agent) { a.Annotations, a.Status.Inventory = nil, assisted.Inventory{} }, false},
		"of another InfraEnv":      {func(a *assisted.Agent) { a.Annotations, a.Labels = nil, nil }, false},
		"claimed by other Machine": {func(a *assisted.Agent) { a.Annotations[bootstrapv1.ClaimAnnotation] = "m-1/x" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			agent := s.agents[0].DeepCopy()
			tt.change(agent)
			s.agents = nil
			c := indextest.Builder(s.machine, agent).Build()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.machine), s.machine)).To(Succeed())
			r := &Reconciler{Client: c, APIReader: c}
			g.Expect(r.applyDeparture(context.Background(), s, departure{unhook: true}).err()).To(Succeed())
			machine := &clusterv1.Machine{}
			g.Expect(c.Get(context.Background(), client.ObjectKeyFromObject(s.machine), machine)).To(Succeed())
			_, hooked := machine.Annotations[bootstrapv1.AgentDeletionHook]
			g.Expect(hooked).To(Equal(tt.hooked))
		})
	}
}

// TestHookOfAnotherMachineStays: a Machine of the name of one that is gone, which the cache shows still, keeps its hook.
func TestHookOfAnotherMachineStays(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	s.agents = nil
	c := indextest.Builder(s.machine).Build()
	s.machine = s.machine.DeepCopy()
	s.machine.ResourceVersion = "1"
	r := &Reconciler{Client: c, APIReader: c}
	g.Expect(r.applyDeparture(t.Context(), s, departure{unhook: true}).err()).To(Succeed(), "its event triggers the next pass")
	machine := &clusterv1.Machine{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.machine), machine)).To(Succeed())
	g.Expect(machine.Annotations).To(HaveKey(bootstrapv1.AgentDeletionHook))
}

// TestWhatCannotBeReadIsTold: the condition that comes next says so.
func TestWhatCannotBeReadIsTold(t *testing.T) {
	for conditionType, recognized := range map[string]metav1.ConditionStatus{
		bootstrapv1.HostRecognizedCondition: metav1.ConditionFalse,
		bootstrapv1.AgentInstalledCondition: metav1.ConditionTrue,
	} {
		t.Run(conditionType, func(t *testing.T) {
			g := NewWithT(t)
			machine, cluster, config := leaving()
			machine.DeletionTimestamp, machine.Finalizers = nil, nil
			conditions.Set(config, metav1.Condition{Type: bootstrapv1.HostRecognizedCondition, Status: recognized, Reason: "Before"})
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme, apiextensionsv1.AddToScheme} {
				g.Expect(add(scheme)).To(Succeed())
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine, cluster, config).
				WithInterceptorFuncs(interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
						if _, crd := o.(*apiextensionsv1.CustomResourceDefinition); crd {
							return context.DeadlineExceeded
						}
						return c.Get(ctx, key, o, opts...)
					},
				}).Build()
			r := &Reconciler{Client: c, APIReader: c, Gate: &manager.Gate{}, Now: time.Now}
			g.Expect(passOrRelease(t, r, config, false)).To(MatchError(context.DeadlineExceeded))
			g.Expect(conditions.Get(config, conditionType)).To(HaveValue(And(
				HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", bootstrapv1.ReadFailedReason),
				HaveField("Message", ContainSubstring("Nothing is decided, because not all that is needed can be read: ")))))
		})
	}
}
