// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
)

// outdated is a control plane that admission would refuse today: 4.17 takes no five hosts, and the taint is a kubelet's.
func outdated() *controlplanev1.OpenshiftAssistedControlPlane {
	cp := valid()
	cp.Spec.DistributionVersion = "4.17.9"
	cp.Spec.Replicas = new(int32(5))
	cp.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "node.kubernetes.io/a", Effect: corev1.TaintEffectNoSchedule}}
	return cp
}

// What is wrong already does not keep anybody from changing something else.
func TestRatcheting(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*controlplanev1.OpenshiftAssistedControlPlane)
		want   string
	}{
		"the manager's annotation": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Annotations = map[string]string{controlplanev1.InstallationStartedAnnotation: `{"attempt":"1","controlPlane":"uid"}`}
		}},
		"another field": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Install.SSHAuthorizedKey = "ssh-ed25519 AAAA"
		}},
		"mended": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Replicas = new(int32(3)) }},
		"another wrong number": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Replicas = new(int32(4)) },
			want: "spec.replicas"},
		"another wrong field too": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Install.APIVIPs[0] = "198.51.100.1"
		}, want: "spec.install.apiVIPs[0]"},
		"one more wrong item": {change: func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.MachineTemplate.Spec.Taints = append(cp.Spec.MachineTemplate.Spec.Taints, clusterv1.MachineTaint{Key: "node.kubernetes.io/b"})
		}, want: "spec.machineTemplate.spec.taints[1].key"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cp := outdated()
			_, err := (&webhook.ControlPlane{}).ValidateCreate(context.Background(), cp)
			g.Expect(err).To(HaveOccurred())
			test.change(cp)
			_, err = (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), outdated(), cp)
			expectRefusal(g, err, test.want)
		})
	}
}

func TestRatchetingOfTemplates(t *testing.T) {
	g := NewWithT(t)
	template := &controlplanev1.OpenshiftAssistedControlPlaneTemplate{}
	template.Spec.Template.Spec.MachineTemplate.Spec.Taints = outdated().Spec.MachineTemplate.Spec.Taints
	_, err := (&webhook.ControlPlaneTemplate{}).ValidateCreate(t.Context(), template)
	g.Expect(err).To(HaveOccurred())
	_, err = (&webhook.ControlPlaneTemplate{}).ValidateUpdate(t.Context(), template, template.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
}

func expectRefusal(g *WithT, err error, want string) {
	if want == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}
	g.Expect(err).To(MatchError(ContainSubstring(want)))
}

func TestScale(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
	older := valid()
	older.Spec.DistributionVersion = "4.17.9"
	handler := &webhook.Scale{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(older).Build()}
	for name, test := range map[string]struct {
		of, object string
		allowed    bool
		want       string
	}{
		"a number that works":     {of: older.Name, object: scaleTo(1), allowed: true},
		"a number that does not":  {of: older.Name, object: scaleTo(5), want: "4 and 5 need release 4.18"},
		"of nothing":              {of: "gone", object: scaleTo(5), allowed: true},
		"what is no Scale at all": {of: older.Name, object: "[]", want: "decode the Scale of OpenshiftAssistedControlPlane cp"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: older.Namespace, Name: test.of, Object: runtime.RawExtension{Raw: []byte(test.object)},
			}}
			response := handler.Handle(t.Context(), request)
			g.Expect(response.Allowed).To(Equal(test.allowed))
			if test.want != "" {
				g.Expect(response.Result.Message).To(ContainSubstring(test.want))
			}
		})
	}
}

func scaleTo(replicas int) string { return fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas) }

// The number of the installation says which objects are removed.
func TestAttemptNeverGoesDown(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"first retry": {before: "", after: "2"}, "next retry": {before: "2", after: "3"}, "unchanged": {before: "2", after: "2"},
		"down":    {before: "10", after: "9", want: "must not go down from 10"},
		"removed": {before: "2", after: "", want: "must not go down from 2"}, "one removed": {before: "1", after: ""},
		"broken": {before: "2", after: "two", want: "must be the number"}, "mended again": {before: "two", after: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			former, cp := valid(), valid()
			setAttempt(former, test.before)
			setAttempt(cp, test.after)
			_, err := (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), former, cp)
			expectRefusal(NewWithT(t), err, test.want)
		})
	}
}

func setAttempt(cp *controlplanev1.OpenshiftAssistedControlPlane, attempt string) {
	if attempt != "" {
		cp.Annotations = map[string]string{controlplanev1.InstallAttemptAnnotation: attempt}
	}
}
