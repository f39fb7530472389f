// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"path/filepath"
)

const (
	operatorName      = "cluster-api-operator"
	operatorModule    = "sigs.k8s.io/cluster-api-operator"
	operatorNamespace = "capi-operator-system"
)

// StartOperator installs the CRDs of the Cluster API operator, runs it, and returns when it is ready and its webhooks are in force. It is
// upstream's code in a main package of our own (hack/tools/operator, which says why), with upstream's manifests. It has cluster-admin rights
// here, as its own role gives it. It never reads the network or the user's clusterctl configuration.
func (cp *ControlPlane) StartOperator(ctx context.Context) (*Manager, error) {
	program, err := cp.tools.Path(ctx, operatorName)
	if err != nil {
		return nil, err
	}
	dir, err := goCommand(ctx, filepath.Join(cp.tools.root, toolModules, "operator"), "list", "-m", "-f", "{{.Dir}}", operatorModule)
	if err != nil {
		return nil, err
	}
	objects, err := cp.render(ctx, filepath.Join(dir, "config", "default"), nil)
	if err != nil {
		return nil, err
	}
	crds, err := toCRDs(objects)
	if err != nil {
		return nil, err
	}
	endpoint, err := cp.webhookEndpoint(operatorName)
	if err != nil {
		return nil, err
	}
	endpoint.rewireCRDs(crds, everyService)
	if err := InstallCRDs(ctx, cp.Admin(), crds); err != nil {
		return nil, err
	}
	return cp.installAndRun(ctx, managerRun{
		spec:      ManagerSpec{Name: operatorName, Binary: program},
		namespace: operatorNamespace, serviceAccount: "capi-operator-manager", groups: []string{adminGroup},
		env: []string{"HOME=" + cp.dir, "XDG_CONFIG_HOME=" + cp.dir},
	}, objects)
}
