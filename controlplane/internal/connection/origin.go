// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/secret"

	kubeconfigs "github.com/capi-openshift/agent-providers/controlplane/internal/kubeconfig"
)

// origin is the kubeconfig that a connection was made with.
type origin struct {
	// version is the resourceVersion of the Secret that was looked at last: one that has not changed is not parsed again.
	version string
	leads   destination
}

// destination is which server a kubeconfig leads to, and how that is verified. The credential is no part of it: with another one the
// connection to the same server stays until the server refuses the one that it was made with.
type destination struct {
	server, serverName, proxy string
	// authorities is a hash of the certificates that verify the server, which are some KiB.
	authorities [sha256.Size]byte
	insecure    bool
}

func destinationOf(parsed *clientcmdapi.Config) destination {
	cluster := parsed.Clusters[parsed.Contexts[parsed.CurrentContext].Cluster]
	return destination{
		server: cluster.Server, serverName: cluster.TLSServerName, proxy: cluster.ProxyURL, insecure: cluster.InsecureSkipTLSVerify,
		authorities: sha256.Sum256(cluster.CertificateAuthorityData),
	}
}

// ledElsewhere reports whether the kubeconfig of a cluster leads to another server than the connection's. Without a kubeconfig that can be
// used the connection stays: it is all that leads to the cluster.
func (c *Connections) ledElsewhere(ctx context.Context, cluster client.ObjectKey, made *connection) bool {
	holder, data, err := c.kubeconfig(ctx, cluster)
	if err != nil || holder.ResourceVersion == made.origin.version {
		return false
	}
	made.origin.version = holder.ResourceVersion
	parsed, err := kubeconfigs.Parse(data)
	return err == nil && destinationOf(parsed) != made.origin.leads
}

// kubeconfig reads the Secret with the kubeconfig of a cluster. It is the cache's own, of which nothing may be changed: this is done with
// every probe of every cluster, and such a Secret has some 20 KiB.
func (c *Connections) kubeconfig(ctx context.Context, cluster client.ObjectKey) (*corev1.Secret, []byte, error) {
	holder, key := &corev1.Secret{}, client.ObjectKey{Namespace: cluster.Namespace, Name: secret.Name(cluster.Name, secret.Kubeconfig)}
	if err := c.options.SecretClient.Get(ctx, key, holder, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	data, ok := holder.Data[secret.KubeconfigDataName]
	if !ok {
		return nil, nil, fmt.Errorf("Secret %s has no key %s", key, secret.KubeconfigDataName)
	}
	return holder, data, nil
}
