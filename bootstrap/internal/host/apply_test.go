// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/util/conditions"
	capicontrollerutil "sigs.k8s.io/cluster-api/util/controller"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
)

// TestBindThatFails: what the config records and says of a bind is what came of it, and a conflict is no error: the change that was in the
// way triggers another pass.
func TestBindThatFails(t *testing.T) {
	agents := schema.GroupResource{Group: "agent-install.openshift.io", Resource: "agents"}
	for name, test := range map[string]struct {
		answer   error
		fails    types.GomegaMatcher
		reason   string
		message  string
		recorded bool
	}{
		"bound": {fails: Succeed(), reason: bootstrapv1.AgentBindingReason, message: "Agent a-0 is being bound", recorded: true},
		"the Agent has changed": {
			answer: apierrors.NewConflict(agents, "a-0", errors.New("it changed")), fails: Succeed(), reason: bootstrapv1.AgentBindingReason,
			message: "Agent a-0 is being bound",
		},
		"admission refuses it": {
			answer: apierrors.NewForbidden(agents, "a-0", errors.New("the webhook says no")), fails: HaveOccurred(),
			reason: bootstrapv1.AgentNeedsAttentionReason, message: "refuses to let the host in: the binding of Agent a-0 to ClusterDeployment cp: ",
		},
		"the API server does not answer": {
			answer: errors.New("no answer"), fails: HaveOccurred(), reason: bootstrapv1.AgentBindingReason, message: "Agent a-0 is being bound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			c := patching(t, s, func() error { return test.answer })
			r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10), controller: capicontrollerutil.NewFakeController()}
			d := decide(s)
			g.Expect(d.bind).NotTo(BeNil())
			read := s.agents[0].DeepCopy()
			o := r.apply(t.Context(), s, d)
			g.Expect(o.err()).To(test.fails)
			g.Expect(&s.agents[0]).To(Equal(read), "what was read stays as it was read")

			setStatus(s.config, result{decision: &d, outcomes: o})
			installed := conditions.Get(s.config, bootstrapv1.AgentInstalledCondition)
			g.Expect(installed.Reason).To(Equal(test.reason))
			g.Expect(installed.Message).To(ContainSubstring(test.message))
			_, recorded := s.config.Annotations[bootstrapv1.InstallationDiskAnnotation]
			g.Expect(recorded).To(Equal(test.recorded), "the disk is recorded when the Agent has it")
		})
	}
}

// TestClaimWithBind: one patch claims and binds an Agent, after the config has recorded both. When it fails, the condition does not say
// that the host is recognised, and the user may choose another disk.
func TestClaimWithBind(t *testing.T) {
	agents := schema.GroupResource{Group: "agent-install.openshift.io", Resource: "agents"}
	for name, test := range map[string]struct {
		saved, patched error
		annotations    []string
		claimed        bool
	}{
		"both succeed": {annotations: []string{bootstrapv1.AgentAnnotation, bootstrapv1.InstallationDiskAnnotation}, claimed: true},
		"the record is refused": {
			saved: apierrors.NewConflict(agents, "m-0", errors.New("it changed")), annotations: []string{bootstrapv1.AgentAnnotation},
		},
		"the patch is refused": {patched: errors.New("no answer"), annotations: []string{bootstrapv1.AgentAnnotation}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			unclaimed(s)
			delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
			saves := 0
			s.save = func(context.Context) kube.Outcome {
				saves++
				g.Expect(s.config.Annotations).To(HaveKey(bootstrapv1.InstallationDiskAnnotation))
				return kube.OutcomeOf(test.saved)
			}
			patches, deferred := 0, &deferrals{FakeController: capicontrollerutil.NewFakeController()}
			r := &Reconciler{
				Client: patching(t, s, func() error { patches++; return test.patched }), Recorder: events.NewFakeRecorder(10), controller: deferred,
			}
			d := decide(s)
			o := r.apply(t.Context(), s, d)
			setStatus(s.config, result{decision: &d, outcomes: o})
			g.Expect(saves).To(Equal(1))
			if test.saved != nil {
				g.Expect(patches).To(BeZero(), "the record comes first")
			}
			g.Expect(conditions.IsTrue(s.config, bootstrapv1.HostRecognizedCondition)).To(Equal(test.claimed))
			for _, annotation := range []string{bootstrapv1.AgentAnnotation, bootstrapv1.InstallationDiskAnnotation} {
				_, recorded := s.config.Annotations[annotation]
				g.Expect(recorded).To(Equal(slices.Contains(test.annotations, annotation)), annotation)
			}
			agent := &assisted.Agent{}
			g.Expect(r.Client.Get(t.Context(), client.ObjectKeyFromObject(&s.agents[0]), agent)).To(Succeed())
			g.Expect(agent.Annotations[bootstrapv1.ClaimAnnotation] == s.claim() && agent.Spec.Approved).To(Equal(test.claimed))
			if test.claimed {
				g.Expect(deferred.until).To(Equal([]string{"Agent " + agent.ResourceVersion}), "the next pass sees what this one has written")
			} else {
				g.Expect(deferred.until).To(BeEmpty())
			}
		})
	}
}

// TestBindOfAHostThatWasClaimedBefore: the disk is recorded before the bind, and not bound when somebody has changed the config meanwhile:
// admission takes other root device hints until then.
func TestBindOfAHostThatWasClaimedBefore(t *testing.T) {
	configs := schema.GroupResource{Group: bootstrapv1.GroupVersion.Group, Resource: "openshiftassistedconfigs"}
	for name, test := range map[string]struct {
		answer error
		binds  int
	}{
		"nobody has": {nil, 1}, "somebody has": {apierrors.NewConflict(configs, "m-0", errors.New("it changed")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			s.save = func(context.Context) kube.Outcome {
				g.Expect(s.config.Annotations).To(HaveKey(bootstrapv1.InstallationDiskAnnotation))
				return kube.OutcomeOf(test.answer)
			}
			patches := 0
			r := &Reconciler{
				Client: patching(t, s, func() error { patches++; return nil }), Recorder: events.NewFakeRecorder(10),
				controller: capicontrollerutil.NewFakeController(),
			}
			d := decide(s)
			g.Expect(d.record).To(BeEmpty())
			g.Expect(d.bind).NotTo(BeNil())
			setStatus(s.config, result{decision: &d, outcomes: r.apply(t.Context(), s, d)})
			g.Expect(patches).To(Equal(test.binds))
			_, recorded := s.config.Annotations[bootstrapv1.InstallationDiskAnnotation]
			g.Expect(recorded).To(Equal(test.binds == 1))
		})
	}
}

// deferrals notes what the next pass waits for.
type deferrals struct {
	*capicontrollerutil.FakeController
	until []string
}

func (d *deferrals) DeferNextReconcileUntilCacheUpToDate(_ metav1.Object, of capicontrollerutil.GroupVersionKindType, version string) {
	d.until = append(d.until, of.Kind+" "+version)
}

// TestClaimOfAnAgentThatHasChanged: the conditions of the host and what it is waited for stay as they are together, for the pass that the
// change brings: to tell half of it would be a write, and one more to take it back.
func TestClaimOfAnAgentThatHasChanged(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	unclaimed(s)
	delete(s.config.Annotations, bootstrapv1.AgentAnnotation)
	s.save = func(context.Context) kube.Outcome { return kube.OutcomeOf(nil) }
	s.config.Status.HostRegistration.Attempt = new(int32(1))
	fact.Waiting(bootstrapv1.WaitingForAgentReason, "not yet").Set(s.config, bootstrapv1.HostRecognizedCondition)
	fact.Waiting(bootstrapv1.WaitingForRecognitionReason, "no host").Set(s.config, bootstrapv1.AgentInstalledCondition)
	fact.Done(bootstrapv1.HostHealthyReason).Set(s.config, bootstrapv1.HostHealthyCondition)
	before := s.config.Status.DeepCopy()
	agents := schema.GroupResource{Group: "agent-install.openshift.io", Resource: "agents"}
	r := &Reconciler{Recorder: events.NewFakeRecorder(10), Client: patching(t, s, func() error {
		return apierrors.NewConflict(agents, s.agents[0].Name, errors.New("it changed"))
	})}
	d := decide(s)
	setStatus(s.config, result{decision: &d, outcomes: r.apply(t.Context(), s, d)})
	g.Expect(s.config.Status).To(BeEquivalentTo(*before))
}

// patching returns a client with the scope's first Agent, as it is read from then on, whose patches may fail.
func patching(t *testing.T, s *scope, before func() error) client.Client {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(assisted.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&s.agents[0]).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	}).Build()
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(&s.agents[0]), &s.agents[0])).To(Succeed())
	return c
}

// TestRecognitionThatFails: the condition does not say that something was claimed or taken back which was not.
func TestRecognitionThatFails(t *testing.T) {
	answers := map[string]error{
		"refused": apierrors.NewBadRequest("the installation has begun"), "no answer": errors.New("no answer"),
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := discovered()
			isBound(s)
			secondAgent(s, "")
			s.allAgents = s.agents
			d := decide(s)
			g.Expect(d.withdraw).NotTo(BeNil())
			setStatus(s.config, result{decision: &d, outcomes: outcomes{identity: kube.OutcomeOf(answer)}})
			message := conditions.GetMessage(s.config, bootstrapv1.HostRecognizedCondition)
			g.Expect(message).To(HavePrefix("Agent a-0 may be another host, and has still what it was given"))
			g.Expect(message).NotTo(ContainSubstring("no answer"), "only a refusal says what to do")

			s = discovered()
			unclaimed(s)
			s.install = nil
			d = decide(s)
			g.Expect(d.claim).NotTo(BeNil())
			setStatus(s.config, result{decision: &d, outcomes: outcomes{identity: kube.OutcomeOf(answer)}})
			g.Expect(conditions.Has(s.config, bootstrapv1.HostRecognizedCondition)).To(BeFalse())
		})
	}
}

// TestNothingDecided: a pass that could not read what it decides on leaves the conditions as they are.
func TestNothingDecided(t *testing.T) {
	g := NewWithT(t)
	s := discovered()
	d := decide(s)
	setStatus(s.config, result{decision: &d})
	before := s.config.DeepCopy()
	setStatus(s.config, result{})
	g.Expect(s.config).To(Equal(before))
}
