// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads the kubeconfigs of installed clusters. Whoever may write a Secret in the namespace of a Cluster can write one,
// so that no file is read and no program run because a kubeconfig says so. Its errors never quote credentials.
package kubeconfig

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capi-openshift/agent-providers/internal/untrusted"
)

// Limits are those of a kubeconfig. The installer's have some 20 KiB, most of it certificates.
var Limits = untrusted.Limits{Bytes: 128 << 10, Values: 1000}

// Parse reads a kubeconfig whose current context has a cluster and a user, and needs no other file or program.
func Parse(data []byte) (*clientcmdapi.Config, error) {
	if err := Limits.YAML(data); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be parsed: %w", err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be parsed") // The parser's error may quote credentials.
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, errors.New("the kubeconfig has no current context")
	}
	if config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return nil, fmt.Errorf("context %s of the kubeconfig names a cluster or user that is not in it", config.CurrentContext)
	}
	if err := selfContained(config, current); err != nil {
		return nil, err
	}
	return config, nil
}

// selfContained refuses a command, and a file: client-go would read it in the Pod of whoever connects, such as the token of its
// ServiceAccount, and send what is there to a server of the kubeconfig's choice.
func selfContained(config *clientcmdapi.Config, current *clientcmdapi.Context) error {
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if user.Exec != nil || user.AuthProvider != nil {
		return fmt.Errorf("user %s of the kubeconfig runs a command to log in: it must hold its credential", current.AuthInfo)
	}
	if cluster.CertificateAuthority+user.ClientCertificate+user.ClientKey+user.TokenFile != "" {
		return fmt.Errorf(
			"user %s or cluster %s of the kubeconfig names a file: it must hold its credential", current.AuthInfo, current.Cluster,
		)
	}
	return nil
}

// RESTConfig is the client configuration of a kubeconfig that Parse accepts: no program is run and no file read for it.
func RESTConfig(data []byte) (*rest.Config, error) {
	parsed, err := Parse(data)
	if err != nil {
		return nil, err
	}
	return ConfigOf(parsed)
}

// ConfigOf is the client configuration of a kubeconfig that Parse has read.
func ConfigOf(parsed *clientcmdapi.Config) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveClientConfig(*parsed, parsed.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be used") // The error may quote credentials.
	}
	config.ContentType = runtime.ContentTypeJSON // Of other encodings nobody counts what is in an answer.
	return config, nil
}
