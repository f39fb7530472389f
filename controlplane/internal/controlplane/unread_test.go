// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
)

// cannotRead makes every read of a ClusterDeployment fail.
func (w *world) cannotRead(err error) {
	w.r.Client = w.intercepted(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, deployment := o.(*hivev1.ClusterDeployment); deployment {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "clusterdeployments"}, "cp", errors.New("no ClusterRole"))

func TestWhatCannotBeReadIsTold(t *testing.T) {
	t.Run("before the cluster is installed", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.run(nil, func() bool { return len(w.machines()) == 3 })
		w.reconcile()
		before := w.reason(controlplanev1.InstalledCondition)
		cp := w.controlPlane()
		cp.Generation++
		w.must(w.client.Update(context.Background(), cp))
		w.cannotRead(errForbidden)
		g.Expect(w.try()).To(MatchError(ContainSubstring("no ClusterRole")))
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.ReadFailedReason))
		g.Expect(w.message(controlplanev1.InstalledCondition)).To(ContainSubstring("no ClusterRole"))
		g.Expect(w.controlPlane().Status.ObservedGeneration).To(Equal(cp.Generation - 1))
		w.r.Client = w.client
		w.reconcile()
		g.Expect(w.controlPlane().Status.ObservedGeneration).To(Equal(cp.Generation))
		g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(before))
	})
	t.Run("of a running cluster, which is available all the same", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.run(nil, w.available)
		w.cannotRead(errForbidden)
		g.Expect(w.try()).To(HaveOccurred())
		g.Expect(w.available()).To(BeTrue())
		g.Expect(w.message(controlplanev1.AvailableCondition)).To(ContainSubstring("no ClusterRole"))
		w.r.Client = w.client
		w.reconcile()
		g.Expect(w.message(controlplanev1.AvailableCondition)).To(BeEmpty())
	})
	t.Run("of a control plane that is being deleted", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.run(nil, w.available)
		w.must(w.client.Delete(context.Background(), w.controlPlane()))
		w.cannotRead(errForbidden)
		g.Expect(w.try()).To(HaveOccurred())
		g.Expect(conditions.Get(w.controlPlane(), controlplanev1.DeletingCondition)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring("no ClusterRole"))))
	})
	t.Run("not when the manager stops", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, 3, 0)
		w.run(nil, w.available)
		before := w.controlPlane().ResourceVersion
		w.cannotRead(context.Canceled)
		g.Expect(w.try()).To(HaveOccurred())
		g.Expect(w.controlPlane().ResourceVersion).To(Equal(before))
	})
}

// TestPassWithoutTimeLeft: a read that takes all the time of a pass leaves enough to say so.
func TestPassWithoutTimeLeft(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, func() bool { return len(w.machines()) == 3 })
	w.reconcile()
	w.r.Client = w.intercepted(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, deployment := o.(*hivev1.ClusterDeployment); deployment {
				return ctx.Err()
			}
			return c.Get(ctx, key, o, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, subResource string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.SubResource(subResource).Patch(ctx, o, patch, opts...)
		},
	})
	over, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := w.r.Reconcile(over, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.controlPlane())})
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(w.reason(controlplanev1.InstalledCondition)).To(Equal(controlplanev1.ReadFailedReason))
}

func TestOneFailedReadOfOperatorsIsNoNews(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 3, 0)
	w.run(nil, w.available)
	w.reconcile()
	expect := func(etcd string) {
		t.Helper()
		_ = w.try()
		g.Expect(w.reason(controlplanev1.EtcdClusterHealthyCondition)).To(Equal(etcd), w.message(controlplanev1.EtcdClusterHealthyCondition))
	}
	w.api.Health.Err = errors.New("etcdserver: leader changed")
	expect(controlplanev1.EtcdClusterHealthyReason) // What was read last is remembered by the connection.
	w.api.Reported = nil
	expect(controlplanev1.EtcdClusterHealthyReason) // A new manager remembers nothing, and has the grace period to read it.
	w.now = w.now.Add(w.r.RemoteConditionsGracePeriod * 100)
	w.takeOver()
	expect(controlplanev1.EtcdClusterHealthyReason)
	w.now = w.now.Add(w.r.RemoteConditionsGracePeriod + 1)
	w.api.Last = w.now
	expect(controlplanev1.EtcdClusterInspectionFailedReason)
	g.Expect(w.message(controlplanev1.EtcdClusterHealthyCondition)).To(HaveSuffix("etcdserver: leader changed"))
}
