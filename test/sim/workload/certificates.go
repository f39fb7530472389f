// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// CertificateAuthority makes a certificate that nothing was signed with: what the ingress operator adds to the
// administrator's kubeconfig at the end of an installation.
func CertificateAuthority(name string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key for certificate %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot make certificate %s: %w", name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// AddCertificate appends a certificate to the authorities of every cluster in a kubeconfig.
func AddCertificate(kubeconfig, certificate []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData = append(cluster.CertificateAuthorityData, certificate...)
	}
	return clientcmd.Write(*config)
}

// Where an OpenShift cluster tells by which authorities the certificates of its API are verified.
const (
	managedNamespace = "openshift-config-managed"
	serverAuthority  = "kube-apiserver-server-ca"
	authorityBundle  = "ca-bundle.crt"
)

// tellAuthorities writes them, as PEM.
func (c *cluster) tellAuthorities(ctx context.Context, bundle []byte) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managedNamespace}}
	if err := c.client.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create Namespace %s: %w", managedNamespace, err)
	}
	told := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managedNamespace, Name: serverAuthority}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.client, told, func() error {
		told.Data = map[string]string{authorityBundle: string(bundle)}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot write ConfigMap %s/%s: %w", managedNamespace, serverAuthority, err)
	}
	return nil
}

// RotateAuthority adds an authority to those that verify the certificates of a cluster's API, as the operator of kube-apiserver does long
// before it signs with it. It returns the new certificate.
func (m *Manager) RotateAuthority(ctx context.Context, key types.NamespacedName) ([]byte, error) {
	c := m.find(key)
	if c == nil || c.apiServer() == nil {
		return nil, fmt.Errorf("cannot rotate the authorities of cluster %s: %w", key, ErrUnreachable)
	}
	added, err := c.apiServer().NextAuthority()
	if err != nil {
		return nil, err
	}
	return added, c.tellAuthorities(ctx, slices.Concat(c.apiServer().CA(), added))
}

// SignAgain signs the certificate of a cluster's API with the authority that RotateAuthority has added. A restart of the API servers ends
// all connections, so that everybody has to verify the new certificate.
func (m *Manager) SignAgain(key types.NamespacedName) error {
	c := m.find(key)
	if c == nil || c.apiServer() == nil {
		return fmt.Errorf("cannot sign the certificate of cluster %s: %w", key, ErrUnreachable)
	}
	if err := c.apiServer().Rotate(); err != nil {
		return err
	}
	c.proxy.shut() // It is opened again at once.
	return nil
}

// RequestServing lets the kubelet of a Node ask for a new serving certificate, as it does before the old one ends: for the names and
// addresses of the Node, and besides for others, which no honest kubelet asks for. It returns the name of the request.
func (m *Manager) RequestServing(ctx context.Context, key types.NamespacedName, node string, others ...string) (string, error) {
	c := m.find(key)
	if c == nil || !c.observed().APIUp {
		return "", fmt.Errorf("cannot request a serving certificate of Node %s of cluster %s: %w", node, key, ErrUnreachable)
	}
	known := &corev1.Node{}
	if err := c.client.Get(ctx, types.NamespacedName{Name: node}, known); err != nil {
		return "", fmt.Errorf("cannot read Node %s: %w", node, err)
	}
	names := make([]string, 0, len(known.Status.Addresses)+len(others))
	for _, address := range known.Status.Addresses {
		if address.Address != kubeletName {
			names = append(names, address.Address)
		}
	}
	return c.requestServing(ctx, node, append(names, others...))
}

// requestServing asks for a kubelet's serving certificate for names and addresses, in the kubelet's own name. It returns the name of the
// request.
func (c *cluster) requestServing(ctx context.Context, node string, names []string) (string, error) {
	user := "system:node:" + node
	data, err := certificateRequest(user, names)
	if err != nil {
		return "", fmt.Errorf("cannot make the certificate request of kubelet %s: %w", node, err)
	}
	config := rest.CopyConfig(c.apiServer().Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:nodes", "system:authenticated"}}
	kubelet, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return "", fmt.Errorf("cannot make a client for kubelet %s: %w", node, err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: data, SignerName: certificatesv1.KubeletServingSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
	if err := kubelet.Create(ctx, request); err != nil {
		return "", fmt.Errorf("cannot request the serving certificate of kubelet %s: %w", node, err)
	}
	return request.Name, nil
}

// certificateRequest is signed with a new key.
func certificateRequest(user string, names []string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"system:nodes"}}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}
