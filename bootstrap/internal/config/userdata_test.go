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
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/bootstrap/internal/discovery"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

const ignitionURL = "http://assisted.example.com/files?file_name=discovery.ign&api_key=token"

// preparedUserData is a scope in which only the discovery ignition is missing.
func preparedUserData() *scope {
	s := prepared()
	s.config.Spec.Boot.Mode = bootstrapv1.BootModeUserData
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
		fetch   bool
		publish bool
		secret  bool
	}{
		{name: "only the ignition is missing", change: func(*scope) {}, data: bootstrapv1.WaitingForDiscoveryIgnitionReason, fetch: true},
		{
			name: "the ignition is there", change: func(s *scope) { s.userData = []byte("{}") }, data: bootstrapv1.DataSecretAvailableReason,
			secret: true, publish: true,
		},
		{
			name: "the server does not answer", change: func(s *scope) { s.userDataErr = &discovery.Error{} },
			data: bootstrapv1.DiscoveryIgnitionUnreachableReason,
		},
		{
			name: "the server serves something else", change: func(s *scope) { s.userDataErr = &discovery.Error{Invalid: true} },
			data: bootstrapv1.DiscoveryIgnitionInvalidReason,
		},
		{
			name: "another error", change: func(s *scope) { s.userDataErr = errors.New("boom") },
			data: bootstrapv1.DiscoveryIgnitionUnreachableReason,
		},
		{name: "the template names a live ISO", change: func(s *scope) { setImage(s, "live-iso") }, data: bootstrapv1.BootModeMismatchReason},
		{name: "no URL yet, though there is an ISO", change: func(s *scope) {
			s.infraEnv.Status.ISODownloadURL, s.infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = isoURL, ""
		}, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "a stale URL with a failed image", change: func(s *scope) {
			s.infraEnv.Status.Conditions[0] = assisted.Condition{
				Type: assisted.ConditionImageCreated, Status: corev1.ConditionFalse, Reason: assisted.ReasonImageCreationError,
			}
		}, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "no hook yet", change: func(s *scope) { s.machine.Annotations = nil }, data: bootstrapv1.WaitingForDeletionHookReason},
		{name: "no infrastructure machine", change: func(s *scope) { s.infraMachine = nil }, data: bootstrapv1.WaitingForInfraMachineReason},
		{
			name: "infrastructure of others gets user data", change: otherInfrastructure, data: bootstrapv1.WaitingForDiscoveryIgnitionReason,
			fetch: true,
		},
		{name: "infrastructure of others gets its ignition", change: func(s *scope) {
			otherInfrastructure(s)
			s.userData = []byte("{}")
		}, data: bootstrapv1.DataSecretAvailableReason, secret: true, publish: true},
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
			data: bootstrapv1.WaitingForDiscoveryImageReason,
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
		{name: "somebody deleted the Secret", change: published, data: bootstrapv1.DataSecretAvailableReason, fetch: true},
		{name: "the deleted Secret's ignition is there", change: func(s *scope) {
			published(s)
			s.userData = []byte("{}")
		}, data: bootstrapv1.DataSecretAvailableReason, secret: true},
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
			g.Expect(d.fetch).To(Equal(tt.fetch))
			g.Expect(d.publish).To(Equal(tt.publish))
			g.Expect(d.secret).To(Equal(tt.secret))
			g.Expect(d.mediaURL).To(BeEmpty(), "the user's disk image is never touched")
			g.Expect(d.dataSecret.Message).NotTo(ContainSubstring("token"))
		})
	}
}

type fakeIgnitions struct {
	urls []string
	err  error
}

func (f *fakeIgnitions) Fetch(_ context.Context, url string) ([]byte, error) {
	f.urls = append(f.urls, url)
	return []byte("{}"), f.err
}

// TestObserveUserDataIsRare: the server is asked only when the pass needs what it serves.
func TestObserveUserDataIsRare(t *testing.T) {
	tests := map[string]struct {
		change func(*scope)
		want   []string
	}{
		"needed":               {func(*scope) {}, []string{ignitionURL}},
		"there is a Secret":    {func(s *scope) { s.secret = &corev1.Secret{} }, nil},
		"boot mode LiveISO":    {func(s *scope) { s.config.Spec.Boot.Mode = "" }, nil},
		"the config goes away": {func(s *scope) { s.config.DeletionTimestamp = ptr.To(metav1.Now()) }, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := preparedUserData()
			tt.change(s)
			fake := &fakeIgnitions{}
			(&Reconciler{Ignitions: fake}).observeUserData(t.Context(), s)
			g.Expect(fake.urls).To(Equal(tt.want))
			g.Expect(s.userDataErr).NotTo(HaveOccurred())
		})
	}
	g := NewWithT(t)
	s := preparedUserData()
	(&Reconciler{Ignitions: &fakeIgnitions{err: &discovery.Error{Message: "down"}}}).observeUserData(t.Context(), s)
	g.Expect(s.userDataErr).To(MatchError(ContainSubstring("InfraEnv demo-x: down")))
	g.Expect(s.userData).To(BeNil())
}
