// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"path/filepath"
	"strconv"
)

// newControllerManager prepares a kube-controller-manager that runs only what a management cluster needs: without the
// garbage collector no owner reference ever has an effect, without the namespace controller no namespace can be deleted.
func (cp *ControlPlane) newControllerManager(ctx context.Context) (*Process, error) {
	path, err := cp.tools.Path(ctx, controllerManagerName)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cp.Kubeconfig("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	serving, err := cp.api.ca.serving(localhost)
	if err != nil {
		return nil, err
	}
	certificate, key, err := serving.write(filepath.Join(cp.dir, controllerManagerName), "server")
	if err != nil {
		return nil, err
	}
	client, err := httpClient(cp.api.ca, keyPair{})
	if err != nil {
		return nil, err
	}
	return cp.newProcess(processSpec{
		name: controllerManagerName, path: path,
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,serviceaccount-token-controller," +
				"clusterrole-aggregation-controller",
			// Each controller acts as its own ServiceAccount, as in a real cluster, so the audit log tells them apart.
			"--use-service-account-credentials",
			"--service-account-private-key-file=" + cp.api.signingKeyFile, "--root-ca-file=" + cp.api.caFile(),
			"--bind-address=" + localhost, "--secure-port=" + strconv.Itoa(port),
			"--tls-cert-file=" + certificate, "--tls-private-key-file=" + key,
			"--authentication-skip-lookup", "--leader-elect=false",
		},
		ready: httpReady(client, "https://"+address(localhost, port)+"/healthz"),
	}), nil
}
