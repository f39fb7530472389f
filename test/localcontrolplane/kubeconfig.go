// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	adminUser  = "admin"
	adminGroup = "system:masters" // kube-apiserver lets this group do everything, RBAC or not
)

// restConfig returns a client configuration with the given identity. Its limits are those of a Cluster API manager, so
// that a test's own client is never what slows a run down.
func restConfig(server string, ca *authority, identity keyPair) *rest.Config {
	return &rest.Config{
		Host: server,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: ca.pem, CertData: identity.certificate, KeyData: identity.key,
		},
		QPS: 100, Burst: 200,
	}
}

// encodeKubeconfig returns a kubeconfig with everything inline, so that the bytes alone are enough anywhere.
func encodeKubeconfig(server, name string, authorities []byte, identity keyPair) ([]byte, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authorities}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: identity.certificate, ClientKeyData: identity.key,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	data, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the kubeconfig of %s: %w", name, err)
	}
	return data, nil
}

// Kubeconfig writes a kubeconfig file for a client certificate of the given user and groups, and returns its path. RBAC
// decides what the user may do; user system:serviceaccount:NAMESPACE:NAME has the rights of that ServiceAccount.
func (cp *ControlPlane) Kubeconfig(user string, groups ...string) (string, error) {
	identity, err := cp.api.ca.client(user, groups...)
	if err != nil {
		return "", err
	}
	data, err := encodeKubeconfig(cp.api.URL(), "management", cp.api.ca.pem, identity)
	if err != nil {
		return "", err
	}
	// Two certificates of one user with different groups are two identities, so the groups are part of the file's name.
	hash := sha256.Sum256([]byte(strings.Join(groups, "\n")))
	name := strings.NewReplacer(":", "_", "/", "_").Replace(user)
	path := filepath.Join(cp.dir, "kubeconfigs", fmt.Sprintf("%s-%x.kubeconfig", name, hash[:4]))
	return path, writeFile(path, data)
}
