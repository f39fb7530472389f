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
// upstream's code in a main package of our own (hack/tools/operator, which says why), with upstream's manifests. It has cluster-admin
// rights here, as its own role gives it. It never reads the user's clusterctl configuration. environment are further variables of its
// process, as NAME=value: without a proxy among them, it finds no release on the network.
func (cp *ControlPlane) StartOperator(ctx context.Context, environment ...string) (*Manager, error) {
	program, err := cp.tools.Path(ctx, operatorName)
	if err != nil {
		return nil, err
	}
	dir, err := moduleSource(ctx, filepath.Join(cp.tools.root, toolModules, "operator"), operatorModule)
	if err != nil {
		return nil, err
	}
	spec := ManagerSpec{Name: operatorName, Binary: program, Kustomize: filepath.Join(dir, "config", "default")}
	crds, err := cp.shippedCRDs(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := InstallCRDs(ctx, cp.Admin(), crds); err != nil {
		return nil, err
	}
	objects, err := cp.render(ctx, spec.Kustomize, nil)
	if err != nil {
		return nil, err
	}
	return cp.installAndRun(ctx, managerRun{
		spec:      spec,
		namespace: operatorNamespace, serviceAccount: "capi-operator-manager", groups: []string{adminGroup},
		env: append([]string{"HOME=" + cp.dir, "XDG_CONFIG_HOME=" + cp.dir}, environment...),
	}, objects)
}
