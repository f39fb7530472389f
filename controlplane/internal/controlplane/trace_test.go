// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/trace"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/tracing/tracingtest"
)

// TestTrace: the pass that creates Machines notes itself on their configs, and on nothing else, with their creation; passes after it write
// nothing for that. Without a trace there is no such note.
func TestTrace(t *testing.T) {
	g, spans := NewWithT(t), tracingtest.New()
	story := func(ctx context.Context) (writes int, w *world) {
		w = newWorld(t, 3, 0)
		count := func(write func() error) error {
			writes++
			return write()
		}
		w.r.Client = w.intercepted(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return count(func() error { return c.Create(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return count(func() error { return c.Patch(ctx, o, patch, opts...) })
			},
		})
		for range 10 {
			_, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			g.Expect(err).NotTo(HaveOccurred())
		}
		return writes, w
	}
	note := func(w *world) []string {
		var notes []string
		for _, machine := range w.machines() {
			g.Expect(machine.Annotations).NotTo(HaveKey(bootstrapv1.TraceAnnotation))
			config := &bootstrapv1.OpenshiftAssistedConfig{}
			g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(&machine), config)).To(Succeed())
			notes = append(notes, config.Annotations[bootstrapv1.TraceAnnotation])
		}
		return notes
	}
	untraced, w := story(t.Context())
	g.Expect(note(w)).To(And(HaveLen(3), HaveEach(BeEmpty())))
	pass := spans.Pass(t)
	traced, w := story(pass)
	g.Expect(traced).To(Equal(untraced))
	of := trace.SpanContextFromContext(pass)
	g.Expect(note(w)).To(
		And(HaveLen(3), HaveEach(fmt.Sprintf("00-%s-%s-01", of.TraceID(), of.SpanID()))))
}
