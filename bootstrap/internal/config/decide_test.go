// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/internal/fact"
	"github.com/capi-openshift/agent-providers/internal/metal3"
)

const (
	isoURL         = "http://images.example.com/byapikey/token/minimal.iso"
	placeholderURL = "http://placeholder.invalid/x"
)

// hostOf is a host that refers to a Metal3Machine. It has no image while url is empty.
func hostOf(namespace, machine, url string) bmov1alpha1.BareMetalHost {
	host := bmov1alpha1.BareMetalHost{}
	host.Spec.ConsumerRef = &corev1.ObjectReference{
		APIVersion: metal3.InfrastructureGroup + "/v1beta2", Kind: metal3.MachineKind, Namespace: namespace, Name: machine,
	}
	if url != "" {
		host.Spec.Image = &bmov1alpha1.Image{URL: url}
	}
	return host
}

// presetHost gives the Metal3Machine the annotation that Metal3 writes when it has chosen a host, and the image of the template.
func presetHost(s *scope) {
	_ = metal3.SetLiveISO(s.infraMachine, placeholderURL)
	s.infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "ns/host-0"})
}

func demoCluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "demo", UID: "demo-uid"}}
}

// prepared is a scope in which all is ready to publish: InfraEnv with an image, the image on the Metal3Machine, the hook on the Machine.
func prepared() *scope {
	config := named("m-0", bootstrapv1.OpenshiftAssistedConfigSpec{})
	config.UID, config.Finalizers = "config-uid", []string{bootstrapv1.ConfigFinalizer}
	config.Annotations = map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m-0", Annotations: map[string]string{bootstrapv1.AgentDeletionHook: "x"}},
	}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: metal3.InfrastructureGroup, Kind: metal3.MachineKind, Name: "m-0",
	}
	cluster := demoCluster()
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	infraEnv := newInfraEnv(cluster, "demo-x", config, inputs{pullSecret: "pull-secret"})
	infraEnv.Status.ISODownloadURL = isoURL
	infraEnv.Status.Conditions = []assisted.Condition{{Type: assisted.ConditionImageCreated, Status: corev1.ConditionTrue}}
	m3m := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": metal3.InfrastructureGroup + "/v1beta2", "kind": metal3.MachineKind},
	}
	m3m.SetName("m-0")
	_ = metal3.SetLiveISO(m3m, isoURL)
	return &scope{
		config: config, first: config.DeepCopy(), read: config.DeepCopy(), machine: machine, hooked: true, cluster: cluster,
		inputs: inputs{pullSecret: "pull-secret"}, infraEnvName: "demo-x", infraEnv: infraEnv, infraMachine: m3m,
	}
}

func TestContractDecide(t *testing.T) {
	tests := []struct {
		name   string
		change func(*scope)
		image  string
		data   string
		check  func(*WithT, decision)
	}{
		{name: "all is ready", change: func(*scope) {}, image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) { g.Expect(d.secret && d.publish).To(BeTrue()) }},
		{name: "BOOT-32 no infrastructure", change: func(s *scope) { s.cluster.Status.Initialization.InfrastructureProvisioned = nil },
			image: bootstrapv1.WaitingForClusterInfrastructureReason, data: bootstrapv1.WaitingForClusterInfrastructureReason},
		{name: "the Machine goes before it has a medium", change: func(s *scope) {
			s.infraEnv, s.machine.DeletionTimestamp = nil, ptr.To(metav1.Now())
		}, image: bootstrapv1.MachineDeletingReason, data: bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) { g.Expect(d.infraEnv).To(Equal(infraEnvKeep)) }},
		{name: "the Cluster goes before the Machine has a medium", change: func(s *scope) {
			s.infraEnv, s.cluster.DeletionTimestamp, s.cluster.Status.Initialization.InfrastructureProvisioned = nil, ptr.To(metav1.Now()), nil
		}, image: bootstrapv1.ClusterDeletingReason, data: bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) { g.Expect(d.infraEnv).To(Equal(infraEnvKeep)) }},
		{name: "no CRDs", change: func(s *scope) { s.missingCRDs = []string{assisted.CRDInfraEnvs} },
			image: bootstrapv1.WaitingForCRDsReason, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "no pull secret", change: func(s *scope) { s.infraEnvName, s.infraEnv = "", nil },
			image: bootstrapv1.WaitingForPullSecretReason, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "the recorded InfraEnv is gone and nothing names its pull secret", change: func(s *scope) { s.infraEnv, s.pullSecret = nil, "" },
			image: bootstrapv1.WaitingForPullSecretReason, data: bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) { g.Expect(d.infraEnv).To(Equal(infraEnvKeep)) }},
		{name: "no ConfigMap of certificates", change: func(s *scope) {
			s.infraEnvName, s.infraEnv = "", nil
			s.trustBundleProblem = fact.Waiting(bootstrapv1.WaitingForTrustBundleReason, "")
		}, image: bootstrapv1.WaitingForTrustBundleReason, data: bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.retryAfter).To(Equal(trustBundleRetry), "nobody tells of the ConfigMap")
				g.Expect(d.infraEnv).To(Equal(infraEnvKeep))
			}},
		{name: "an assisted-service that does not know a field", change: func(s *scope) { s.config.Spec.NTPSources = []string{"192.0.2.1"} },
			image: bootstrapv1.InfraEnvNotSupportedReason, data: bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.image.Message).To(ContainSubstring("InfraEnv.spec.ntpSources:"))
			}},
		{name: "first pass records and creates", change: func(s *scope) { s.config.Annotations, s.infraEnv = nil, nil },
			image: bootstrapv1.InfraEnvPendingReason, data: bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.record).To(Equal("demo-x"))
				g.Expect(d.infraEnv).To(Equal(infraEnvCreate))
			}},
		{
			name: "another config's InfraEnv is joined, and its image handed over in the same pass",
			change: func(s *scope) {
				s.infraEnv.OwnerReferences[0].UID = "other"
				_ = metal3.SetLiveISO(s.infraMachine, placeholderURL)
			},
			image: bootstrapv1.InfraEnvPendingReason,
			data:  bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.infraEnv).To(Equal(infraEnvJoin))
				g.Expect(d.mediaURL).To(Equal(isoURL))
			},
		},
		{name: "an InfraEnv of somebody else", change: func(s *scope) { s.infraEnv.Labels = nil },
			image: bootstrapv1.InfraEnvConflictReason, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "the InfraEnv is being deleted", change: func(s *scope) { s.infraEnv.DeletionTimestamp = ptr.To(metav1.Now()) },
			image: bootstrapv1.InfraEnvDeletingReason, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "a stale URL with a failed image", change: func(s *scope) {
			s.infraEnv.Status.Conditions[0] = assisted.Condition{
				Type: assisted.ConditionImageCreated, Status: corev1.ConditionFalse, Reason: assisted.ReasonImageCreationError,
				Message: "no such OS image",
			}
		}, image: bootstrapv1.InfraEnvFailedReason, data: bootstrapv1.WaitingForDiscoveryImageReason},
		{name: "no infrastructure machine", change: func(s *scope) { s.infraMachine = nil },
			image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.WaitingForInfraMachineReason},
		{name: "a live ISO for infrastructure of others", change: func(s *scope) {
			s.machine.Spec.InfrastructureRef.Kind, s.infraMachine, s.infraEnv = "DevMachine", nil, nil
		}, image: bootstrapv1.InfraMachineNotSupportedReason, data: bootstrapv1.InfraMachineNotSupportedReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.infraEnv).To(Equal(infraEnvKeep), "no medium is made that nobody boots")
				g.Expect(d.dataSecret.Message).To(Equal("a live ISO and BareMetalHosts exist for Metal3Machines only, not for DevMachine m-0: " +
					"set spec.boot.mode: UserData, spec.hostIdentity: InfraEnv in the template and delete Machine m-0"))
			}},
		{name: "no hook yet", change: func(s *scope) { s.hooked = false },
			image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.WaitingForDeletionHookReason},
		{
			name:   "CORE-20 the ISO goes to the machine before the Secret's name goes out",
			change: func(s *scope) { _ = metal3.SetLiveISO(s.infraMachine, placeholderURL) },
			image:  bootstrapv1.InfraEnvPendingReason,
			data:   bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.mediaURL).To(Equal(isoURL))
				g.Expect(d.secret || d.publish).To(BeFalse())
			},
		},
		{name: "the URL rotates before a host is chosen", change: func(s *scope) {
			s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
			s.infraEnv.Status.ISODownloadURL = "http://new"
		}, image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) { g.Expect(d.mediaURL).To(Equal("http://new")) }},
		{name: "CORE-20 the URL rotates after a host was chosen", change: func(s *scope) {
			s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
			s.infraEnv.Status.ISODownloadURL = "http://new"
			s.hosts = []bmov1alpha1.BareMetalHost{hostOf("", "m-0", placeholderURL)}
		}, image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) { g.Expect(d.mediaURL).To(BeEmpty()) }},
		{
			name: "CORE-20 a user pinned a host: the ISO goes to the machine before the Secret's name goes out",
			change: func(s *scope) {
				_ = metal3.SetLiveISO(s.infraMachine, placeholderURL)
				s.hosts = []bmov1alpha1.BareMetalHost{hostOf("", "m-0", "")}
			},
			image: bootstrapv1.InfraEnvPendingReason,
			data:  bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.mediaURL).To(Equal(isoURL))
				g.Expect(d.publish).To(BeFalse())
			},
		},
		{
			name:   "a user pinned a host, and the machine has the ISO",
			change: func(s *scope) { s.hosts = []bmov1alpha1.BareMetalHost{hostOf("", "m-0", "")} },
			image:  bootstrapv1.DiscoveryImageReadyReason,
			data:   bootstrapv1.DataSecretAvailableReason,
			check:  func(g *WithT, d decision) { g.Expect(d.publish).To(BeTrue()) },
		},
		{
			name: "a user pinned a host, after the Secret's name went out",
			change: func(s *scope) {
				s.config.Status.Initialization.DataSecretCreated, s.machine.Spec.Bootstrap.DataSecretName = ptr.To(true), ptr.To("m-0")
				s.infraEnv.Status.ISODownloadURL = "http://new"
				s.hosts = []bmov1alpha1.BareMetalHost{hostOf("", "m-0", "")}
			},
			image: bootstrapv1.DiscoveryImageReadyReason,
			data:  bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) { g.Expect(d.mediaURL).To(Equal("http://new")) },
		},
		{
			name:   "CORE-20 a user named a host on the machine: its placeholder does not go out",
			change: presetHost,
			image:  bootstrapv1.DiscoveryImageReadyReason,
			data:   bootstrapv1.WaitingForDiscoveryImageReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.publish).To(BeFalse())
				g.Expect(d.mediaURL).To(BeEmpty())
				g.Expect(d.dataSecret.Message).To(ContainSubstring("annotation metal3.io/BareMetalHost of Metal3Machine m-0"))
			},
		},
		{
			name: "a user named a host on the machine, and the Secret's name went out",
			change: func(s *scope) {
				presetHost(s)
				s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
			},
			image: bootstrapv1.DiscoveryImageReadyReason,
			data:  bootstrapv1.DataSecretAvailableReason,
		},
		{
			name: "what was published is lost, and so is the host, and the URL has rotated",
			change: func(s *scope) {
				s.infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "ns/host-0"})
				s.machine.Spec.Bootstrap.DataSecretName, s.infraEnv.Status.ISODownloadURL = ptr.To("m-0"), "http://new"
			},
			image: bootstrapv1.DiscoveryImageReadyReason,
			data:  bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.mediaURL).To(BeEmpty())
				g.Expect(d.publish).To(BeTrue())
			},
		},
		{
			name: "a disk image, and a host that is named already",
			change: func(s *scope) {
				presetHost(s)
				s.config.Spec.Boot.Mode, s.infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = bootstrapv1.BootModeUserData, isoURL
				s.infraMachine.Object["spec"] = map[string]any{"image": map[string]any{"url": "http://disk", "diskFormat": "qcow2"}}
			},
			image: bootstrapv1.DiscoveryImageReadyReason,
			data:  bootstrapv1.WaitingForDiscoveryIgnitionReason,
			check: func(g *WithT, d decision) { g.Expect(d.publish).To(BeTrue()) },
		},
		{
			name: "a host that was installed before: its image stays",
			change: func(s *scope) {
				presetHost(s)
				s.hosts = []bmov1alpha1.BareMetalHost{hostOf("", "m-0", "http://user")}
			},
			image: bootstrapv1.DiscoveryImageReadyReason,
			data:  bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.mediaURL).To(BeEmpty())
				g.Expect(d.publish).To(BeTrue())
			},
		},
		{name: "a Secret of the name belongs to somebody else", change: func(s *scope) {
			s.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "other"}}}}
		}, image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.DataSecretConflictReason,
			check: func(g *WithT, d decision) { g.Expect(d.secret || d.publish).To(BeFalse()) }},
		{
			name:   "a user's Secret of the name, without an owner",
			change: func(s *scope) { s.secret = &corev1.Secret{Type: corev1.SecretTypeOpaque} }, image: bootstrapv1.DiscoveryImageReadyReason,
			data: bootstrapv1.DataSecretConflictReason, check: func(g *WithT, d decision) { g.Expect(d.secret || d.publish).To(BeFalse()) },
		},
		{name: "BOOT-22 the config's own Secret, restored without an owner", change: func(s *scope) {
			s.secret, s.machine.Spec.Bootstrap.DataSecretName = &corev1.Secret{Type: clusterv1.ClusterSecretType}, ptr.To("m-0")
		},
			image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) { g.Expect(d.secret && d.publish).To(BeTrue()) }},
		{
			name:   "a Secret of Cluster API's type that the config has not published",
			change: func(s *scope) { s.secret = &corev1.Secret{Type: clusterv1.ClusterSecretType} },
			image:  bootstrapv1.DiscoveryImageReadyReason,
			data:   bootstrapv1.DataSecretConflictReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.secret || d.publish).To(BeFalse())
				g.Expect(d.retryAfter).To(Equal(dataSecretRetry), "nobody tells that the user deleted it")
			},
		},
		{name: "a Secret of the name of another Cluster", change: func(s *scope) {
			s.machine.Spec.Bootstrap.DataSecretName = ptr.To("m-0")
			s.secret = &corev1.Secret{
				Type: clusterv1.ClusterSecretType, ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.ClusterNameLabel: "other"}},
			}
		}, image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.DataSecretConflictReason},
		{name: "BOOT-21 the Secret has lost its label", change: func(s *scope) {
			s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
			s.secret = &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: s.config.UID, Controller: ptr.To(true)}}},
			}
		}, image: bootstrapv1.DiscoveryImageReadyReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) { g.Expect(d.secret && !d.publish).To(BeTrue()) }},
		{name: "BOOT-34 moved with its data", change: func(s *scope) {
			s.infraEnv = nil
			s.infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "ns/host-0"})
			s.machine.Spec.Bootstrap.DataSecretName = ptr.To("m-0")
		}, image: bootstrapv1.DiscoveryImageNotNeededReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.publish).To(BeTrue())
				g.Expect(d.secret).To(BeFalse())
				g.Expect(d.record).To(BeEmpty())
				g.Expect(d.infraEnv).To(Equal(infraEnvKeep))
			}},
		{name: "BOOT-34 BOOT-22 moved with its data, of which the owner is lost", change: func(s *scope) {
			s.infraEnv, s.infraMachine = nil, nil
			s.machine.Spec.Bootstrap.DataSecretName = ptr.To("m-0")
			s.secret = &corev1.Secret{Type: clusterv1.ClusterSecretType}
		}, image: bootstrapv1.DiscoveryImageNotNeededReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.secret && d.publish).To(BeTrue())
				g.Expect(d.infraEnv).To(Equal(infraEnvKeep))
			}},
		{name: "BOOT-34 moved with its data, beside a later Machine with an InfraEnv of the same content", change: func(s *scope) {
			s.infraEnv.OwnerReferences[0].UID = "later"
			s.infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "ns/host-0"})
			s.machine.Spec.Bootstrap.DataSecretName = ptr.To("m-0")
		}, image: bootstrapv1.DiscoveryImageNotNeededReason, data: bootstrapv1.DataSecretAvailableReason,
			check: func(g *WithT, d decision) {
				g.Expect(d.infraEnv).To(Equal(infraEnvKeep))
				g.Expect(d.mediaURL).To(BeEmpty())
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			tt.change(s)
			d := decide(s)
			g.Expect(d.image.Reason).To(Equal(tt.image), d.image.Message)
			g.Expect(d.dataSecret.Reason).To(Equal(tt.data), d.dataSecret.Message)
			if tt.check != nil {
				tt.check(g, d)
			}
		})
	}
}

func TestContractDecideDeletion(t *testing.T) {
	gone := func(s *scope) { s.machine = nil }
	tests := []struct {
		name   string
		change func(*scope)
		reason string
		leave  bool
		finish bool
	}{
		{name: "BOOT-35 the Machine lives", change: func(*scope) {}, reason: bootstrapv1.WaitingForMachineReason},
		{name: "the Machine is gone and the Agent is not", change: func(s *scope) {
			gone(s)
			s.claimed = []assisted.Agent{{}}
		}, reason: bootstrapv1.WaitingForAgentDeletionReason},
		{name: "the Machine is being deleted", change: func(s *scope) { s.machine.DeletionTimestamp = ptr.To(metav1.Now()) },
			reason: bootstrapv1.WaitingForInfraEnvDeletionReason, leave: true},
		{
			name: "BOOT-35 owners vanished", change: func(s *scope) { s.machine, s.cluster = nil, nil },
			reason: bootstrapv1.WaitingForInfraEnvDeletionReason, leave: true,
		},
		{name: "the InfraEnv is being deleted", change: func(s *scope) {
			gone(s)
			s.infraEnv.DeletionTimestamp = ptr.To(metav1.Now())
		}, reason: bootstrapv1.WaitingForInfraEnvDeletionReason},
		{name: "another config uses the InfraEnv and this one left", change: func(s *scope) {
			gone(s)
			s.infraEnv.OwnerReferences[0].UID = "other"
		}, reason: bootstrapv1.DeletionCompletedReason, finish: true},
		{name: "the InfraEnv is gone", change: func(s *scope) {
			gone(s)
			s.infraEnv = nil
		}, reason: bootstrapv1.DeletionCompletedReason, finish: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			tt.change(s)
			d := decideDeletion(s)
			g.Expect(d.deleting.Reason).To(Equal(tt.reason))
			g.Expect(d.leave).To(Equal(tt.leave))
			g.Expect(d.finish).To(Equal(tt.finish))
		})
	}
}
