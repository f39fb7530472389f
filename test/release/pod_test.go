// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
)

// shipped is what a release says about its pod.
type shipped struct {
	namespace  *corev1.Namespace
	account    *corev1.ServiceAccount
	deployment *appsv1.Deployment
	disruption *policyv1.PodDisruptionBudget
	network    *networkingv1.NetworkPolicy
}

func newShipped(t *testing.T, p provider) shipped {
	t.Helper()
	objects := installed(t, p, "").Objs()
	return shipped{
		namespace:  only[corev1.Namespace](t, objects, "Namespace"),
		account:    only[corev1.ServiceAccount](t, objects, "ServiceAccount"),
		deployment: only[appsv1.Deployment](t, objects, "Deployment"),
		disruption: only[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget"),
		network:    only[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy"),
	}
}

func (s shipped) copy() shipped {
	return shipped{s.namespace.DeepCopy(), s.account.DeepCopy(), s.deployment.DeepCopy(), s.disruption.DeepCopy(), s.network.DeepCopy()}
}

func (s shipped) pod() *corev1.PodSpec              { return &s.deployment.Spec.Template.Spec }
func (s shipped) container() *corev1.Container      { return &s.pod().Containers[0] }
func (s shipped) security() *corev1.SecurityContext { return s.container().SecurityContext }

// selects reports whether a selector finds the pod and says which provider's.
func (s shipped) selects(selector *metav1.LabelSelector) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(s.deployment.Spec.Template.Labels)) && selector.MatchLabels[clusterctlProviderLabel] != ""
}

// hardening is what the pod may not lose: whether it is there, and a change that takes it away. Every change must be noticed.
var hardening = []struct {
	name  string
	holds func(shipped) bool
	lose  func(shipped)
}{
	{"the namespace enforces the restricted standard",
		func(s shipped) bool { return s.namespace.Labels["pod-security.kubernetes.io/enforce"] == "restricted" },
		func(s shipped) { delete(s.namespace.Labels, "pod-security.kubernetes.io/enforce") }},
	{"it does not run as root",
		func(s shipped) bool { return ptr.Deref(s.pod().SecurityContext.RunAsNonRoot, false) },
		func(s shipped) { s.pod().SecurityContext.RunAsNonRoot = nil }},
	{"it names no user, but runs as the image's: OpenShift refuses one that is not of the namespace's range",
		func(s shipped) bool { return s.security().RunAsUser == nil && s.pod().SecurityContext.RunAsUser == nil },
		func(s shipped) { s.security().RunAsUser = new(int64(65532)) }},
	{"it names no group",
		func(s shipped) bool {
			return s.security().RunAsGroup == nil && s.pod().SecurityContext.RunAsGroup == nil
		},
		func(s shipped) { s.pod().SecurityContext.RunAsGroup = new(int64(65532)) }},
	{"its system calls are limited",
		func(s shipped) bool {
			profile := s.pod().SecurityContext.SeccompProfile
			return profile != nil && profile.Type == corev1.SeccompProfileTypeRuntimeDefault
		},
		func(s shipped) { s.pod().SecurityContext.SeccompProfile = nil }},
	{"it gains no privileges",
		func(s shipped) bool { return !ptr.Deref(s.security().AllowPrivilegeEscalation, true) },
		func(s shipped) { s.security().AllowPrivilegeEscalation = nil }},
	{"it is not privileged",
		func(s shipped) bool { return !ptr.Deref(s.security().Privileged, true) },
		func(s shipped) { s.security().Privileged = nil }},
	{"it has no capabilities",
		func(s shipped) bool {
			capabilities := s.security().Capabilities
			return capabilities != nil && len(capabilities.Drop) == 1 && capabilities.Drop[0] == "ALL" && len(capabilities.Add) == 0
		},
		func(s shipped) { s.security().Capabilities = nil }},
	{"its root file system is read-only",
		func(s shipped) bool { return ptr.Deref(s.security().ReadOnlyRootFilesystem, false) },
		func(s shipped) { s.security().ReadOnlyRootFilesystem = nil }},
	{"it shares nothing with its host",
		func(s shipped) bool {
			return !s.pod().HostNetwork && !s.pod().HostPID && !s.pod().HostIPC && len(s.pod().Volumes) == 1 && s.pod().Volumes[0].Secret != nil
		},
		func(s shipped) { s.pod().HostNetwork = true }},
	{"it cannot write to its only volume",
		func(s shipped) bool {
			return len(s.container().VolumeMounts) == 1 && s.container().VolumeMounts[0].ReadOnly
		},
		func(s shipped) { s.container().VolumeMounts[0].ReadOnly = false }},
	{"it asks for processor time",
		func(s shipped) bool { return !s.container().Resources.Requests.Cpu().IsZero() },
		func(s shipped) { delete(s.container().Resources.Requests, corev1.ResourceCPU) }},
	{"it asks for memory",
		func(s shipped) bool { return !s.container().Resources.Requests.Memory().IsZero() },
		func(s shipped) { delete(s.container().Resources.Requests, corev1.ResourceMemory) }},
	{"its memory is limited",
		func(s shipped) bool { return !s.container().Resources.Limits.Memory().IsZero() },
		func(s shipped) { delete(s.container().Resources.Limits, corev1.ResourceMemory) }},
	{"no other pod of its namespace gets its token",
		func(s shipped) bool { return !ptr.Deref(s.account.AutomountServiceAccountToken, true) },
		func(s shipped) { s.account.AutomountServiceAccountToken = nil }},
	{"it gets its token",
		func(s shipped) bool { return ptr.Deref(s.pod().AutomountServiceAccountToken, false) },
		func(s shipped) { s.pod().AutomountServiceAccountToken = nil }},
	{"it is not told of other Services",
		func(s shipped) bool { return !ptr.Deref(s.pod().EnableServiceLinks, true) },
		func(s shipped) { s.pod().EnableServiceLinks = nil }},
	{"it is as important as the cluster",
		func(s shipped) bool { return s.pod().PriorityClassName == "system-cluster-critical" },
		func(s shipped) { s.pod().PriorityClassName = "" }},
	{"it may run on control-plane Nodes",
		func(s shipped) bool {
			tolerations := s.pod().Tolerations
			return len(tolerations) == 1 && tolerations[0].Key == "node-role.kubernetes.io/control-plane"
		},
		func(s shipped) { s.pod().Tolerations = nil }},
	{"its replicas are spread over Nodes",
		func(s shipped) bool {
			spread := s.pod().TopologySpreadConstraints
			return len(spread) == 1 && spread[0].TopologyKey == corev1.LabelHostname && s.selects(spread[0].LabelSelector)
		},
		func(s shipped) { s.pod().TopologySpreadConstraints = nil }},
	{"drains take one replica at a time, and are never blocked",
		func(s shipped) bool {
			return s.disruption.Spec.MinAvailable == nil &&
				ptr.Deref(s.disruption.Spec.MaxUnavailable, intstr.IntOrString{}) == intstr.FromInt32(1) &&
				s.selects(s.disruption.Spec.Selector)
		},
		func(s shipped) { s.disruption.Spec.Selector = &metav1.LabelSelector{} }},
	{"the network policy is for both directions",
		func(s shipped) bool { return sets.New(s.network.Spec.PolicyTypes...).HasAll("Ingress", "Egress") },
		func(s shipped) { s.network.Spec.PolicyTypes = s.network.Spec.PolicyTypes[:1] }},
	{"the network policy is for its pods",
		func(s shipped) bool { return s.selects(&s.network.Spec.PodSelector) },
		func(s shipped) { s.network.Spec.PodSelector = metav1.LabelSelector{} }},
	{"only its own ports can be reached",
		func(s shipped) bool {
			own := sets.New[string]()
			for _, port := range s.container().Ports {
				own.Insert(string(port.Protocol) + " " + port.Name)
			}
			in := s.network.Spec.Ingress
			return len(in) == 1 && len(in[0].From) == 0 && portsOf(in[0].Ports).Equal(own)
		},
		func(s shipped) {
			s.network.Spec.Ingress = append(s.network.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		}},
	{"it reaches DNS and API servers only",
		func(s shipped) bool {
			reached := sets.New[string]()
			for _, rule := range s.network.Spec.Egress {
				if len(rule.Ports) == 0 {
					return false // Every port.
				}
				reached = reached.Union(portsOf(rule.Ports))
			}
			return reached.Equal(sets.New("UDP 53", "TCP 53", "UDP 5353", "TCP 5353", "TCP 443", "TCP 6443"))
		},
		func(s shipped) {
			s.network.Spec.Egress = append(s.network.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
		}},
}

func portsOf(ports []networkingv1.NetworkPolicyPort) sets.Set[string] {
	names := sets.New[string]()
	for _, port := range ports {
		names.Insert(string(ptr.Deref(port.Protocol, "")) + " " + ptr.To(ptr.Deref(port.Port, intstr.IntOrString{})).String())
	}
	return names
}

// lost returns the names of what the pod has not.
func lost(s shipped) []string {
	var names []string
	for _, h := range hardening {
		if !h.holds(s) {
			names = append(names, h.name)
		}
	}
	return names
}

// TestHardening: the released pod has all of it, and a release that has lost one is noticed.
func TestHardening(t *testing.T) {
	forEachProvider(t, func(t *testing.T, p provider) {
		g := NewWithT(t)
		s := newShipped(t, p)
		g.Expect(lost(s)).To(BeEmpty())
		for _, h := range hardening {
			changed := s.copy()
			h.lose(changed)
			g.Expect(lost(changed)).To(Equal([]string{h.name}))
		}
	})
}

// TestAdmitted: a real API server takes every object of the release, and its namespace takes the pod as it is, and not with less.
func TestAdmitted(t *testing.T) {
	g := NewWithT(t)
	cp, err := localcontrolplane.Start(t.Context(), localcontrolplane.Options{Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(cp.Stop()).To(Succeed()) }()
	g.Expect(cp.InstallCRDs(t.Context(), localcontrolplane.CRDsCertManager)).To(Succeed())
	api, err := client.New(cp.Admin(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	forEachProvider(t, func(t *testing.T, p provider) {
		g := NewWithT(t)
		for _, object := range installed(t, p, "").Objs() {
			g.Expect(api.Create(t.Context(), &object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		s := newShipped(t, p)
		g.Expect(api.Create(t.Context(), s.newPod(), client.DryRunAll)).To(Succeed())
		for _, lose := range []func(){
			func() { s.security().AllowPrivilegeEscalation = nil },
			func() { s.pod().HostNetwork = true },
			func() { s.pod().SecurityContext.RunAsNonRoot = nil },
		} {
			s = newShipped(t, p)
			lose()
			err := api.Create(t.Context(), s.newPod(), client.DryRunAll)
			g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
		}
	})
}

// newPod is what the Deployment makes.
func (s shipped) newPod() *corev1.Pod {
	template := s.deployment.Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = s.deployment.Namespace, s.deployment.Name+"-"
	return pod
}
