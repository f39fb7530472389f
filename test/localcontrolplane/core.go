// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"path/filepath"
)

const (
	coreName      = "capi-core"
	coreNamespace = "capi-system"
	coreAccount   = "capi-manager"
	coreModule    = "sigs.k8s.io/cluster-api"
)

// What Cluster API core is called: its process, and its user in the audit log.
const (
	CoreProcess = coreName
	CoreUser    = "system:serviceaccount:" + coreNamespace + ":" + coreAccount
)

// StartCore runs Cluster API core, with ClusterClass on, and returns when it is ready and all its admission webhooks are
// in force. It needs the CRDs of CRDsCore. Core has cluster-admin rights here: its own roles are not what is tested, and
// the controller that aggregates the providers' roles into them does not run.
func (cp *ControlPlane) StartCore(ctx context.Context) (*Manager, error) {
	spec, err := cp.coreManager(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := cp.render(ctx, spec.Kustomize, spec.Variables)
	if err != nil {
		return nil, err
	}
	return cp.installAndRun(ctx, coreRun(spec), objects)
}

func coreRun(spec ManagerSpec) managerRun {
	return managerRun{spec: spec, namespace: coreNamespace, serviceAccount: coreAccount, groups: []string{adminGroup}}
}

// coreManager describes core: our own main package, for the reasons it gives, with upstream's manifests.
func (cp *ControlPlane) coreManager(ctx context.Context) (ManagerSpec, error) {
	dir, err := cp.tools.ModuleDir(ctx, coreModule)
	if err != nil {
		return ManagerSpec{}, err
	}
	return ManagerSpec{
		Name: coreName, Provider: "cluster-api", Package: "./test/localcontrolplane/capicore", Kustomize: coreKustomize(dir),
	}, nil
}

// coreKustomize returns the folder that core's release is made from.
func coreKustomize(module string) string { return filepath.Join(module, "core", "config", "default") }
