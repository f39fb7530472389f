// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"fmt"
	"testing"

	bmov1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/capi-openshift/agent-providers/api/bootstrap/v1beta1"
	controlplanev1 "github.com/capi-openshift/agent-providers/api/controlplane/v1beta1"
	"github.com/capi-openshift/agent-providers/internal/assisted"
	"github.com/capi-openshift/agent-providers/test/sandbox"
	simassisted "github.com/capi-openshift/agent-providers/test/sim/assisted"
)

// young is a cluster that is being installed while the providers are upgraded: the bootstrap provider before its host registers, the
// control plane provider while the host is installed, and waits in a stage of that.
type young struct {
	world   *sandbox.World
	request sandbox.ClusterRequest
	host    types.NamespacedName
}

// startYoung applies the cluster, from the same template as the other one.
func (s *story) startYoung(t *testing.T) *young {
	t.Helper()
	g := NewWithT(t)
	y := &young{
		world: s.world,
		request: sandbox.ClusterRequest{
			Namespace: "young", Name: "young", Topology: sandbox.SNO, Address: "127.30.5.5", Template: s.request.Template,
		},
		host: types.NamespacedName{Namespace: "young", Name: "host-0"},
	}
	y.world.Assisted.Faults().StageHang(y.host, simassisted.StageWritingImage)
	g.Expect(y.world.CreateInputsFor(t.Context(), y.request, y.request.Machines())).To(Succeed())
	g.Expect(y.world.ApplyCluster(t.Context(), y.request)).To(Succeed())
	y.await(t, "its host to be chosen", func(ctx context.Context) (string, error) {
		host := &bmov1alpha1.BareMetalHost{}
		if err := y.world.Client.Get(ctx, y.host, host); err != nil {
			return "", err
		}
		if host.Spec.ConsumerRef == nil {
			return "it is free", nil
		}
		return "", nil
	})
	return y
}

func (y *young) await(t *testing.T, what string, check sandbox.Check) {
	t.Helper()
	NewWithT(t).Expect(y.world.AwaitCluster(t.Context(), y.request.Key(), installTimeout, what, check)).To(Succeed())
}

// awaitInstalling waits until its host is installed.
func (y *young) awaitInstalling(t *testing.T) {
	t.Helper()
	y.await(t, "its installation", func(ctx context.Context) (string, error) {
		controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
		if err := y.world.Client.Get(ctx, sandbox.InstallKey(y.request.Key()), controlPlane); err != nil {
			return "", err
		}
		if phase := controlPlane.Status.Install.Phase; phase != controlplanev1.InstallPhaseInstalling {
			return "phase " + phase, nil
		}
		return "", nil
	})
}

// grow lets the installation go on to its end, and deletes the cluster. Nothing was made twice.
func (y *young) grow(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	y.world.Assisted.Faults().StageHang(y.host, "")
	y.await(t, "the cluster", y.world.Running(y.request.Key(), y.request.Machines()))
	for _, list := range []client.ObjectList{
		&clusterv1.MachineList{}, &bootstrapv1.OpenshiftAssistedConfigList{}, &assisted.InfraEnvList{}, &assisted.AgentList{},
		&hivev1.ClusterDeploymentList{}, &hiveext.AgentClusterInstallList{},
	} {
		g.Expect(y.world.Client.List(t.Context(), list, client.InNamespace(y.request.Namespace))).To(Succeed())
		g.Expect(meta.LenList(list)).To(Equal(1), fmt.Sprintf("%T", list))
	}
	_, err := y.world.VerifyHosts(t.Context(), y.request.Key())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(y.world.DeleteCluster(t.Context(), y.request.Key(), deleteTimeout)).To(Succeed())
}
