// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/kube"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

// TestRefusalsAreTold: what the API server refuses is in the conditions, and not only in the log. Errors that pass are not.
func TestRefusalsAreTold(t *testing.T) {
	decided := decision{
		image:      fact.Waiting(bootstrapv1.NetworkDataPendingReason, "being written"),
		dataSecret: fact.Waiting(bootstrapv1.WaitingForDiscoveryImageReason, "being handed over"),
	}
	refused, failed := kube.OutcomeOf(kube.Refusal("the API server refused it: correct it")), kube.OutcomeOf(errors.New("no answer"))
	for name, test := range map[string]struct {
		decided           decision
		outcomes          outcomes
		image, dataSecret string
	}{
		"the network data": {
			decided: decided, outcomes: outcomes{networks: refused}, image: "the API server refused it: correct it",
			dataSecret: "no discovery image yet: the API server refused it: correct it",
		},
		"the live ISO": {
			decided: decided, outcomes: outcomes{media: refused}, image: "being written",
			dataSecret: "no discovery image yet: the API server refused it: correct it",
		},
		"a new live ISO, after the Secret": {
			decided: decision{dataSecret: fact.Done(bootstrapv1.DataSecretAvailableReason)}, outcomes: outcomes{media: refused},
		},
		"in words that may quote what nobody may see": {
			decided: decided, outcomes: outcomes{networks: kube.OutcomeOf(apierrors.NewBadRequest("password: secret"))}, image: "being written",
			dataSecret: "being handed over",
		},
		"the InfraEnv": {
			decided:  decision{image: fact.Waiting(bootstrapv1.InfraEnvPendingReason, "being made"), dataSecret: decided.dataSecret},
			outcomes: outcomes{infraEnv: refused}, image: "the API server refused it: correct it",
			dataSecret: "no discovery image yet: the API server refused it: correct it",
		},
		"a change of the InfraEnv that has an image": {
			decided: decision{
				image: fact.Done(bootstrapv1.DiscoveryImageReadyReason), dataSecret: fact.Done(bootstrapv1.DataSecretAvailableReason),
			},
			outcomes: outcomes{infraEnv: refused},
		},
		"the Secret": {
			decided:  decision{image: decided.image, dataSecret: decided.dataSecret, publish: true, secret: true},
			outcomes: outcomes{secret: refused}, image: "being written", dataSecret: "the API server refused it: correct it",
		},
		"the Secret of a live ISO": {
			decided: decision{
				image: fact.Done(bootstrapv1.DiscoveryImageReadyReason), dataSecret: fact.Done(bootstrapv1.DataSecretAvailableReason),
				publish: true, secret: true,
			},
			outcomes: outcomes{secret: refused}, dataSecret: "the API server refused it: correct it",
		},
		"no answer": {decided: decided, outcomes: outcomes{networks: failed}, image: "being written", dataSecret: "being handed over"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			setStatus(s, result{decision: &test.decided, outcomes: test.outcomes})
			g.Expect(conditions.GetMessage(s.config, bootstrapv1.DiscoveryImageReadyCondition)).To(Equal(test.image))
			g.Expect(conditions.GetMessage(s.config, bootstrapv1.DataSecretAvailableCondition)).To(Equal(test.dataSecret))
			g.Expect(s.config.Status.DataSecretName).To(BeEmpty())
		})
	}
}

// TestNothingDecided: a pass that could not read what it decides on leaves what was said before.
func TestNothingDecided(t *testing.T) {
	g := NewWithT(t)
	s := prepared()
	d := decide(s)
	setStatus(s, result{decision: &d, outcomes: outcomes{secret: kube.OutcomeOf(nil)}})
	g.Expect(conditions.IsTrue(s.config, bootstrapv1.DataSecretAvailableCondition)).To(BeTrue())
	before := s.config.DeepCopy()
	setStatus(s, result{})
	g.Expect(s.config).To(Equal(before))
}

// TestAHostInTroubleIsInTheSummary until its Machine has a Node, and again when that Machine is deleted.
func TestAHostInTroubleIsInTheSummary(t *testing.T) {
	for name, test := range map[string]struct{ joined, deleted, told bool }{
		"before the Node":         {told: true},
		"with a Node":             {joined: true},
		"when the Machine leaves": {joined: true, deleted: true, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			if test.joined {
				s.machine.Status.NodeRef.Name = "n"
			}
			if test.deleted {
				s.machine.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			fact.Done(bootstrapv1.DataSecretAvailableReason).Set(s.config, bootstrapv1.DataSecretAvailableCondition)
			fact.Waiting(bootstrapv1.HostErrorReason, "no power").Set(s.config, bootstrapv1.HostHealthyCondition)
			setStatus(s, result{})
			g.Expect(conditions.IsFalse(s.config, clusterv1.ReadyCondition)).To(Equal(test.told))
			if test.told {
				g.Expect(conditions.GetMessage(s.config, clusterv1.ReadyCondition)).To(Equal("* HostHealthy: no power"))
			}
		})
	}
}

// TestLongImageURL: a live ISO whose URL the infrastructure machine's API version does not take is written in an older one, where that is
// served (METAL3 M3-20).
func TestLongImageURL(t *testing.T) {
	long := "http://images.example.com/byapikey/" + strings.Repeat("t", metal3.MaxImageURLLength)
	for name, test := range map[string]struct {
		served    string
		published bool
		written   string
		reason    string
	}{
		"v1beta1 is served":     {served: "v1beta1", written: "v1beta1", reason: bootstrapv1.WaitingForDiscoveryImageReason},
		"v1beta1 is not served": {served: "v1beta2", reason: bootstrapv1.ImageURLTooLongReason},
		"nor for a later URL":   {served: "v1beta2", published: true, reason: bootstrapv1.ImageURLTooLongReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			s.infraEnv.Status.ISODownloadURL = long
			s.config.Status.Initialization.DataSecretCreated = ptr.To(test.published)
			group := schema.GroupVersion{Group: metal3.InfrastructureGroup, Version: test.served}
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
			mapper.Add(group.WithKind(metal3.MachineKind), meta.RESTScopeNamespace)
			r := &Reconciler{Client: fake.NewClientBuilder().WithRESTMapper(mapper).Build()}
			g.Expect(r.observeVersions(t.Context(), s)).To(Succeed())
			d := decide(s)
			g.Expect(d.dataSecret.Reason).To(Equal(test.reason), d.dataSecret.Message)
			g.Expect(d.dataSecret.Message).NotTo(ContainSubstring("tttt"))
			if test.written == "" {
				g.Expect(d.mediaURL).To(BeEmpty())
				return
			}
			g.Expect(d.mediaURL).To(Equal(long))
			g.Expect(writableAs(s.infraMachine, d.mediaURL).GroupVersionKind().Version).To(Equal(test.written))
		})
	}
}

// waitsForHost sets what the host's pass says before Metal3 has chosen a host.
func waitsForHost(config *bootstrapv1.OpenshiftAssistedConfig) {
	fact.Done(bootstrapv1.HostNotAssociatedReason).Set(config, bootstrapv1.HostHealthyCondition)
	fact.Waiting(bootstrapv1.WaitingForHostReason, "none is chosen").Set(config, bootstrapv1.HostRecognizedCondition)
}

// A pass leaves to a later one that the image of a young config is being made and that the host is waited for, and nothing else.
func TestFirstStatus(t *testing.T) {
	pending := pendingFact("demo-x")
	refused, failed := kube.OutcomeOf(kube.Refusal("correct it")), kube.OutcomeOf(errors.New("no answer"))
	for name, test := range map[string]struct {
		known    bool
		takenUp  bool
		age      time.Duration
		decision *decision
		outcomes outcomes
		// told is what the host's pass has said of a condition, if it is not that no host is chosen yet.
		told map[string]fact.Fact
		left bool
	}{
		"the image is being made":              {decision: &decision{image: pending}, left: true},
		"the config has a status":              {known: true, decision: &decision{image: pending}},
		"the config is old and is taken up":    {takenUp: true, age: time.Hour, decision: &decision{image: pending}, left: true},
		"the image is being made for a while":  {age: firstStatusWithin, decision: &decision{image: pending}},
		"the API server's clock is far ahead":  {age: -clocksDiffer, decision: &decision{image: pending}},
		"the image is there":                   {decision: &decision{image: fact.Done(bootstrapv1.DiscoveryImageReadyReason)}},
		"something else is waited for":         {decision: &decision{image: fact.Waiting(bootstrapv1.WaitingForPullSecretReason, "set it")}},
		"the API server refuses the InfraEnv":  {decision: &decision{image: pending}, outcomes: outcomes{infraEnv: refused}},
		"the API server does not answer":       {decision: &decision{image: pending}, outcomes: outcomes{infraEnv: failed}},
		"not all that is needed could be read": {},
		"the host is broken": {decision: &decision{image: pending}, told: map[string]fact.Fact{
			bootstrapv1.HostHealthyCondition: fact.Waiting(bootstrapv1.HostErrorReason, "power it on"),
		}},
		"the host is recognised": {decision: &decision{image: pending}, told: map[string]fact.Fact{
			bootstrapv1.HostRecognizedCondition: fact.Done(bootstrapv1.HostRecognizedReason),
		}},
		"the host could not be looked at": {decision: &decision{image: pending}, told: map[string]fact.Fact{
			bootstrapv1.HostRecognizedCondition: fact.Waiting(bootstrapv1.ReadFailedReason, "no answer"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepared()
			controllerutil.AddFinalizer(s.config, bootstrapv1.ConfigFinalizer)
			s.now = time.Now()
			s.config.CreationTimestamp = metav1.NewTime(s.now.Add(-test.age))
			if test.known {
				fact.Done("Any").Set(s.config, bootstrapv1.DeletingCondition)
			}
			s.read, s.first = s.config.DeepCopy(), s.config.DeepCopy()
			if test.takenUp {
				s.first.Finalizers = nil
			}
			waitsForHost(s.config)
			for conditionType, told := range test.told {
				told.Set(s.config, conditionType)
			}
			r := result{decision: test.decision, outcomes: test.outcomes}
			setStatus(s, r)
			NewWithT(t).Expect(saidLater(s, r)).To(Equal(test.left))
		})
	}
}
