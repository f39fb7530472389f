// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// certificate is a PEM certificate.
func certificate(g *WithT) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestObserveTrustBundle(t *testing.T) {
	good := certificate(NewWithT(t))
	bundle := func(data map[string]string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ca"}, Data: data}
	}
	tests := map[string]struct {
		objects []client.Object
		change  func(*scope)
		reason  string
		named   bool
	}{
		"there":     {[]client.Object{bundle(map[string]string{"ca-bundle.crt": good})}, nil, "", true},
		"not there": {nil, nil, bootstrapv1.WaitingForTrustBundleReason, false},
		"without its key": {
			[]client.Object{bundle(map[string]string{"ca.crt": good})}, nil, bootstrapv1.TrustBundleInvalidReason, false,
		},
		"with something else": {
			[]client.Object{bundle(map[string]string{"ca-bundle.crt": "none"})}, nil, bootstrapv1.TrustBundleInvalidReason, false,
		},
		"not needed any more":       {[]client.Object{newInfraEnv(demoCluster(), "demo-x", inNamespace(), inputs{})}, recorded, "", true},
		"needed for another try":    {nil, recorded, bootstrapv1.WaitingForTrustBundleReason, true},
		"the config is going":       {nil, func(s *scope) { s.config.DeletionTimestamp = ptr.To(metav1.Now()); recorded(s) }, "", true},
		"no ConfigMap is asked for": {nil, func(s *scope) { s.config.Spec.AdditionalTrustBundleRef.Name = "" }, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := prepared()
			s.config.Namespace, s.config.Annotations, s.infraEnv, s.infraEnvName = "ns", nil, nil, ""
			s.config.Spec.AdditionalTrustBundleRef.Name = "ca"
			if tt.change != nil {
				tt.change(s)
			}
			scheme := runtime.NewScheme()
			g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
			g.Expect(assisted.AddToScheme(scheme)).To(Succeed())
			r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).Build()}
			g.Expect(r.observeInfraEnv(t.Context(), s)).To(Succeed())
			g.Expect(s.trustBundleProblem.Reason).To(Equal(tt.reason), s.trustBundleProblem.Message)
			g.Expect(s.infraEnvName).To(WithTransform(func(name string) bool { return name != "" }, Equal(tt.named)))
			if name == "there" {
				g.Expect(newInfraEnv(s.cluster, s.infraEnvName, s.config, s.inputs).Spec.AdditionalTrustBundle).To(Equal(good))
			}
		})
	}
}

func inNamespace() *bootstrapv1.OpenshiftAssistedConfig {
	return &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
}

func recorded(s *scope) {
	s.config.Annotations = map[string]string{bootstrapv1.InfraEnvAnnotation: "demo-x"}
}
