// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const (
	mac0 = "00:00:5e:00:53:00"
	mac1 = "00:00:5e:00:53:01"
)

func networkData(mac string) map[string][]byte {
	return map[string][]byte{"nmstate": []byte("interfaces: [{name: eno1, type: ethernet, mac-address: '" + mac + "'}]")}
}

// unauthenticatedURL is the URL of an image with AUTH_TYPE=none.
const unauthenticatedURL = "http://image-service/byid/4f2/4.20/x86_64/minimal.iso"

// networked is prepared with two free hosts that bring network data, the second without an NMStateConfig, and a third one without network
// data.
func networked() *scope {
	s := prepared()
	s.config.Namespace, s.config.Spec.StaticNetworking.Source = "ns", bootstrapv1.StaticNetworkingBareMetalHosts
	s.infraEnv.Namespace, s.infraEnv.UID = "ns", "infra-env-uid"
	s.infraEnv.Spec.NMStateConfigLabelSelector = nmstateSelector(s.cluster.UID, s.infraEnv.Name)
	s.infraMachine.SetNamespace("ns")
	for _, name := range []string{"host-0", "host-1", "host-2"} {
		host := bmov1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		host.Spec.PreprovisioningNetworkDataName = name
		s.hosts = append(s.hosts, host)
	}
	s.hosts[2].Spec.PreprovisioningNetworkDataName = ""
	s.networks = []hostNetwork{
		{host: &s.hosts[0], secret: "host-0", data: networkData(mac0), read: true},
		{host: &s.hosts[1], secret: "host-1", data: networkData(mac1), read: true},
	}
	existing, err := s.networks[0].config(s)
	if err != nil {
		panic(err)
	}
	existing.UID, existing.OwnerReferences = "nmstate-uid", []metav1.OwnerReference{infraEnvReference(s.infraEnv)}
	s.nmstates = []assisted.NMStateConfig{*existing}
	return s
}

// complete gives the second host its NMStateConfig too.
func complete(s *scope) {
	config, err := s.networks[1].config(s)
	if err != nil {
		panic(err)
	}
	config.OwnerReferences = []metav1.OwnerReference{infraEnvReference(s.infraEnv)}
	s.nmstates = append(s.nmstates, *config)
}

// taken has a Metal3Machine that boots the host.
func taken(host *bmov1alpha1.BareMetalHost, machine string) {
	host.Spec.ConsumerRef = hostOf("ns", machine, "").Spec.ConsumerRef
	host.Spec.Image = &bmov1alpha1.Image{URL: isoURL}
}

// pinned is a host that a user has chosen for the Metal3Machine of the scope.
func pinned(host *bmov1alpha1.BareMetalHost) {
	host.Spec.ConsumerRef = hostOf("ns", "m-0", "").Spec.ConsumerRef
}

func names(configs []assisted.NMStateConfig) []string {
	list := []string{}
	for i := range configs {
		list = append(list, configs[i].Name)
	}
	return list
}

func TestDecideNetworks(t *testing.T) {
	tests := []struct {
		name   string
		change func(*scope)
		image  string
		text   string
		write  []string
		remove []string
		adopt  []string
		check  func(*WithT, decision)
	}{
		{
			name: "a host without NMStateConfig: nothing is handed out", change: func(*scope) {}, image: bootstrapv1.NetworkDataPendingReason,
			write: []string{"demo-x-host-1"}, check: func(g *WithT, d decision) { g.Expect(d.publish || d.mediaURL != "").To(BeFalse()) },
		},
		{
			name: "not asked for", change: func(s *scope) { s.config.Spec.StaticNetworking.Source = "" },
			image: bootstrapv1.DiscoveryImageReadyReason,
		},
		{name: "all are there", change: complete, image: bootstrapv1.DiscoveryImageReadyReason,
			check: func(g *WithT, d decision) { g.Expect(d.publish).To(BeTrue()) }},
		{
			name: "before the InfraEnv: both in one pass", change: func(s *scope) { s.infraEnv, s.nmstates = nil, nil },
			image: bootstrapv1.InfraEnvPendingReason, write: []string{"demo-x-host-0", "demo-x-host-1"},
			check: func(g *WithT, d decision) { g.Expect(d.infraEnv).To(Equal(infraEnvCreate)) },
		},
		{
			name:   "no InfraEnv without them",
			change: func(s *scope) { s.infraEnv, s.networks[1].data = nil, nil },
			image:  bootstrapv1.NetworkDataMissingReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.infraEnv).To(Equal(infraEnvKeep))
				g.Expect(d.retryAfter).To(Equal(networkRetry))
			},
		},
		{
			name: "a Secret is missing", change: func(s *scope) { s.networks[1].data = nil }, image: bootstrapv1.NetworkDataMissingReason,
			text: "BareMetalHost host-1: Secret host-1 does not exist",
		},
		{name: "a Secret of a host that another has is missing", change: func(s *scope) {
			s.networks[1].data = nil
			taken(&s.hosts[1], "m-9")
		}, image: bootstrapv1.DiscoveryImageReadyReason},
		{
			name: "OpenStack's form", change: func(s *scope) { s.networks[1].data = map[string][]byte{"networkData": []byte(`{"links": []}`)} },
			image: bootstrapv1.NetworkDataInvalidReason,
			text:  "BareMetalHost host-1: Secret host-1: key networkData: it is in the form of OpenStack's",
		},
		{name: "an unknown device", change: func(s *scope) {
			s.networks[1].data = map[string][]byte{"nmstate": []byte("interfaces: [{name: eno9}]")}
		},
			image: bootstrapv1.NetworkDataInvalidReason, text: "MAC address of eno9 is not known"},
		{name: "one device of two hosts", change: func(s *scope) { s.networks[1].data = networkData(mac0) },
			image: bootstrapv1.NetworkDataInvalidReason, text: "BareMetalHosts host-0 and host-1 is for one MAC address, " + mac0},
		{name: "one device of two hosts, one of them another template's", change: func(s *scope) {
			complete(s)
			s.networks = s.networks[1:]
			s.networks[0].data = networkData(mac0)
		}, image: bootstrapv1.NetworkDataInvalidReason, text: "is for one MAC address"},
		{
			name: "a selector that cannot be read", change: func(s *scope) { s.networksProblem = errors.New("its selector cannot be read") },
			image: bootstrapv1.NetworkDataInvalidReason, text: "Metal3Machine m-0",
		},
		{
			name: "no infrastructure machine", change: func(s *scope) { s.infraMachine, s.networks, s.nmstates = nil, nil, nil },
			image: bootstrapv1.WaitingForInfraMachineReason,
		},
		{
			name: "another infrastructure", change: func(s *scope) { s.machine.Spec.InfrastructureRef.Kind, s.infraMachine = "DevMachine", nil },
			image: bootstrapv1.InfraMachineNotSupportedReason,
		},
		{name: "a free host's data changed", change: func(s *scope) {
			complete(s)
			s.networks[0].data = networkData("00:00:5e:00:53:aa")
		}, image: bootstrapv1.NetworkDataPendingReason, write: []string{"demo-x-host-0"}},
		{name: "a taken host's data changed", change: func(s *scope) {
			complete(s)
			s.networks[0].data = networkData("00:00:5e:00:53:aa")
			taken(&s.hosts[0], "m-9")
		}, image: bootstrapv1.DiscoveryImageReadyReason},
		{name: "a host is gone", change: func(s *scope) {
			complete(s)
			s.hosts, s.networks = s.hosts[1:], s.networks[1:]
		}, image: bootstrapv1.NetworkDataPendingReason, remove: []string{"demo-x-host-0"}},
		{name: "a host has no network data any more", change: func(s *scope) {
			complete(s)
			s.hosts[0].Spec.PreprovisioningNetworkDataName, s.networks = "", s.networks[1:]
		}, image: bootstrapv1.NetworkDataPendingReason, remove: []string{"demo-x-host-0"}},
		{name: "another template's host stays", change: func(s *scope) {
			complete(s)
			s.networks = s.networks[1:]
		}, image: bootstrapv1.DiscoveryImageReadyReason},
		{name: "made before the InfraEnv: given to it", change: func(s *scope) {
			complete(s)
			s.nmstates[1].OwnerReferences = []metav1.OwnerReference{userReference(s.config)}
		}, image: bootstrapv1.DiscoveryImageReadyReason, adopt: []string{"demo-x-host-1"}},
		{name: "the image is older", change: func(s *scope) {
			complete(s)
			s.nmstates[1].Annotations[bootstrapv1.NMStateImageAnnotation] = imageMark(s.infraEnv)
		}, image: bootstrapv1.NetworkDataPendingReason, text: "NMStateConfig demo-x-host-1",
			check: func(g *WithT, d decision) { g.Expect(d.publish || d.mediaURL != "").To(BeFalse()) }},
		{name: "the image is newer", change: func(s *scope) {
			complete(s)
			s.nmstates[1].Annotations[bootstrapv1.NMStateImageAnnotation] = imageMark(s.infraEnv)
			s.infraEnv.Status.CreatedTime = "2026-01-01T00:00:00Z"
		}, image: bootstrapv1.DiscoveryImageReadyReason},
		{name: "the image keeps its URL and was made without them", change: func(s *scope) {
			s.infraEnv.Status.ISODownloadURL = unauthenticatedURL
			complete(s)
			noteImage(s, &s.nmstates[1])
		}, image: bootstrapv1.NetworkDataPendingReason, text: "NMStateConfig demo-x-host-1",
			check: func(g *WithT, d decision) { g.Expect(d.retryAfter).To(Equal(imageCooldown), "no event tells") }},
		{name: "the image keeps its URL and had the time to be made with them", change: func(s *scope) {
			s.infraEnv.Status.ISODownloadURL = unauthenticatedURL
			_ = metal3.SetLiveISO(s.infraMachine, unauthenticatedURL)
			complete(s)
			noteImage(s, &s.nmstates[1])
			s.now = s.now.Add(imageCooldown)
		}, image: bootstrapv1.DiscoveryImageReadyReason},
		{name: "assisted-service refuses them", change: func(s *scope) {
			s.infraEnv.Status.Conditions[0] = assisted.Condition{
				Type: assisted.ConditionImageCreated, Status: corev1.ConditionFalse, Reason: assisted.ReasonImageCreationError,
				Message: "bad network",
			}
		}, image: bootstrapv1.InfraEnvFailedReason, text: "bad network", write: []string{"demo-x-host-1"}},
		{
			name: "DESIGN D4: a host is chosen, and nothing is touched any more", change: func(s *scope) { taken(&s.hosts[0], "m-0") },
			image: bootstrapv1.DiscoveryImageReadyReason,
		},
		{
			name: "a user pinned a host without NMStateConfig", change: func(s *scope) { pinned(&s.hosts[1]) },
			image: bootstrapv1.NetworkDataPendingReason, write: []string{"demo-x-host-1"},
			check: func(g *WithT, d decision) { g.Expect(d.publish || d.mediaURL != "").To(BeFalse()) },
		},
		{
			name: "a user pinned a host, and its Secret is missing",
			change: func(s *scope) {
				s.networks[1].data = nil
				pinned(&s.hosts[1])
			},
			image: bootstrapv1.NetworkDataMissingReason, text: "BareMetalHost host-1: Secret host-1 does not exist",
		},
		{
			name: "a pinned host's data changed",
			change: func(s *scope) {
				complete(s)
				s.networks[0].data = networkData("00:00:5e:00:53:aa")
				pinned(&s.hosts[0])
			},
			image: bootstrapv1.NetworkDataPendingReason, write: []string{"demo-x-host-0"},
		},
		{
			name:   "the medium is out and a host is added",
			change: func(s *scope) { s.config.Status.Initialization.DataSecretCreated = ptr.To(true) }, image: bootstrapv1.NetworkDataPendingReason,
			write: []string{"demo-x-host-1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := networked()
			tt.change(s)
			d := decide(s)
			g.Expect(d.image.Reason).To(Equal(tt.image), d.image.Message)
			g.Expect(d.image.Message).To(ContainSubstring(tt.text))
			g.Expect(names(d.networks.write)).To(Equal(append([]string{}, tt.write...)))
			g.Expect(names(d.networks.remove)).To(Equal(append([]string{}, tt.remove...)))
			g.Expect(names(d.networks.adopt)).To(Equal(append([]string{}, tt.adopt...)))
			if tt.check != nil {
				tt.check(g, d)
			}
		})
	}
}

// TestNetworksAreMade applies what is decided, and looks again: after as few passes as possible nothing is left to do.
func TestNetworksAreMade(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	s := networked()
	infraEnv := s.infraEnv
	s.infraEnv, s.nmstates = nil, nil
	scheme := runtime.NewScheme()
	g.Expect(assisted.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	secretsOfHosts := []client.Object{}
	for i, mac := range []string{mac0, mac1} {
		secretsOfHosts = append(
			secretsOfHosts, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: s.hosts[i].Name}, Data: networkData(mac)},
		)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secretsOfHosts...).Build()
	clock := clocktesting.NewFakeClock(time.Now())
	r := &Reconciler{Client: c, Recorder: events.NewFakeRecorder(10), secrets: newSecrets(c, clock)}
	pass := func() decision {
		s.networks, s.nmstates = nil, nil
		g.Expect(r.observeNetworks(ctx, s)).To(Succeed())
		d := decide(s)
		g.Expect(r.applyNetworks(ctx, s, d.networks)).To(Succeed())
		return d
	}
	g.Expect(names(pass().networks.write)).To(Equal([]string{"demo-x-host-0", "demo-x-host-1"}))

	s.infraEnv = infraEnv
	g.Expect(names(pass().networks.adopt)).To(Equal([]string{"demo-x-host-0", "demo-x-host-1"}))
	d := pass()
	g.Expect(d.image.Reason).To(Equal(bootstrapv1.DiscoveryImageReadyReason), d.image.Message)
	g.Expect(d.networks).To(Equal(networkPlan{}))
	got := &assisted.NMStateConfig{}
	g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "demo-x-host-0"}, got)).To(Succeed())
	g.Expect(got.Labels).
		To(Equal(newInfraEnv(s.cluster, "demo-x", s.config, inputs{pullSecret: "p"}).Spec.NMStateConfigLabelSelector.MatchLabels),
			"the InfraEnv selects it")
	g.Expect(got.OwnerReferences).To(Equal([]metav1.OwnerReference{infraEnvReference(infraEnv)}))
	g.Expect(got.Spec.Interfaces).To(Equal([]assisted.NMStateInterface{{Name: "eno1", MACAddress: mac0}}))
	g.Expect(string(got.Spec.Config.Raw)).To(MatchJSON(`{"interfaces":[{"name":"eno1","type":"ethernet","mac-address":"` + mac0 + `"}]}`))

	secret := &corev1.Secret{}
	g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "host-0"}, secret)).To(Succeed())
	secret.Data = networkData("00:00:5e:00:53:aa")
	g.Expect(c.Update(ctx, secret)).To(Succeed())
	g.Expect(pass().networks.empty()).To(BeTrue(), "it was read a moment ago")
	clock.Step(networkRetry + 1)
	g.Expect(names(pass().networks.write)).To(Equal([]string{"demo-x-host-0"}))
	d = pass()
	g.Expect(d.image.Reason).To(Equal(bootstrapv1.NetworkDataPendingReason), "the image is from before")
	g.Expect(d.networks.empty()).To(BeTrue())
	s.infraEnv.Status.ISODownloadURL = "http://rotated"
	d = pass()
	g.Expect(d.mediaURL).To(Equal(s.infraEnv.Status.ISODownloadURL), d.image.Message)

	s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
	g.Expect(c.Delete(ctx, secret)).To(Succeed())
	d = pass()
	g.Expect(d.image.Reason).To(Equal(bootstrapv1.DiscoveryImageReadyReason), "a Secret is not read again when the medium is out")

	s.hosts = s.hosts[1:]
	g.Expect(names(pass().networks.remove)).To(Equal([]string{"demo-x-host-0"}))
	g.Expect(pass().networks).To(Equal(networkPlan{}))
}

// TestNetworksStayInTheirNamespace: assisted-service looks for NMStateConfigs in all namespaces, and two Clusters of one name and content
// have InfraEnvs of one name.
func TestNetworksStayInTheirNamespace(t *testing.T) {
	madeBy := func(uid types.UID) (labels.Selector, labels.Set) {
		s := networked()
		s.cluster.UID, s.infraEnv = uid, nil
		config, err := s.networks[0].config(s)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		selector := newInfraEnv(s.cluster, s.infraEnvName, s.config, s.inputs).Spec.NMStateConfigLabelSelector
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, value := range config.Labels {
			NewWithT(t).Expect(validation.IsValidLabelValue(value)).To(BeEmpty())
		}
		return parsed, config.Labels
	}
	g := NewWithT(t)
	oneSelector, oneLabels := madeBy("one")
	otherSelector, otherLabels := madeBy("other")
	g.Expect(oneSelector.Matches(oneLabels)).To(BeTrue())
	g.Expect(otherSelector.Matches(otherLabels)).To(BeTrue())
	g.Expect(oneSelector.Matches(otherLabels) || otherSelector.Matches(oneLabels)).To(BeFalse(), "one namespace gets the other's networks")

	first := labels.SelectorFromSet(labels.Set{bootstrapv1.NMStateInfraEnvLabel: "demo-x"})
	g.Expect(first.Matches(oneLabels)).To(BeFalse(), "nor does an InfraEnv of the first version elsewhere")
}

// TestNetworksOfAnEarlierInfraEnv: what an InfraEnv selects stays as long as it lives, and what is labelled otherwise is taken over.
func TestNetworksOfAnEarlierInfraEnv(t *testing.T) {
	g := NewWithT(t)
	s := networked()
	s.infraEnv.Spec.NMStateConfigLabelSelector.MatchLabels[bootstrapv1.NMStateInfraEnvLabel] = "demo-x"
	g.Expect(nmstateLabel(s)).To(Equal("demo-x"), "an InfraEnv of the first version selects its name")
	g.Expect(names(decide(s).networks.write)).To(Equal([]string{"demo-x-host-0", "demo-x-host-1"}), "its selector is what they have to match")

	s = networked()
	s.nmstates[0].Labels[bootstrapv1.NMStateInfraEnvLabel] = "demo-x"
	g.Expect(madeFor(s, &s.nmstates[0])).To(BeTrue(), "its name is in the way")
	written := decide(s).networks.write
	g.Expect(names(written)).To(ContainElement("demo-x-host-0"))
	g.Expect(written[0].Labels).To(Equal(s.infraEnv.Spec.NMStateConfigLabelSelector.MatchLabels))
	s.nmstates[0].Name = "demo-y-host-0"
	g.Expect(madeFor(s, &s.nmstates[0])).To(BeFalse(), "of another InfraEnv")
}

func TestNMStateName(t *testing.T) {
	g := NewWithT(t)
	g.Expect(nmstateName("demo-x", "host-0")).To(Equal("demo-x-host-0"))
	long := nmstateName("demo-x", strings.Repeat("h", 250))
	g.Expect(len(long)).To(BeNumerically("<=", 253))
	g.Expect(long).NotTo(Equal(nmstateName("demo-x", strings.Repeat("h", 251))))
}
