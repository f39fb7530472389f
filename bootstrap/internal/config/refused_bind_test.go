// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/inject"
)

// binds are the patches that bind an Agent, and the answer to them.
type binds struct {
	answer error
	tries  int
}

// of lets the hub give the answer.
func (b *binds) of(w *world) {
	w.hub.WithWatch = interceptor.NewClient(w.hub.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, hub client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			stored := &assisted.Agent{}
			if a, ok := o.(*assisted.Agent); ok && a.Spec.ClusterDeploymentName != nil && w.get(a.Name, stored) && stored.Unbound() {
				b.tries++
				if b.answer != nil {
					return b.answer
				}
			}
			return hub.Patch(ctx, o, patch, opts...)
		},
	})
}

// TestABindThatIsRefusedForHours: the events of what a try writes do not bring the next one, which comes later each time. In between the
// root device hints of the config may be changed. When the API server takes the bind, the host joins as any other.
func TestABindThatIsRefusedForHours(t *testing.T) {
	agents := schema.GroupResource{Group: assisted.GroupVersion.Group, Resource: "agents"}
	for name, test := range map[string]struct {
		answer error
		reason string
	}{
		"refused":   {apierrors.NewForbidden(agents, "a-0", errors.New("a policy says no")), bootstrapv1.AgentNeedsAttentionReason},
		"no answer": {errors.New("no answer"), bootstrapv1.AgentBindingReason},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			w, calls, refusing := newWorld(t, 1, 0), &inject.Calls{}, &binds{answer: test.answer}
			refusing.of(w)
			w.start(calls)
			w.play(func() bool { return refusing.tries > 0 }, true)
			g.Expect(says("cp-0", test.reason, "")(w)).To(BeTrue(), w.conditions())

			tries, writes, since := refusing.tries, calls.Writes()["patch OpenshiftAssistedConfig"], w.now
			w.play(func() bool { return w.now.Sub(since) > 2*time.Hour }, true)
			tries, writes = refusing.tries-tries, calls.Writes()["patch OpenshiftAssistedConfig"]-writes
			g.Expect(tries).To(And(BeNumerically(">", 55), BeNumerically("<", 75)))
			g.Expect(writes).To(Equal(2*tries), "the disk is recorded for each, and taken back")
			g.Expect(w.config("cp-0").Annotations).NotTo(HaveKey(bootstrapv1.InstallationDiskAnnotation), "other hints are accepted")
			g.Expect(says("cp-0", test.reason, "")(w)).To(BeTrue(), w.conditions())

			refusing.answer = nil
			w.play(w.joined, false)
			g.Expect(w.config("cp-0").Annotations).To(HaveKey(bootstrapv1.InstallationDiskAnnotation))
		})
	}
}
