// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
)

// authority is a certificate of the installed cluster that lives for so long, as PEM.
func (w *world) authority(name string, life time.Duration) []byte {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: w.now, NotAfter: w.now.Add(life), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	w.must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// trusts makes the installer's kubeconfig trust an authority.
func (w *world) trusts(pem []byte) {
	w.t.Helper()
	source := &corev1.Secret{}
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "cp-admin-kubeconfig"}, source))
	source.Data[assisted.KubeconfigKey] = []byte(strings.Replace(kubeconfigOf("installer"), `"server":`,
		fmt.Sprintf(`"certificate-authority-data":%q,"server":`, base64.StdEncoding.EncodeToString(pem)), 1))
	w.must(w.client.Update(context.Background(), source))
}

// config is how clients connect with <cluster>-kubeconfig.
func (w *world) config() *rest.Config {
	w.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(w.kubeconfig().Data["value"])
	w.must(err)
	return config
}

func testAuthoritiesRotate(t *testing.T) {
	g := NewWithT(t)
	w := tokenWorld(t)
	first, second := w.authority("first", 10*day), w.authority("second", 100*day)
	w.trusts(first)
	w.passes(2)
	token := w.token()
	g.Expect(w.config().CAData).To(Equal(first))
	w.credentials.Bundle = append(append([]byte{}, first...), second...)
	w.passes(2)
	g.Expect(string(w.config().CAData)).To(And(ContainSubstring(string(first)), ContainSubstring(string(second))))
	g.Expect(w.token()).To(Equal(token), "the token stays")
	before := w.allVersions()
	w.passes(2)
	g.Expect(w.allVersions()).To(Equal(before))
	w.credentials.Lost = true
	w.reconcile()
	g.Expect(w.allVersions()).To(Equal(before), "what the cluster told last is believed while there is no connection")
	w.after(11 * day)
	g.Expect(w.config().CAData).To(Equal(second), "one that has expired is left out")
	w.checkWorks()
}

func testServerName(t *testing.T) {
	const public, internal = "api.c.example.com", "api-int.c.example.com"
	g := NewWithT(t)
	w := tokenWorld(t)
	g.Expect(w.config().ServerName).To(Equal(public))
	lose := func(verifying ...string) {
		w.credentials.Verifying = verifying
		w.credentials.Lost = true
		w.reconcile()
		w.reconcile()
	}
	lose(internal)
	g.Expect(w.config().ServerName).To(Equal(internal), "a certificate of the user's is shown for the other name")
	w.checkWorks()
	before := w.allVersions()
	w.passes(2)
	g.Expect(w.allVersions()).To(Equal(before), "nobody tries the other name while there is a connection")
	lose("none")
	g.Expect(w.config().ServerName).To(Equal(internal))
	g.Expect(w.reason(controlplanev1.KubeconfigAvailableCondition)).To(Equal(controlplanev1.KubeconfigNotAvailableReason))
	g.Expect(w.message(controlplanev1.KubeconfigAvailableCondition)).
		To(Equal("Nobody can connect with the Secret: the certificate of the API does not verify: " +
			`a certificate of "CN=user" by "CN=user's authority"`))
	w.credentials.Verifying = nil
	w.after(4 * day)
	g.Expect(w.config().ServerName).To(Equal(public), "with the next token the first name is tried first")
	w.checkWorks()
}

// TestNoCredentialIsLogged: at the highest verbosity nothing is logged that opens a cluster.
func TestNoCredentialIsLogged(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, 1, 0)
	var lines []string
	log := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{Verbosity: 10})
	secrets := []string{"issued-token-", `"token":"t"`, "current-context", "token: t"}
	pass := func() {
		_, err := w.r.Reconcile(ctrl.LoggerInto(context.Background(), log), ctrl.Request{NamespacedName: key})
		if err != nil {
			lines = append(lines, err.Error())
		}
		w.credentials.Lost = w.api.ID == "" || !w.credentials.Takes(w.kubeconfig().Data["value"])
	}
	w.run(nil, w.initialized)
	for _, change := range []func(){
		func() {}, func() { w.now = w.now.Add(4 * day) }, func() { w.now = w.now.Add(8 * day) }, w.credentials.DeleteAccount, w.optOut, w.optIn,
		func() { w.must(w.client.Delete(context.Background(), w.installerCredentials())) },
	} {
		change()
		pass()
		pass()
	}
	g.Expect(w.credentials.Issued).To(BeNumerically(">", 3))
	close(w.events.Events)
	for event := range w.events.Events {
		lines = append(lines, event)
	}
	for _, c := range w.controlPlane().Status.Conditions {
		lines = append(lines, c.Message)
	}
	g.Expect(len(lines)).To(BeNumerically(">", 10))
	for _, line := range lines {
		for _, secret := range secrets {
			g.Expect(line).NotTo(ContainSubstring(secret))
			g.Expect(line).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte(secret))))
		}
	}
}
