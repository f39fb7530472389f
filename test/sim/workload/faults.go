// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capi-openshift/agent-providers/test/localcontrolplane"
	"github.com/capi-openshift/agent-providers/test/sim/etcd"
)

// The Machine API of OpenShift, which is not Cluster API's.
const (
	machineAPIGroup     = "machine.openshift.io"
	machineAPINamespace = "openshift-machine-api"
)

// EtcdFaults lets something go wrong in the etcd of an installed cluster from now on; the zero Faults end it. Exec is called under a lock.
func (m *Manager) EtcdFaults(key types.NamespacedName, faults etcd.Faults) error {
	c := m.find(key)
	if c == nil {
		return fmt.Errorf("cluster %s is not running: wait until its AgentClusterInstall is preparing-for-installation", key)
	}
	c.etcdLock.Lock()
	defer c.etcdLock.Unlock()
	if c.etcd == nil {
		return fmt.Errorf("cluster %s has no etcd yet: wait until its installation is complete", key)
	}
	c.etcd.Faults = faults
	return nil
}

// StartMachineAPI gives an installed cluster a Machine API with one Machine that runs, as a cluster has whose hosts the Machine API makes.
func (m *Manager) StartMachineAPI(ctx context.Context, key types.NamespacedName) error {
	config, err := m.Config(key)
	if err != nil {
		return err
	}
	crd := openCRD(machineAPIGroup, "Machine", "machine", "machines")
	crd.Spec.Scope, crd.Spec.Versions[0].Name = apiextensionsv1.NamespaceScoped, "v1beta1"
	if err := localcontrolplane.InstallCRDs(ctx, config, []*apiextensionsv1.CustomResourceDefinition{crd}); err != nil {
		return fmt.Errorf("cannot install the Machine API in cluster %s: %w", key, err)
	}
	installed, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot make a client for cluster %s: %w", key, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machineAPINamespace}}
	machine := &unstructured.Unstructured{}
	machine.SetAPIVersion(machineAPIGroup + "/v1beta1")
	machine.SetKind("Machine")
	machine.SetNamespace(machineAPINamespace)
	machine.SetName("master-0")
	for _, o := range []client.Object{namespace, machine} {
		if err := installed.Create(ctx, o); err != nil {
			return fmt.Errorf("cannot create %T %s in cluster %s: %w", o, o.GetName(), key, err)
		}
	}
	machine.Object["status"] = map[string]any{"phase": "Running"}
	if err := installed.Status().Update(ctx, machine); err != nil {
		return fmt.Errorf("cannot write the status of Machine %s in cluster %s: %w", machine.GetName(), key, err)
	}
	return nil
}
