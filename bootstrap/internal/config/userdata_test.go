// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/discovery"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const ignitionURL = "http://assisted.example.com/files?file_name=discovery.ign&api_key=token"

// preparedUserData is a scope in which only the discovery ignition is missing.
func preparedUserData() *scope {
	s := prepared()
	s.config.Spec.Boot.Mode = bootstrapv1.BootModeUserData
	s.infraEnv.UID = "infraenv-uid"
	s.infraEnv.Status.ISODownloadURL = ""
	s.infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = ignitionURL
	setImage(s, "qcow2")
	return s
}

func setImage(s *scope, format string) {
	_ = unstructured.SetNestedMap(
		s.infraMachine.Object,
		map[string]any{"url": "http://images.example.com/coreos", "diskFormat": format},
		"spec",
		"image",
	)
}

// otherInfrastructure is what a user sets for machines of a provider other than Metal3.
func otherInfrastructure(s *scope) {
	s.machine.Spec.InfrastructureRef.Kind, s.infraMachine = "DevMachine", nil
	s.config.Spec.HostIdentity = bootstrapv1.HostIdentityInfraEnv
}

func TestDecideUserData(t *testing.T) {
	published := func(s *scope) { s.config.Status.Initialization.DataSecretCreated = ptr.To(true) }
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Labels:          map[string]string{clusterv1.ClusterNameLabel: "demo"},
		OwnerReferences: []metav1.OwnerReference{{UID: "config-uid", Controller: ptr.To(true)}},
	}}
	tests := []struct {
		name    string
		change  func(*scope)
		data    string
		publish bool
		secret  bool
		// making and remaking are of a Secret that is made of a discovery ignition that has to be fetched.
		making, remaking bool
	}{
		{name: "only the ignition is missing", change: func(*scope) {}, data: bootstrapv1.WaitingForDiscoveryIgnitionReason, making: true},
		{name: "the template names a live ISO", change: func(s *scope) { setImage(s, "live-iso") }, data: bootstrapv1.BootModeMismatchReason},
		{name: "no URL yet, though there is an ISO", change: func(s *scope) {
			s.infraEnv.Status.ISODownloadURL, s.infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = isoURL, ""
		}, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "a stale URL with a failed image", change: func(s *scope) {
			s.infraEnv.Status.Conditions[0] = assisted.Condition{
				Type: assisted.ConditionImageCreated, Status: corev1.ConditionFalse, Reason: assisted.ReasonImageCreationError,
			}
		}, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "no hook yet", change: func(s *scope) { s.hooked = false }, data: bootstrapv1.WaitingForDeletionHookReason},
		{name: "no infrastructure machine", change: func(s *scope) { s.infraMachine = nil }, data: bootstrapv1.WaitingForInfraMachineReason},
		{
			name: "infrastructure of others gets user data", change: otherInfrastructure, data: bootstrapv1.WaitingForDiscoveryIgnitionReason,
			making: true,
		},
		{name: "infrastructure of others has no BareMetalHosts", change: func(s *scope) {
			otherInfrastructure(s)
			s.config.Spec.HostIdentity = bootstrapv1.HostIdentityBareMetalHost
		}, data: bootstrapv1.InfraMachineNotSupportedReason},
		{name: "infrastructure of others has no names of BareMetalHosts", change: func(s *scope) {
			otherInfrastructure(s)
			s.config.Spec.NodeRegistration.Name = bootstrapv1.NodeNameBareMetalHost
		}, data: bootstrapv1.InfraMachineNotSupportedReason},
		{name: "infrastructure of others whose machine runs, moved here with its data", change: func(s *scope) {
			otherInfrastructure(s)
			s.machine.Spec.Bootstrap.DataSecretName, s.machine.Spec.ProviderID, s.infraEnv, s.secret = ptr.To("m-0"), "dev:///m-0", nil, own
		}, data: bootstrapv1.DataSecretAvailableReason, publish: true},
		{
			name: "another config's InfraEnv is joined first", change: func(s *scope) { s.infraEnv.OwnerReferences[0].UID = "other" },
			data: bootstrapv1.WaitingForDiscoveryIgnitionReason, making: true,
		},
		{
			name: "BOOT-26 the Secret was made and its name not published", change: func(s *scope) { s.secret = own },
			data: bootstrapv1.DataSecretAvailableReason, publish: true, secret: true,
		},
		{name: "BOOT-26 steady state, the URL rotates", change: func(s *scope) {
			published(s)
			s.secret = own
			s.infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = ignitionURL + "2"
		}, data: bootstrapv1.DataSecretAvailableReason},
		{name: "somebody deleted the Secret", change: published, data: bootstrapv1.DataSecretAvailableReason, remaking: true},
		{name: "somebody deleted the Secret and the InfraEnv", change: func(s *scope) {
			published(s)
			s.infraEnv = nil
		}, data: bootstrapv1.DataSecretAvailableReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := preparedUserData()
			tt.change(s)
			d := decide(s)
			g.Expect(d.dataSecret.Reason).To(Equal(tt.data), d.dataSecret.Message)
			g.Expect(d.fetch).To(Equal(tt.making || tt.remaking))
			g.Expect(d.publish).To(Equal(tt.publish || tt.making))
			g.Expect(d.secret).To(Equal(tt.secret || d.fetch))
			g.Expect(d.mediaURL).To(BeEmpty(), "the user's disk image is never touched")
			g.Expect(d.dataSecret.Message).NotTo(ContainSubstring("token"))
		})
	}
}

// TestIgnitionOfAnInfraEnvThatIsGone: the InfraEnv is gone, or was made anew, before the host has registered. What is published stays, and
// the condition says what to do.
func TestIgnitionOfAnInfraEnvThatIsGone(t *testing.T) {
	gone := func(s *scope) { s.secret.Annotations[bootstrapv1.InfraEnvUIDAnnotation] = "infraenv-of-before" }
	given := func(s *scope) { // Nothing is made any more for a host that was given the data.
		setHost(s)
		s.machine.Spec.Bootstrap.DataSecretName = ptr.To("m-0")
	}
	for name, tt := range map[string]struct {
		change  func(*scope)
		message string
	}{
		"the same InfraEnv":                    {func(*scope) {}, ""},
		"a Secret of an earlier version":       {func(s *scope) { s.secret.Annotations = nil }, ""},
		"an InfraEnv that is about to be made": {func(s *scope) { gone(s); s.infraEnv = nil }, ""},
		"no host has it yet":                   {gone, "delete the Secret"},
		"a host was given it":                  {func(s *scope) { gone(s); setHost(s) }, "delete Machine m-0"},
		"a machine of other infrastructure has": {func(s *scope) {
			gone(s)
			s.machine.Spec.ProviderID = "dev:///m-0"
		}, "delete Machine m-0"},
		"a host was given it, and the InfraEnv is not made anew": {func(s *scope) { given(s); s.infraEnv = nil }, "delete Machine m-0"},
		"a host was given it, and another config has the InfraEnv made anew": {func(s *scope) {
			gone(s)
			given(s)
			s.infraEnv.OwnerReferences[0].UID = "other"
		}, "delete Machine m-0"},
		"a machine of other infrastructure has, and the InfraEnv is not made anew": {func(s *scope) {
			otherInfrastructure(s)
			s.machine.Spec.ProviderID, s.machine.Spec.Bootstrap.DataSecretName, s.infraEnv = "dev:///m-0", ptr.To("m-0"), nil
		}, "delete Machine m-0"},
		"a host was given it, whose Machine is being deleted": {func(s *scope) {
			given(s)
			s.infraEnv, s.machine.DeletionTimestamp = nil, ptr.To(metav1.Now())
		}, ""},
		"a host was given it and has registered, and the InfraEnv is gone": {func(s *scope) {
			given(s)
			s.infraEnv = nil
			s.config.Annotations[bootstrapv1.AgentAnnotation] = "agent"
		}, ""},
		"a host was given it and is a Node, and the InfraEnv is gone": {func(s *scope) {
			given(s)
			s.infraEnv, s.machine.Status.NodeRef.Name = nil, "m-0"
		}, ""},
		"the host has registered": {func(s *scope) {
			gone(s)
			setHost(s)
			s.config.Annotations[bootstrapv1.AgentAnnotation] = "agent"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := preparedUserData()
			s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
			s.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Name: "m-0", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
				OwnerReferences: []metav1.OwnerReference{{UID: "config-uid", Controller: ptr.To(true)}},
				Annotations:     map[string]string{bootstrapv1.InfraEnvUIDAnnotation: "infraenv-uid"},
			}}
			tt.change(s)
			d := decide(s)
			g.Expect(d.dataSecret).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", bootstrapv1.DataSecretAvailableReason)))
			g.Expect(d.secret || d.fetch).To(BeFalse(), "BOOT-26")
			if tt.message == "" {
				g.Expect(d.dataSecret.Message).To(BeEmpty())
				return
			}
			g.Expect(d.dataSecret.Message).To(ContainSubstring(tt.message))
		})
	}
}

// setHost lets Metal3 choose a host for the infrastructure machine.
func setHost(s *scope) {
	s.infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "ns/host-0"})
}

type fakeIgnitions struct {
	urls      []string
	err       error
	forgotten int
}

func (f *fakeIgnitions) Lookup(_ context.Context, _ types.NamespacedName, url string) ([]byte, error) {
	f.urls = append(f.urls, url)
	return []byte("{}"), f.err
}

func (f *fakeIgnitions) Forget(types.NamespacedName) { f.forgotten++ }

func (f *fakeIgnitions) Events() <-chan event.GenericEvent { return nil }

// TestUserDataIsFetchedOnce: the server is asked in the pass that makes the Secret and in no other, and what comes of it is what the config
// says and publishes.
func TestUserDataIsFetchedOnce(t *testing.T) {
	down := &discovery.Error{Message: "the server does not answer"}
	published := func(s *scope) { s.config.Status.Initialization.DataSecretCreated = ptr.To(true) }
	liveISO := func(s *scope) {
		s.config.Spec.Boot.Mode, s.infraEnv.Status.ISODownloadURL = "", isoURL
		_ = metal3.SetLiveISO(s.infraMachine, isoURL)
	}
	once := []string{ignitionURL}
	for name, test := range map[string]struct {
		change  func(*scope)
		serves  error
		waits   bool
		creates error
		fetched []string
		made    int
		reason  string
	}{
		"made": {fetched: once, made: 1, reason: bootstrapv1.DataSecretAvailableReason},
		"made for infrastructure of others": {
			change: otherInfrastructure, fetched: once, made: 1, reason: bootstrapv1.DataSecretAvailableReason,
		},
		"made anew":                  {change: published, fetched: once, made: 1, reason: bootstrapv1.DataSecretAvailableReason},
		"the server does not answer": {serves: down, fetched: once, reason: bootstrapv1.DiscoveryIgnitionUnreachableReason},
		"the server serves something else": {
			serves: &discovery.Error{Invalid: true}, fetched: once, reason: bootstrapv1.DiscoveryIgnitionInvalidReason,
		},
		"not fetched yet": {
			serves: discovery.ErrPending, waits: true, fetched: once, reason: bootstrapv1.WaitingForDiscoveryIgnitionReason,
		},
		"not fetched yet, and something has been said before": {
			change: func(s *scope) {
				fact.Waiting(bootstrapv1.WaitingForDeletionHookReason, "").Set(s.config, bootstrapv1.DataSecretAvailableCondition)
			},
			serves: discovery.ErrPending, waits: true, fetched: once, reason: bootstrapv1.WaitingForDeletionHookReason,
		},
		"not fetched again yet": {
			change: published, serves: discovery.ErrPending, waits: true, fetched: once, reason: bootstrapv1.DataSecretAvailableReason,
		},
		"the server fails in an unknown way":  {serves: errors.New("boom"), fetched: once, reason: bootstrapv1.WaitingForDiscoveryIgnitionReason},
		"the server does not answer any more": {change: published, serves: down, fetched: once, reason: bootstrapv1.DataSecretAvailableReason},
		"the Secret cannot be written": {
			creates: errors.New("boom"), fetched: once, reason: bootstrapv1.WaitingForDiscoveryIgnitionReason,
		},
		"boot mode LiveISO": {change: liveISO, made: 1, reason: bootstrapv1.DataSecretAvailableReason},
		"boot mode LiveISO, and the Secret cannot be written": {change: liveISO, creates: errors.New("boom")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := preparedUserData()
			if test.change != nil {
				test.change(s)
			}
			before := ptr.Deref(s.config.Status.Initialization.DataSecretCreated, false)
			scheme := runtime.NewScheme()
			g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
			g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())
			c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if test.creates != nil {
						return test.creates
					}
					return c.Create(ctx, o, opts...)
				},
			}).Build()
			served := &fakeIgnitions{err: test.serves}
			r := &Reconciler{
				Client: c, Ignitions: served, Recorder: events.NewFakeRecorder(10), secrets: newSecrets(c, clock.RealClock{}),
			}
			d := decide(s)
			o := r.apply(t.Context(), s, d)
			g.Expect(served.urls).To(Equal(test.fetched))
			g.Expect(o.err() == nil).To(Equal(test.waits || test.serves == nil && test.creates == nil))

			setStatus(s, result{decision: &d, outcomes: o})
			g.Expect(conditions.GetReason(s.config, bootstrapv1.DataSecretAvailableCondition)).To(Equal(test.reason))
			g.Expect(conditions.GetMessage(s.config, bootstrapv1.DataSecretAvailableCondition)).NotTo(ContainSubstring("token"))
			g.Expect(ptr.Deref(s.config.Status.Initialization.DataSecretCreated, false)).To(Equal(test.made == 1 || before))
			list := &corev1.SecretList{}
			g.Expect(c.List(t.Context(), list)).To(Succeed())
			g.Expect(list.Items).To(HaveLen(test.made), "its name is published when it exists")
			for _, secret := range list.Items {
				uid := ""
				if boots(s) == bootstrapv1.BootModeUserData {
					uid = "infraenv-uid"
				}
				g.Expect(secret.Annotations[bootstrapv1.InfraEnvUIDAnnotation]).To(Equal(uid))
			}
		})
	}
}
