// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
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
			s.read = s.config.DeepCopy()
			if stale {
				g.Expect(c.Get(ctx, key, live)).To(Succeed())
				metav1.SetMetaDataLabel(&live.ObjectMeta, "example.com/by", "another controller")
				g.Expect(c.Update(ctx, live)).To(Succeed())
			}

			d := decide(s)
			r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10), controller: capicontrollerutil.NewFakeController()}
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
			g.Expect(live.Status.Conditions).NotTo(BeEmpty())
		})
	}
}
