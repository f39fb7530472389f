// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capi-openshift/agent-providers/controlplane/internal/render"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// authority is a certificate, as PEM.
func authority(t *testing.T, name string, notAfter time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: noon.Add(-time.Hour), NotAfter: notAfter, IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestAuthorities(t *testing.T) {
	g := NewWithT(t)
	a, b := authority(t, "a", noon.Add(time.Hour)), authority(t, "b", noon.Add(time.Hour))
	expired := authority(t, "expired", noon)
	both := render.Authorities(noon, a, b)
	g.Expect(both).To(Or(Equal(slices.Concat(a, b)), Equal(slices.Concat(b, a))))
	g.Expect(render.Authorities(noon, b, a)).To(Equal(both), "their order does not matter")
	g.Expect(render.Authorities(noon, slices.Concat(a, b, expired), b, nil)).To(Equal(both), "each is there once, and none that has expired")
	g.Expect(render.Authorities(noon, []byte("no PEM"), nil)).To(BeEquivalentTo("no PEM"))
	g.Expect(render.Authorities(noon, expired, nil)).To(Equal(expired), "nobody would verify anything without one")
}

func TestWithToken(t *testing.T) {
	g := NewWithT(t)
	data, err := render.WithToken([]byte(installerKubeconfig), "secret")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(render.TokenOf(data)).To(Equal("secret"))
	g.Expect(render.TokenOf([]byte(installerKubeconfig))).To(BeEmpty())
	g.Expect(string(data)).NotTo(Or(ContainSubstring("a2V5"), ContainSubstring("unused")), "nothing of the credential before is left")
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.BearerToken).To(Equal("secret"))
	g.Expect(config.Host).To(Equal("https://api.c.example.com:6443"))
	back, err := render.WithCredentialOf(data, []byte(installerKubeconfig))
	g.Expect(err).NotTo(HaveOccurred())
	config, err = clientcmd.RESTConfigFromKubeConfig(back)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(config.KeyData)).To(Equal("key"))
	g.Expect(render.TokenOf(back)).To(BeEmpty())
	again, err := render.WithToken(back, "secret")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(data), "what is written depends on what is said alone")
}

func TestTokenOfSomebodyElse(t *testing.T) {
	other := strings.Replace(installerKubeconfig, "{client-certificate-data: Y2VydA==, client-key-data: a2V5}", "{token: x}", 1)
	NewWithT(t).Expect(render.TokenOf([]byte(other))).To(BeEmpty())
	for _, broken := range []string{"", "\x00", "{}"} {
		NewWithT(t).Expect(render.TokenOf([]byte(broken))).To(BeEmpty())
		_, err := render.WithToken([]byte(broken), "secret")
		NewWithT(t).Expect(err).To(MatchError(Not(ContainSubstring("secret"))))
		_, err = render.WithCredentialOf([]byte(installerKubeconfig), []byte(broken))
		NewWithT(t).Expect(err).To(HaveOccurred())
		_, err = render.WithTrust([]byte(broken), render.Trust{})
		NewWithT(t).Expect(err).To(HaveOccurred())
	}
}

func TestWithTrust(t *testing.T) {
	for name, tt := range map[string]struct {
		source    string
		trust     render.Trust
		name, ca  string
		effective string
	}{
		"another name": {
			installerKubeconfig, render.Trust{Name: "api-int.c.example.com"}, "api-int.c.example.com", "ca", "api-int.c.example.com",
		},
		"the host's name": {
			installerKubeconfig, render.Trust{Name: "api.c.example.com", Authorities: []byte("new")}, "", "new", "api.c.example.com",
		},
		"the system's authorities": {
			strings.Replace(installerKubeconfig, ", certificate-authority-data: Y2E=", "", 1),
			render.Trust{Name: "api.c.example.com", Authorities: []byte("new")}, "", "", "api.c.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data, err := render.WithTrust([]byte(tt.source), tt.trust)
			g.Expect(err).NotTo(HaveOccurred())
			config, err := clientcmd.RESTConfigFromKubeConfig(data)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.ServerName).To(Equal(tt.name))
			g.Expect(string(config.CAData)).To(Equal(tt.ca))
			g.Expect(render.TrustOf(data).Name).To(Equal(tt.effective))
		})
	}
}
