// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/controlplane/internal/webhook"
)

func valid() *controlplanev1.OpenshiftAssistedControlPlane {
	return &controlplanev1.OpenshiftAssistedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp"},
		Spec: controlplanev1.OpenshiftAssistedControlPlaneSpec{
			Replicas: new(int32(3)), Version: "v1.33.4", DistributionVersion: "4.20.4",
			Install: controlplanev1.InstallSpec{
				BaseDomain: "example.com", APIVIPs: []string{"192.0.2.5", "2001:db8::5"}, IngressVIPs: []string{"192.0.2.6", "2001:db8::6"},
				Networking: controlplanev1.NetworkingSpec{MachineNetwork: []string{"192.0.2.0/24", "2001:db8::/64"}},
			},
		},
	}
}

func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestDefault(t *testing.T) {
	for in, want := range map[string]string{"1.33.4": "v1.33.4", "v1.33.4": "v1.33.4", "": ""} {
		cp := valid()
		cp.Spec.Version = in
		if err := (&webhook.ControlPlane{}).Default(context.Background(), cp); err != nil {
			t.Fatal(err)
		}
		if cp.Spec.Version != want {
			t.Errorf("%q became %q, want %q", in, cp.Spec.Version, want)
		}
	}
}

func TestValidate(t *testing.T) {
	bundle := certificate(t)
	type mutation = func(*controlplanev1.OpenshiftAssistedControlPlane)
	install := func(change func(*controlplanev1.InstallSpec)) mutation {
		return func(cp *controlplanev1.OpenshiftAssistedControlPlane) { change(&cp.Spec.Install) }
	}
	trust := func(value string) mutation {
		return func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.OpenshiftAssistedConfigSpec.AdditionalTrustBundle = value
		}
	}
	taint := func(key string) mutation {
		return func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: key}}
		}
	}
	attempt := func(value string) mutation {
		return func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Annotations = map[string]string{controlplanev1.InstallAttemptAnnotation: value}
		}
	}
	attemptRefused := []string{"metadata.annotations[" + controlplanev1.InstallAttemptAnnotation + "]", "1, 2, 3"}
	tests := []struct {
		name   string
		mutate mutation
		// want are parts of the error: the field and what is allowed; none when the control plane is accepted.
		want []string
	}{
		{name: "valid", mutate: func(*controlplanev1.OpenshiftAssistedControlPlane) {}},
		{name: "certificates", mutate: trust(bundle + "\n" + bundle)},
		{"an annotation of the providers", func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.MachineTemplate.ObjectMeta.Annotations = map[string]string{controlplanev1.InstallAttemptAnnotation: "7"}
		}, []string{"spec.machineTemplate.metadata.annotations[" + controlplanev1.InstallAttemptAnnotation + "]", "set by the providers"}},
		{name: "attempt 12", mutate: attempt("12")},
		{"attempt zero", attempt("0"), attemptRefused},
		{"attempt minus one", attempt("-1"), attemptRefused},
		{"attempt with a zero", attempt("02"), attemptRefused},
		{"attempt empty", attempt(""), attemptRefused},
		{"attempt in words", attempt("two"), attemptRefused},
		{"a name with dots", func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Name = "a.b" }, []string{"metadata.name", "hostnames"}},
		{
			"a long name", func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Name = strings.Repeat("x", 61) },
			[]string{"metadata.name", "60 characters"},
		},
		{"two addresses of one family", install(func(i *controlplanev1.InstallSpec) { i.APIVIPs[1] = "192.0.2.7" }),
			[]string{"spec.install.apiVIPs[1]", "another IP family"}},
		{"families in another order", install(func(i *controlplanev1.InstallSpec) { i.IngressVIPs = []string{"2001:db8::6", "192.0.2.6"} }),
			[]string{"spec.install.ingressVIPs[0]", "same IP family"}},
		{"one address twice", install(func(i *controlplanev1.InstallSpec) { i.IngressVIPs[0] = i.APIVIPs[0] }),
			[]string{"spec.install.ingressVIPs[0]", "another address"}},
		{"an address outside", install(func(i *controlplanev1.InstallSpec) { i.APIVIPs[0] = "198.51.100.5" }),
			[]string{"spec.install.apiVIPs[0]", "machineNetwork", "192.0.2.0/24"}},
		{"two networks of one family", install(func(i *controlplanev1.InstallSpec) { i.Networking.MachineNetwork[1] = "198.51.100.0/24" }),
			[]string{"spec.install.networking.machineNetwork[1]", "another IP family"}},
		{name: "an address outside, at a load balancer", mutate: install(func(i *controlplanev1.InstallSpec) {
			i.LoadBalancer.Type = controlplanev1.LoadBalancerUserManaged
			i.APIVIPs, i.IngressVIPs = []string{"198.51.100.5"}, []string{"198.51.100.5"}
		})},
		{"overlapping networks", install(func(i *controlplanev1.InstallSpec) {
			i.Networking.ServiceNetwork = []string{"192.0.2.0/25", "fd02::/112"}
		}), []string{
			"spec.install.networking.serviceNetwork[0]", "must not overlap with spec.install.networking.machineNetwork[0]: 192.0.2.0/24",
		}},
		{"an override of a field", install(func(i *controlplanev1.InstallSpec) { i.ConfigOverrides.Raw = []byte(`{"fips":true}`) }),
			[]string{"spec.install.configOverrides.fips", "use install.fips"}},
		{"MachineAPI", install(func(i *controlplanev1.InstallSpec) { i.Capabilities.Additional = []string{"MachineAPI"} }),
			[]string{"spec.install.capabilities.additional[0]", "platform BareMetal"}},
		{"two kinds of time servers", func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Install.NTPSources, cp.Spec.OpenshiftAssistedConfigSpec.AdditionalNTPSources = []string{"a"}, []string{"b"}
		}, []string{"spec.install.ntpSources", "additionalNTPSources"}},
		{"five hosts of an old release", func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.Replicas, cp.Spec.DistributionVersion = new(int32(5)), "4.17.9"
		}, []string{"spec.replicas", "4 and 5 need release 4.18 or newer"}},
		{name: "four hosts", mutate: func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Replicas = new(int32(4)) }},
		{"text for certificates", trust("hello"), []string{"spec.openshiftAssistedConfigSpec.additionalTrustBundle", "cannot be decoded"}},
		{
			"a key for a certificate", trust(strings.ReplaceAll(bundle, "CERTIFICATE", "PRIVATE KEY")),
			[]string{"additionalTrustBundle", "must be a CERTIFICATE"},
		},
		{
			"a broken certificate", trust("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"),
			[]string{"additionalTrustBundle", "certificate 1 cannot be parsed"},
		},
		{"a taint of kubelets", taint("node.kubernetes.io/not-ready"), []string{"spec.machineTemplate.spec.taints[0].key", "a key of your own"}},
		{
			"a taint of core", taint("node.cluster.x-k8s.io/uninitialized"),
			[]string{"spec.machineTemplate.spec.taints[0].key", "a key of your own"},
		},
		{name: "a taint of one's own", mutate: taint("example.com/masters")},
		{name: "the taint of a kubelet that is for people", mutate: taint("node.kubernetes.io/out-of-service")},
		{"a bad label", func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"a b": ""}
		}, []string{"spec.machineTemplate.metadata.labels"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cp := valid()
			tt.mutate(cp)
			_, err := (&webhook.ControlPlane{}).ValidateCreate(context.Background(), cp)
			check(t, err, tt.want)
			_, err = (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), valid(), cp)
			check(t, err, tt.want)

			cp.DeletionTimestamp = &metav1.Time{}
			*cp.DeletionTimestamp = metav1.Now()
			_, err = (&webhook.ControlPlane{}).ValidateUpdate(context.Background(), valid(), cp)
			check(t, err, nil)
		})
	}
}

func TestValidateTemplate(t *testing.T) {
	template := &controlplanev1.OpenshiftAssistedControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	template.Spec.Template.Spec.Install = valid().Spec.Install
	_, err := (&webhook.ControlPlaneTemplate{}).ValidateCreate(context.Background(), template)
	check(t, err, nil)
	template.Spec.Template.Spec.Install.LoadBalancer.Type = controlplanev1.LoadBalancerClusterManaged
	template.Spec.Template.Spec.Install.APIVIPs = []string{"198.51.100.5"}
	template.Spec.Template.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "node-role.kubernetes.io/master"}}
	former := &controlplanev1.OpenshiftAssistedControlPlaneTemplate{}
	_, err = (&webhook.ControlPlaneTemplate{}).ValidateUpdate(context.Background(), former, template)
	check(t, err, []string{"spec.template.spec.install.apiVIPs[0]", "spec.template.spec.machineTemplate.spec.taints[0].key"})
}

// TestValidateTemplateMetadata: what a template says of its control planes is refused as it is in the control plane itself, and all else
// that is of one control plane.
func TestValidateTemplateMetadata(t *testing.T) {
	for _, key := range []string{
		controlplanev1.InstallAttemptAnnotation, controlplanev1.InstalledClusterAnnotation, controlplanev1.RetryInstallationAnnotation,
	} {
		template := &controlplanev1.OpenshiftAssistedControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
		template.Spec.Template.Spec.Install = valid().Spec.Install
		template.Spec.Template.ObjectMeta.Annotations = map[string]string{"example.com/team": "a"}
		former := template.DeepCopy()
		_, err := (&webhook.ControlPlaneTemplate{}).ValidateCreate(t.Context(), template)
		check(t, err, nil)
		template.Spec.Template.ObjectMeta.Annotations[key] = "2"
		want := []string{"spec.template.metadata.annotations[" + key + "]", "is set by the providers"}
		_, err = (&webhook.ControlPlaneTemplate{}).ValidateCreate(t.Context(), template)
		check(t, err, want)
		_, err = (&webhook.ControlPlaneTemplate{}).ValidateUpdate(t.Context(), former, template)
		check(t, err, want)
		_, err = (&webhook.ControlPlaneTemplate{}).ValidateUpdate(t.Context(), template, template)
		check(t, err, nil)
	}
}

// TestValidateTemplateAsControlPlane: a template is refused for what every control plane made of it is refused for.
func TestValidateTemplateAsControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		mutate func(*controlplanev1.OpenshiftAssistedControlPlaneTemplateResourceSpec)
		want   []string
	}{
		"an annotation of the providers": {func(s *controlplanev1.OpenshiftAssistedControlPlaneTemplateResourceSpec) {
			s.MachineTemplate.ObjectMeta.Annotations = map[string]string{controlplanev1.InstallAttemptAnnotation: "2"}
		}, []string{"spec.template.spec.machineTemplate.metadata.annotations", "is set by the providers"}},
		"two kinds of time servers": {func(s *controlplanev1.OpenshiftAssistedControlPlaneTemplateResourceSpec) {
			s.Install.NTPSources, s.OpenshiftAssistedConfigSpec.AdditionalNTPSources = []string{"a"}, []string{"b"}
		}, []string{"spec.template.spec.install.ntpSources", "additionalNTPSources"}},
	} {
		t.Run(name, func(t *testing.T) {
			template := &controlplanev1.OpenshiftAssistedControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
			template.Spec.Template.Spec.Install = valid().Spec.Install
			former := template.DeepCopy()
			tc.mutate(&template.Spec.Template.Spec)
			_, err := (&webhook.ControlPlaneTemplate{}).ValidateCreate(context.Background(), template)
			check(t, err, tc.want)
			_, err = (&webhook.ControlPlaneTemplate{}).ValidateUpdate(context.Background(), former, template)
			check(t, err, tc.want)
			_, err = (&webhook.ControlPlaneTemplate{}).ValidateUpdate(context.Background(), template, template)
			check(t, err, nil)
		})
	}
}

func check(t *testing.T, err error, want []string) {
	t.Helper()
	if (err != nil) != (len(want) > 0) {
		t.Fatalf("error is %v, want one with %v", err, want)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
