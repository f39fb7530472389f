// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// listed is what passes have listed: each list, and a copy of it as it was.
type listed struct{ lists, copies []client.ObjectList }

// watchLists keeps what the manager lists.
func (w *world) watchLists() *listed {
	seen := &listed{}
	w.r.Client = w.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if unsafe := (&client.ListOptions{}).ApplyOptions(opts).UnsafeDisableDeepCopy; err == nil && unsafe != nil && *unsafe {
				seen.lists = append(seen.lists, list)
				if kept, ok := list.DeepCopyObject().(client.ObjectList); ok {
					seen.copies = append(seen.copies, kept)
				}
			}
			return err
		},
	})
	return seen
}

// TestObjectsOfTheCacheStayAsTheyAre: lists without copies hand out the objects of the cache, which every reader shares.
func TestObjectsOfTheCacheStayAsTheyAre(t *testing.T) {
	w := newWorld(t, 3, 2)
	seen := w.watchLists()
	w.unbootable["worker-1"] = true // The Agent of a host that comes too late is unbound.
	w.run(nil, w.available)
	w.deleteMachine("cp-1")
	for range 20 {
		w.live(nil)
	}
	NewWithT(t).Expect(len(seen.lists)).To(BeNumerically(">", 100))
	for i, list := range seen.lists {
		if !equality.Semantic.DeepEqual(list, seen.copies[i]) {
			t.Fatalf("a pass has changed what it listed:\nbefore: %+v\nafter: %+v", seen.copies[i], list)
		}
	}
}

// TestPassReadsItsClusterOnly: however many clusters share the namespace, a pass looks at no object of another one.
func TestPassReadsItsClusterOnly(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.run(nil, w.available)
	for i := range 20 {
		labels := map[string]string{clusterv1.ClusterNameLabel: "other"}
		agent := &assisted.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("other-%d", i)}}
		agent.Spec.ClusterDeploymentName = &assisted.ClusterReference{Namespace: namespace, Name: "other"}
		for _, o := range []client.Object{
			agent, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: agent.Name, Labels: labels}},
			&clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: agent.Name, Labels: labels}},
			&hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: agent.Name, Labels: labels}},
		} {
			w.must(w.client.Create(context.Background(), o))
		}
	}
	objects := 0
	w.r.Client = w.intercepted(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return meta.EachListItem(list, func(item runtime.Object) error {
				objects++
				if o, ok := item.(client.Object); !ok || strings.HasPrefix(o.GetName(), "other-") {
					return fmt.Errorf("a pass looks at %T %v of another cluster", item, o)
				}
				return nil
			})
		},
	})
	w.reconcile()
	NewWithT(t).Expect(objects).To(BeNumerically(">", 10))
}

// TestReadsDoNotGrowWithWorkers: each change of a worker triggers a pass of its control plane, so a pass must not make a read for every
// worker.
func TestReadsDoNotGrowWithWorkers(t *testing.T) {
	reads := func(workers int) int {
		w := newWorld(t, 3, workers)
		w.run(nil, w.available)
		for i := range workers {
			w.must(w.client.Create(context.Background(), &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("worker-%d", i), Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName},
			}}))
		}
		w.reconcile()
		count := 0
		w.r.Client = w.intercepted(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				count++
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				count++
				return c.List(ctx, list, opts...)
			},
		})
		w.reconcile()
		return count
	}
	NewWithT(t).Expect(reads(6)).To(Equal(reads(1)))
}
