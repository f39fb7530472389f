// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	kubeconfigs "github.com/capi-openshift/agent-providers/controlplane/internal/kubeconfig"
)

// BoundKubeconfig returns a kubeconfig that may be parsed as it is, and in the place of all that are too long one text that is refused for
// the same reason.
func BoundKubeconfig(source []byte) []byte {
	if kubeconfigs.Limits.Size(source) != nil {
		return tooLong
	}
	return source
}

var tooLong = make([]byte, kubeconfigs.Limits.Bytes+1)

// RewriteKubeconfig makes the installer's kubeconfig usable from the management cluster: its server becomes the Cluster's control-plane
// endpoint, "<host>:<port>", and the certificate is checked against apiName (api.<cluster>.<domain>) where the endpoint's host is another
// one (DESIGN D11, CONTRACT CP-54). Only the current context is kept. It fails when the source is no kubeconfig, has no current context, or
// is not self-contained.
func RewriteKubeconfig(source []byte, endpointHost, endpoint, apiName string) ([]byte, error) {
	k, err := readKubeconfig(source)
	if err != nil {
		return nil, err
	}
	k.cluster.Server = "https://" + endpoint
	k.cluster.TLSServerName = ""
	if endpointHost != apiName {
		k.cluster.TLSServerName = apiName
	}
	return k.write()
}

// kubeconfig is the current context of a kubeconfig, with the cluster and the user that it names. It needs no other file or program.
type kubeconfig struct {
	name    string
	context *clientcmdapi.Context
	cluster *clientcmdapi.Cluster
	user    *clientcmdapi.AuthInfo
}

// readKubeconfig reads a kubeconfig whose current context is self-contained.
func readKubeconfig(source []byte) (kubeconfig, error) {
	config, err := loadKubeconfig(source)
	if err != nil {
		return kubeconfig{}, err
	}
	current := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	return kubeconfig{name: config.CurrentContext, context: current, cluster: cluster.DeepCopy(), user: user}, nil
}

// write is a kubeconfig with that context alone.
func (k kubeconfig) write() ([]byte, error) {
	out := clientcmdapi.NewConfig()
	out.Clusters[k.context.Cluster] = k.cluster
	out.AuthInfos[k.context.AuthInfo] = k.user
	out.Contexts[k.name] = k.context
	out.CurrentContext = k.name
	content, err := json.Marshal(out) // In a fraction of the time that YAML takes.
	if err != nil {
		return nil, errEncode
	}
	data, err := written.of(content, func([]byte) ([]byte, error) { return clientcmd.Write(*out) })
	if err != nil {
		return nil, errEncode
	}
	return slices.Clone(data), nil
}

// errEncode stands for the encoder's error, which may quote credentials.
var errEncode = errors.New("the kubeconfig cannot be encoded")

// CheckKubeconfig says what is wrong with a kubeconfig, be it a command or a file that it needs.
func CheckKubeconfig(data []byte) error {
	_, err := loadKubeconfig(data)
	return err
}

// remembered is how many kubeconfigs are remembered as they are parsed and written, of some 20 KiB each. A pass reads the same one several
// times, most of which it has written itself just before, and writes the same as the pass before.
const remembered = 128

var (
	// written remembers kubeconfigs as YAML, by the same as JSON.
	written = newMemory[[]byte](remembered)
	// parsed remembers kubeconfigs by their text.
	parsed = newMemory[*clientcmdapi.Config](remembered)
)

// loadKubeconfig reads a kubeconfig whose current context is self-contained. Nobody may change what it returns.
func loadKubeconfig(data []byte) (*clientcmdapi.Config, error) {
	return parsed.of(data, kubeconfigs.Parse)
}
