// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigWith is a kubeconfig with a credential.
func kubeconfigWith(t *testing.T, user clientcmdapi.AuthInfo) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://api.c.example.com:6443"}
	config.AuthInfos["u"] = &user
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	data, err := clientcmd.Write(*config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return data
}

// TestSecretsAreFound: in each form in which a log may hold them.
func TestSecretsAreFound(t *testing.T) {
	const token = "sha256~a-token-that-is-long-enough-to-be-one/+\"<>"
	block := func(kind string, content byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes.Repeat([]byte{content, 7, 200}, 100)})
	}
	const ignition = `{"ignition":{"version":"3.2.0","config":{"merge":[]},"security":{}},"storage":{"files":[{"contents":{"source":` +
		`"data:,the-secret-of-this-host-which-is-known-to-nobody-else-at-all"}}]}}`
	certificate, key := block("CERTIFICATE", 1), block("EC KEY", 2)
	auth := base64.StdEncoding.EncodeToString([]byte("somebody:with-a-password"))
	withToken := kubeconfigWith(t, clientcmdapi.AuthInfo{Token: token})
	withKey := kubeconfigWith(t, clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	s := NewSecrets()
	for name, data := range map[string]map[string][]byte{
		"with-token": {"value": withToken}, "with-key": {"kubeconfig": withKey},
		"pull":   {corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"auth":"` + auth + `"}}}`)},
		"others": {"password": []byte("a password that is long"), "ignition": []byte(ignition)},
	} {
		NewWithT(t).Expect(s.AddSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data})).To(Succeed())
	}
	quoted, err := json.Marshal(map[string]string{"said": token})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	encoded := func(before string, value []byte) string {
		return base64.StdEncoding.EncodeToString([]byte(before + string(value) + "and after"))
	}
	for name, log := range map[string]string{
		"a token":                      "I0101 header: Bearer " + token,
		"a token that was cut":         "got " + token[:telling] + "[truncated]",
		"a token in JSON":              string(quoted),
		"a token in base64":            encoded("", []byte(token)),
		"a token in base64, by 1":      encoded("1", []byte(token)),
		"a token in base64, by 2":      encoded("12", []byte(token)),
		"a token in base64 for URLs":   base64.RawURLEncoding.EncodeToString([]byte(token)),
		"a kubeconfig with a token":    string(withToken),
		"the same in base64":           encoded("value: ", withToken),
		"a client certificate":         string(certificate),
		"one in a kubeconfig":          strings.SplitAfter(string(withKey), "client-certificate-data")[1],
		"a private key":                string(key),
		"a private key in base64":      encoded("k", key),
		"any private key":              "-----BEGIN RSA PRIVATE KEY-----",
		"any private key in base64":    encoded("kk", []byte("-----BEGIN RSA PRIVATE KEY-----")),
		"any token of a Pod":           base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"xyz"}`)) + ".e30.c2ln",
		"any token of another key":     base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"xyz"}`)) + ".e30.c2ln",
		"what an ignition has inside":  "wrote " + strings.SplitAfter(ignition, "data:,")[1],
		"the same in base64 and cut":   encoded("k", []byte(ignition))[150:],
		"a pull secret":                `{"auths":{"quay.io":{"auth":"` + auth + `"}}}`,
		"the password in it":           "somebody:with-a-password",
		"what nobody knows the use of": "a password that is long",
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(s.Find(strings.NewReader("before\n" + log + "\nafter"))).NotTo(BeEmpty())
		})
	}
	t.Run("nothing", func(t *testing.T) {
		const log = "Published Secret ns/c-kubeconfig\nserver: https://api.c.example.com:6443\nAuthorization: Bearer <masked>"
		NewWithT(t).Expect(s.Find(strings.NewReader(log))).To(BeEmpty())
	})
	t.Run("and not told", func(t *testing.T) {
		found, err := s.Find(strings.NewReader("before\n" + token))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(found).To(ContainElement("line 2 holds the token in value of Secret ns/with-token"))
	})
}
