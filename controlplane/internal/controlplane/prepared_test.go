// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// cannotStoreMachines makes the API server fail when it stores a Machine that it has taken in a dry run.
func (w *world) cannotStoreMachines() {
	w.r.Client = w.intercepted(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			options := (&client.CreateOptions{}).ApplyOptions(opts)
			if _, machine := o.(*clusterv1.Machine); machine && len(options.DryRun) == 0 {
				return errors.New("etcdserver: request timed out")
			}
			return c.Create(ctx, o, opts...)
		},
	})
}

// TestPreparedForNoMachine: what was made for a Machine that could not be created stays only while the Machine is wanted as it would be.
func TestPreparedForNoMachine(t *testing.T) {
	configs := func(w *world) []string {
		list := &bootstrapv1.OpenshiftAssistedConfigList{}
		w.must(w.client.List(context.Background(), list))
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	t.Run("because fewer replicas are wanted", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.run(nil, func() bool { return len(w.machines()) == 3 })
		w.cannotStoreMachines()
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(5)) })
		g.Expect(w.try()).To(MatchError(ContainSubstring("request timed out")))
		g.Expect(w.try()).To(MatchError(ContainSubstring("request timed out")))
		g.Expect(configs(w)).To(ConsistOf("cp-0", "cp-1", "cp-2", "cp-3"))
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Replicas = new(int32(3)) })
		w.reconcile()
		g.Expect(configs(w)).To(ConsistOf("cp-0", "cp-1", "cp-2"))
		g.Expect(w.infraMachines()).To(HaveLen(3))
	})
	t.Run("because another spec is wanted", func(t *testing.T) {
		for name, change := range map[string]func(*controlplanev1.OpenshiftAssistedControlPlaneSpec){
			"of the config": func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
				s.OpenshiftAssistedConfigSpec.Proxy.NoProxy = []string{"b"}
			},
			"of infrastructure": func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
				s.MachineTemplate.Spec.InfrastructureRef.Name = "t2"
			},
		} {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				w := newWorld(t, 3, 0)
				template := infra("Metal3MachineTemplate")
				w.must(w.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "t"}, template))
				template.SetName("t2")
				template.SetResourceVersion("")
				w.must(w.client.Create(context.Background(), template))
				w.cannotStoreMachines()
				w.reconcile() // The finalizer comes first.
				g.Expect(w.try()).To(MatchError(ContainSubstring("request timed out")))
				g.Expect(configs(w)).To(ConsistOf("cp-0"))
				w.changeSpec(change)
				w.r.Client = w.client
				for range 3 {
					w.reconcile()
				}
				g.Expect(w.machines()).To(HaveLen(3))
				g.Expect(w.reason(controlplanev1.MachinesUpToDateCondition)).
					To(Equal(controlplanev1.MachinesUpToDateReason), w.message(controlplanev1.MachinesUpToDateCondition))
			})
		}
	})
	t.Run("but not when the Machine is only missing in the cache", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.run(nil, func() bool { return len(w.machines()) == 3 })
		w.r.Client = w.intercepted(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if machines, ok := list.(*clusterv1.MachineList); ok {
					machines.Items = nil
				}
				return err
			},
		})
		w.changeSpec(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) {
			s.OpenshiftAssistedConfigSpec.Proxy.NoProxy = []string{"b"}
		})
		_ = w.try()
		g.Expect(configs(w)).To(ConsistOf("cp-0", "cp-1", "cp-2"))
	})
}
