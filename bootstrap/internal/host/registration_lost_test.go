// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// TestALossIsAskedForOnce: the manager ends after it has asked for the power cycle, and before the config has forgotten the Agent; or the
// cache does not show yet that it has. The clock of baremetal-operator may be ahead.
func TestALossIsAskedForOnce(t *testing.T) {
	for _, sinceBoot := range []time.Duration{time.Minute, -9 * time.Minute} {
		t.Run(sinceBoot.String(), func(t *testing.T) { lossIsAskedForOnce(t, sinceBoot) })
	}
}

func lossIsAskedForOnce(t *testing.T, sinceBoot time.Duration) {
	t.Helper()
	g := NewWithT(t)
	s := booted(sinceBoot)
	s.config.Annotations[bootstrapv1.AgentAnnotation] = "a-0"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{bmov1alpha1.AddToScheme, assisted.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.host).Build()
	r := &Reconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(100), controller: capicontrollerutil.NewFakeController()}
	read := func() { g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), s.host)).To(Succeed()) }
	// pass is one that ends before it writes the config, and after baremetal-operator has done what it was asked for.
	pass := func() (decision, bool) {
		t.Helper()
		read()
		d := decide(s)
		o := r.apply(t.Context(), s, d)
		g.Expect(o.identity.Err()).NotTo(HaveOccurred())
		read()
		_, asked := s.host.Annotations[rebootAnnotation]
		delete(s.host.Annotations, rebootAnnotation)
		g.Expect(c.Update(t.Context(), s.host)).To(Succeed())
		return d, asked
	}
	_, asked := pass()
	g.Expect(asked).To(BeTrue())
	d, asked := pass()
	g.Expect(asked).To(BeFalse(), "once for one loss")
	g.Expect(d.recognized.Reason).To(Equal(bootstrapv1.AgentLostReason))
	setRecords(s.config, &d, outcomes{})
	g.Expect(s.config.Annotations).NotTo(HaveKey(bootstrapv1.AgentAnnotation))

	s.agents = discovered().agents
	s.agents[0].Annotations = nil
	d, asked = pass()
	g.Expect(asked).To(BeFalse())
	g.Expect(d.record).To(Equal("a-0"), "it has registered again")
	s.agents = nil
	_, asked = pass()
	g.Expect(asked).To(BeTrue(), "the next loss is another one")
}

// TestALossIsForgottenBeforeTheNextOne: while the record of a power cycle cannot be removed, the config does not have the Agent's name
// again. Otherwise that record would stand for the next loss too, and nobody would power-cycle the host.
func TestALossIsForgottenBeforeTheNextOne(t *testing.T) {
	hosts := schema.GroupResource{Group: bmov1alpha1.GroupVersion.Group, Resource: "baremetalhosts"}
	for name, answer := range map[string]error{
		"the host has changed":           apierrors.NewConflict(hosts, "h0", errors.New("it changed")),
		"the API server does not answer": errors.New("no answer"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := booted(time.Minute)
			s.agents = discovered().agents
			s.agents[0].Annotations = nil
			cycled := powerCycle{Boot: 1, Lost: "a-0", Machine: s.claim(), Time: s.now}
			metav1.SetMetaDataAnnotation(&s.host.ObjectMeta, bootstrapv1.PowerCycleAnnotation, cycled.String())
			scheme := runtime.NewScheme()
			g.Expect(bmov1alpha1.AddToScheme(scheme)).To(Succeed())
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.host).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return answer
				},
			}).Build()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(s.host), s.host)).To(Succeed())
			r := &Reconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(100), controller: capicontrollerutil.NewFakeController()}

			d := decide(s)
			g.Expect(d.record).To(Equal("a-0"))
			o := r.apply(t.Context(), s, d)
			g.Expect(o.record.Stops()).To(BeTrue())
			setRecords(s.config, &d, o)
			g.Expect(s.config.Annotations).NotTo(HaveKey(bootstrapv1.AgentAnnotation))

			d = decide(s)
			g.Expect(d.forget).To(BeTrue(), "the next pass tries again")
			g.Expect(s.saveAgent(t.Context(), d).Done()).To(BeTrue())
			g.Expect(s.config.Annotations).To(HaveKeyWithValue(bootstrapv1.AgentAnnotation, "a-0"))
			delete(s.host.Annotations, bootstrapv1.PowerCycleAnnotation)
			s.agents = nil
			g.Expect(decide(s).reboot).To(BeTrue(), "the next loss is another one")
		})
	}
}
